"""What other libraries call our verbs and options: a hint for those who know one of them, never an alias."""

from collections.abc import Mapping

HANDLER_VERBS: Mapping[str, str] = {
    "apply_async": "options(...).enqueue(...)",
    "configure": "options(...)",
    "defer": "enqueue(...)",
    "defer_async": "aenqueue(...)",
    "delay": "enqueue(...)",
    "enqueue_at": "options(run_at=...).enqueue(...)",
    "enqueue_in": 'options(delay="10m").enqueue(...)',
    "kicker": "options(...)",
    "kiq": "aenqueue(...)",
    "message": "s(...)",
    "perform_async": "enqueue(...)",
    "perform_at": "options(run_at=...).enqueue(...)",
    "perform_in": 'options(delay="10m").enqueue(...)',
    "perform_later": "enqueue(...)",
    "push": "enqueue(...)",
    "schedule": 'options(delay="10m").enqueue(...)',
    "send": "enqueue(...)",
    "send_with_options": "options(...).enqueue(...)",
    "set": "options(...)",
    "si": "s(...)",
    "submit": "enqueue(...)",
}
"""What is written here for what Celery, Dramatiq, Taskiq, RQ, Procrastinate, Sidekiq and Huey call otherwise."""

APP_VERBS: Mapping[str, str] = {
    "actor": "job",
    "enqueue": "handler(name).enqueue(...)",
    "enqueue_job": "handler(name).enqueue(...)",
    "send_task": "handler(name).enqueue(...)",
    "task": "job",
}
"""The same for an App."""

OPTION_WORDS: Mapping[str, str] = {
    "at": "run_at",
    "countdown": "delay",
    "eta": "run_at",
    "max_attempts": "retry",
    "max_retries": "retry",
    "queue_name": "queue",
    "retries": "retry",
    "scheduled_at": "run_at",
    "schedule_at": "run_at",
    "schedule_in": "delay",
    "unique": "lock",
    "when": "run_at",
}
"""What is the option here that others call otherwise."""


def no_attribute(owner: object, name: str, known_as: str, verbs: Mapping[str, str]) -> AttributeError:
    """The error for an attribute that does not exist, with what to write instead where that is known.

    Args:
        owner: whose attribute it would be.
        name: the attribute.
        known_as: what the owner is called in the example.
        verbs: `HANDLER_VERBS` or `APP_VERBS`.
    """
    message = f"{type(owner).__name__} has no attribute {name!r}"
    if name in verbs:
        message += f"; here it is {known_as}.{verbs[name]}"
    return AttributeError(message, name=name, obj=owner)
