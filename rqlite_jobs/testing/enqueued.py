"""Was this job enqueued? If not: what was, and where it differs."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, ParamSpec, TypeVar, cast, overload

from rqlite_jobs.app import App
from rqlite_jobs.codec import canonical
from rqlite_jobs.errors import RqjError, shown
from rqlite_jobs.handler import Handler
from rqlite_jobs.inspector.jobs import call_text
from rqlite_jobs.job import Job

P = ParamSpec("P")
R = TypeVar("R")

_WAITING = ("ready", "scheduled")
_SHOWN_MAX = 20


def assert_enqueued(handler: Handler[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
    """Fail unless a job of this handler with these arguments waits to run, now or later.

    Defaults count as if they were given, and `f(1)` is `f(x=1)`; 1, 1.0 and True differ, as they do in a payload.

    Args:
        handler: of which job.
        args, kwargs: its arguments, all of them.

    Returns:
        The job, the next one to run if there are several; its `queue`, `state` and `run_at` can be looked at.

    Raises:
        AssertionError: there is none; the message lists the jobs of this handler and where they differ.
        WrongArguments: the arguments do not fit the handler's signature, so no job can have them.

    Cost: reads all waiting jobs.

    Example: `assert_enqueued(crunch_sales, 42)`.
    """
    wanted = handler.declared.binder.bind(args, kwargs)
    app = cast(App, handler._home)
    found: list[Job[Any]] = []
    for job in _jobs(app, None):
        if job.name == handler.name and job.state in _WAITING and not _differences(handler, wanted, job):
            return job
        found.append(job)
    raise AssertionError(_missing(app, handler, wanted, _call(handler, args, kwargs), found))


@overload
def assert_not_enqueued(handler: Handler[..., Any], /) -> None: ...
@overload
def assert_not_enqueued(handler: Handler[P, Any], /, *args: P.args, **kwargs: P.kwargs) -> None: ...
def assert_not_enqueued(handler: Any, /, *args: Any, **kwargs: Any) -> None:
    """Fail if a job of this handler with these arguments waits to run; without arguments: if any of it does.

    Args:
        handler: of which job.
        args, kwargs: its arguments, all of them, or none at all.

    Raises:
        AssertionError: there is one; the message lists those that wait.
        WrongArguments: the arguments do not fit the handler's signature, so no job can have them.

    Cost: reads all waiting jobs.

    Example: `assert_not_enqueued(crunch_sales, 42)`.
    """
    wanted = handler.declared.binder.bind(args, kwargs) if args or kwargs else None
    app = cast(App, handler._home)
    found = [
        job
        for job in _jobs(app, _WAITING)
        if job.name == handler.name and (wanted is None or not _differences(handler, wanted, job))
    ]
    if found:
        what = f"job {handler.name!r}" if wanted is None else f"job {_call(handler, args, kwargs)}"
        waits = "one waits" if len(found) == 1 else f"{len(found)} wait"
        lines = [f"no {what} should wait in the namespace {app.namespace!r}, and {waits}:"]
        lines += [f"  {job.state:<9} {call_text(job)} in queue {job.queue}" for job in found[:_SHOWN_MAX]]
        if len(found) > _SHOWN_MAX:
            lines.append(f"  and {len(found) - _SHOWN_MAX} more")
        raise AssertionError("\n".join(lines))


def _call(handler: Handler[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    return call_text(Job("", handler.name, args=args, kwargs=dict(kwargs)))


def _jobs(app: App, states: tuple[str, ...] | None) -> Iterator[Job[Any]]:
    """The jobs in some states; None: all of the namespace, those first that wait."""
    for state in states or (*_WAITING, None):
        cursor = ""
        while True:
            page = app.inspect.jobs(state, cursor=cursor)
            yield from (job for job in page.items if state or job.state not in _WAITING)
            cursor = page.next
            if not cursor:
                break


def _differences(handler: Handler[..., Any], wanted: Mapping[str, Any], job: Job[Any]) -> str:
    """Where a job's arguments are not the wanted ones; empty if they are."""
    try:
        has = handler.declared.binder.bind(job.args, job.kwargs)
    except RqjError as error:
        return error.message
    return ", ".join(
        f"{name} is {shown(has[name])}"
        for name, value in wanted.items()
        if canonical(has[name]) != canonical(value)
    )


def _missing(
    app: App, handler: Handler[..., Any], wanted: Mapping[str, Any], call: str, found: list[Job[Any]]
) -> str:
    """The message: what was looked for, and what is there instead."""
    own = [job for job in found if job.name == handler.name]
    others = Counter(job.name or "?" for job in found if job.name != handler.name)
    lines = [f"no job {call} waits in the namespace {app.namespace!r}."]
    lines += (
        [f"Of {handler.name!r} there {'is' if len(own) == 1 else 'are'}:"]
        if own
        else [f"There is no {handler.name!r}."]
    )
    for job in own[:_SHOWN_MAX]:
        why = _differences(handler, wanted, job) or f"it is {job.state} and does not wait any more"
        lines.append(f"  {job.state:<9} {call_text(job)}: {why}")
    if len(own) > _SHOWN_MAX:
        lines.append(f"  and {len(own) - _SHOWN_MAX} more")
    if others:
        lines.append(
            "Of other jobs: " + ", ".join(f"{count} {name}" for name, count in others.most_common(_SHOWN_MAX))
        )
    return "\n".join(lines)
