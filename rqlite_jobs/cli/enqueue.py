"""`rqj enqueue`: enqueue one call of a job."""

from datetime import datetime
from typing import Any

import click

from rqlite_jobs.cli.arguments import keyword_arguments, positional_arguments
from rqlite_jobs.cli.chosen import Chosen, chosen, reader_options
from rqlite_jobs.cli.groups import example
from rqlite_jobs.cli.target import is_app_named, resolve
from rqlite_jobs.cli.text import say, say_json
from rqlite_jobs.cli.times import duration
from rqlite_jobs.inspector import call_text, to_json
from rqlite_jobs.job import Job

_HELP = """Enqueue a call of a job.

Arguments are name=text, which becomes what the handler's annotation says, or name:=json; --args-json gives those
without names. Whatever the answer is, enqueued or duplicate, the exit code is 0; it is 4 if the lock of the job says
on_conflict="raise".
""" + example(
    "rqj enqueue -a shop.jobs:app crunch_sales book_id:=42",
    "rqj enqueue -a shop.jobs:app --delay 10m send_email to=ann@example.com",
    "rqj enqueue -a shop.jobs:app crunch_sales --args-json '[42]'",
    "rqj enqueue -a shop.jobs:app --id july-42 crunch_sales book_id:=42",
)


@click.command("enqueue", help=_HELP)
@click.argument("name", metavar="JOB")
@click.argument("arguments", nargs=-1, metavar="[NAME=TEXT | NAME:=JSON]...")
@click.option("--args-json", metavar="LIST", help="The arguments without names, as a JSON list.")
@click.option("--delay", metavar="DURATION", help='How long from now it is due: "10m".')
@click.option("--run-at", metavar="TIME", help='When it is due, with a zone: "2031-07-01T12:00+02:00".')
@click.option("-q", "--queue", metavar="QUEUE", help="The queue, if not that of the job.")
@click.option(
    "--id", "job_id", metavar="ID", help="An id of its own; if a job has it already, nothing is enqueued."
)
@click.option("--expires-in", metavar="DURATION", help="How long it may wait to be started, from now.")
@click.option(
    "--tag", "tags", multiple=True, metavar="TAG", help="A word about it; may be given several times."
)
@reader_options
@chosen
def command(
    chosen: Chosen,
    name: str,
    arguments: tuple[str, ...],
    args_json: str | None,
    delay: str | None,
    run_at: str | None,
    queue: str | None,
    job_id: str | None,
    expires_in: str | None,
    tags: tuple[str, ...],
) -> None:
    """Enqueue a call of a job."""
    if not is_app_named(chosen):
        raise click.UsageError("say whose job it is: -a MODULE:APP, or RQJ_APP.")
    target = resolve(chosen)
    handler = target.app.handler(name)
    shape = handler.declared.shape
    args = positional_arguments(args_json, shape) if args_json is not None else []
    kwargs = keyword_arguments(arguments, shape)
    wanted = handler.options(
        queue=queue, delay=duration(delay), run_at=_time(run_at), id=job_id, expires_in=duration(expires_in),
        tags=tags or None,
    )  # fmt: skip
    job = wanted.enqueue(*args, **kwargs)
    if chosen.json:
        say_json({"namespace": target.app.namespace, **to_json(job, whole=True)})
    else:
        say(_told(job, job_id))


def _told(job: Job[Any], own_id: str | None) -> str:
    if job.outcome == "duplicate" and job.id == own_id:
        return f"duplicate: a job {job.id} is known already, and is {job.state}"
    if job.outcome == "duplicate":
        return f"duplicate: {job.id} holds the lock, and is {job.state}"
    if job.outcome == "rejected":
        return f"rejected: {job.id} is among the dead, for {job.holder_id} holds the lock"
    return f"{job.outcome} {job.id} {call_text(job)} in queue {job.queue}"


def _time(text: str | None) -> datetime | None:
    try:
        return None if text is None else datetime.fromisoformat(text)
    except ValueError:
        raise click.UsageError(
            f"--run-at {text!r} is no time. Write it as in 2031-07-01T12:00+02:00, or 2031-07-01T10:00Z."
        ) from None
