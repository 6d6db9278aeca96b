"""What a job returned, for `rqj jobs wait` and `rqj jobs show`, and the bar that is drawn until it ends."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from rqlite_jobs.cli.chosen import Chosen
from rqlite_jobs.cli.target import Target
from rqlite_jobs.cli.text import cut, plain, remark, say_json
from rqlite_jobs.cli.times import duration
from rqlite_jobs.ending import Ending
from rqlite_jobs.errors import RqjError
from rqlite_jobs.inspector.document import data_of
from rqlite_jobs.job import Job
from rqlite_jobs.result import ending_of, value_of

NOT_KEPT = "(not kept)"


def await_job(target: Target, chosen: Chosen, id: str, timeout: str | None) -> None:
    """Wait for the end of a job, and print what it returned.

    Args:
        target: where it is.
        chosen: how to answer.
        id: which.
        timeout: how long at most; None: until it ends.

    Raises:
        JobNotFound: no job has this id.
        ResultTimeout: it has not ended in that time.
        JobFailed, JobCancelled: it will not return anything.
    """
    job = target.inspect.job(id)
    with _bar(job) as show:

        def look() -> None:
            with suppress(RqjError):  # away, or gone: how it ends is told by other means
                show(target.inspect.job(id))

        ending = ending_of(target.app, job, duration(timeout), look if sys.stderr.isatty() else None)
    lost = ending.word == "lost"
    value = None if lost else data_of(value_of(target.app, job, ending))
    if chosen.json:
        told = {
            "namespace": target.app.namespace,
            "id": id,
            "state": "done",
            "kept": not lost,
            "result": value,
        }
        say_json(told)
    elif lost:
        remark(f"Job {id} is done, and its result is not kept: result_ttl= says how long results are.")
    else:
        say_json(value)


def result_of(target: Target, job: Job[Any]) -> tuple[bool, Any]:
    """Is the result of a finished job kept, and what is it, as data for JSON?"""
    try:
        ending: Ending = ending_of(target.app, job, 0)
        return (False, None) if ending.word != "done" else (True, data_of(value_of(target.app, job, ending)))
    except RqjError:  # gone meanwhile; or a server that takes no writes, and so nobody who might wait
        return False, None


def result_text(target: Target, job: Job[Any]) -> str:
    """The result of a finished job as one line; empty for None."""
    kept, value = result_of(target, job)
    if not kept:
        return NOT_KEPT
    return "" if value is None else json.dumps(value, ensure_ascii=False)[:2000]


def progress_text(job: Job[Any]) -> str:
    """How far a job is: `40% pages`; empty if it said nothing."""
    far = job.progress
    return f"{far.value:.0%} {far.text}".rstrip() if far else ""


@contextmanager
def _bar(job: Job[Any]) -> Iterator[Callable[[Job[Any]], None]]:
    """A bar on stderr where that is a terminal; gives what to call with the job as it is now."""
    if not sys.stderr.isatty():
        yield lambda now: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[told]}", markup=False),
    )
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as progress:
        task = progress.add_task(plain(f"{job.name or job.id} {job.state}"), total=None, told="")

        def show(now: Job[Any]) -> None:
            far = now.progress
            progress.update(
                task,
                description=plain(f"{now.name or now.id} {now.state}"),
                total=1.0 if far else None,
                completed=far.value if far else 0.0,
                told=cut(progress_text(now), 60),
            )

        yield show
