"""`rqj workers`: who works, on what, and until when its lease runs."""

import click

from rqlite_jobs.cli.chosen import Chosen, chosen, reader_options
from rqlite_jobs.cli.groups import Noun, example
from rqlite_jobs.cli.listing import say_page, say_rest
from rqlite_jobs.cli.tables import Column, draw
from rqlite_jobs.cli.target import resolve
from rqlite_jobs.cli.times import ago, until
from rqlite_jobs.inspector import WorkerRow

_COLUMNS = (
    Column("WORKER"),
    Column("STATE"),
    Column("HOST", gives=True),
    Column("PID", right=True),
    Column("QUEUES", gives=True),
    Column("RUNNING", right=True),
    Column("STARTED", right=True),
    Column("LEASE ENDS", right=True),
)


@click.group("workers", cls=Noun)
def command() -> None:
    """List workers."""


@command.command(
    help="List the workers, and how many jobs each holds of those it can run at once."
    + example("rqj workers")
)
@reader_options
@chosen
def ls(chosen: Chosen) -> None:
    """List workers."""
    target = resolve(chosen)
    page = target.inspect.workers()
    if chosen.json:
        say_page(target, page, "workers")
        return
    if page.items:
        rows = (
            (
                row.id,
                row.state,
                row.host,
                str(row.pid or "-"),
                _queues(row),
                f"{row.running}/{row.concurrency or '-'}",
                ago(row.started_at, page.now),
                until(row.lease_ends_at, page.now),
            )
            for row in page
        )
        draw(_COLUMNS, rows)
    say_rest(target, page, "worker")


def _queues(row: WorkerRow) -> str:
    return ", ".join([*row.queues, *(["all"] if row.all_queues else [])]) or "-"
