"""`rqj scheduled`: the jobs that wait for their time."""

from datetime import datetime
from typing import Any

import click

from rqlite_jobs.cli.chosen import Chosen, chosen
from rqlite_jobs.cli.groups import Noun, example
from rqlite_jobs.cli.listing import (
    CALL,
    ID,
    QUEUE,
    TRIES,
    call,
    filter_options,
    filters,
    list_jobs,
    page_options,
    tries,
)
from rqlite_jobs.cli.tables import Column
from rqlite_jobs.cli.target import resolve
from rqlite_jobs.cli.times import until
from rqlite_jobs.job import Job


def _why(job: Job[Any], now: datetime) -> str:
    if job.attempts:
        return f"retry after {job.last_error}"
    return job.last_error or "delayed"


_COLUMNS = (
    (ID, lambda job, now: job.id),
    (QUEUE, lambda job, now: job.queue),
    (CALL, call),
    (Column("DUE", right=True), lambda job, now: until(job.run_at, now)),
    (TRIES, tries),
    (Column("WHY", gives=True), _why),
)


@click.group("scheduled", cls=Noun)
def command() -> None:
    """List the jobs that wait for their time."""


@command.command(
    help="List delayed jobs and those that wait for a retry, queue by queue, the next first."
    + example("rqj scheduled ls --queue mail")
)
@filter_options
@page_options
@chosen
def ls(chosen: Chosen, limit: int, cursor: str, **said: Any) -> None:
    """List scheduled jobs."""
    target = resolve(chosen)
    page = target.inspect.jobs("scheduled", limit=limit, cursor=cursor, **filters(**said))
    list_jobs(target, chosen, page, "scheduled job", _COLUMNS)
