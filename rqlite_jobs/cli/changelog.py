"""`rqj changelog`: who did what, and what befell jobs and locks by themselves."""

from collections.abc import Sequence

import click

from rqlite_jobs.changelog import ACTS
from rqlite_jobs.cli.chosen import Chosen, chosen
from rqlite_jobs.cli.groups import Noun, example
from rqlite_jobs.cli.listing import page_options, say_page, say_rest
from rqlite_jobs.cli.tables import Column, draw
from rqlite_jobs.cli.target import resolve
from rqlite_jobs.cli.text import cut
from rqlite_jobs.cli.times import ago
from rqlite_jobs.durations import to_text
from rqlite_jobs.inspector import ChangeRow

_COLUMNS = (
    Column("WHEN", right=True),
    Column("ACT"),
    Column("BY", gives=True),
    Column("JOBS", right=True),
    Column("WHAT", gives=True),
)
_BY_MAX = 30  # of a table; a name may have 100 characters


@click.group("changelog", cls=Noun)
def command() -> None:
    """List who did what, and when."""


@command.command(
    help="List what operators did, and what befell jobs and locks by themselves, the last first."
    + example("rqj changelog --act pause", "rqj changelog ls --id 0VJ1Zq8W00k3Xb7T9aQd")
)
@click.option("--id", "job_id", metavar="ID", help="Only lines that name this job.")
@click.option("--act", type=click.Choice(ACTS), metavar="ACT", help=f"Only one of: {', '.join(ACTS)}.")
@page_options
@chosen
def ls(chosen: Chosen, act: str | None, job_id: str | None, limit: int, cursor: str) -> None:
    """List who did what, and when."""
    target = resolve(chosen)
    page = target.inspect.changelog(act=act, id=job_id, limit=limit, cursor=cursor)
    if chosen.json:
        say_page(target, page, "changes")
        return
    if page.items:
        rows = (
            (
                ago(row.at, page.now),
                row.act,
                cut(row.by, _BY_MAX),
                f"{row.count:,}" if row.count else "-",
                _what(row),
            )
            for row in page
        )
        draw(_COLUMNS, rows)
    say_rest(target, page, "change")


def _what(row: ChangeRow) -> str:
    """To what it was done: the first of many, and how many more there were."""
    ids = _some(row.ids, row.count)
    keys, others = _some(row.lock_keys, row.count), _some(row.other_ids, row.count)
    if row.act == "pause":
        return f"queue {row.queue} " + (f"for {to_text(row.for_ms)}" if row.for_ms else "until resumed")
    if row.act == "release":
        return f"{keys}, held by {ids}{', by force' if row.force else ''}"
    if row.act == "reject":
        return f"{ids}: {others} holds {keys}"
    if row.act == "takeover":
        return f"{ids}: {keys} was left by {others}"
    if row.act == "recover":
        crashed = f", {row.crashed:,} crashed" if row.crashed else ""
        return f"from worker {_some(row.workers, len(row.workers))}{crashed}"
    if row.queue is not None:
        return f"queue {row.queue}"
    return f"{ids}: {row.why}" if row.why else ids


def _some(names: Sequence[str], count: int) -> str:
    if not names:
        return "-"
    return names[0] if count < 2 else f"{names[0]} and {count - 1:,} more"
