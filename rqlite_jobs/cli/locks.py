"""`rqj locks`: which locks are held, and by whom; and letting go of one by hand."""

import sys

import click

from rqlite_jobs.cli.chosen import Chosen, chosen, reader_options
from rqlite_jobs.cli.consent import Consent, consent_options
from rqlite_jobs.cli.errors import CONFLICT
from rqlite_jobs.cli.groups import Noun, example
from rqlite_jobs.cli.listing import page_options, say_page, say_rest
from rqlite_jobs.cli.tables import Column, draw, facts
from rqlite_jobs.cli.target import resolve
from rqlite_jobs.cli.text import remark, say, say_json
from rqlite_jobs.cli.times import moment, until
from rqlite_jobs.inspector import LockRow, call_text, to_json

_COLUMNS = (
    Column("KEY", gives=True),
    Column("MODE"),
    Column("HOLDER"),
    Column("STATE"),
    Column("ENDS", right=True),
)
_RELEASED = "released"
_HOLDING = ("ready", "scheduled", "running", "parked")


@click.group("locks", cls=Noun)
def command() -> None:
    """List locks, show who holds one, and release it."""


@command.command(help="List the locks that are held." + example("rqj locks ls --limit 100"))
@page_options
@chosen
def ls(chosen: Chosen, limit: int, cursor: str) -> None:
    """List locks."""
    target = resolve(chosen)
    page = target.inspect.locks(limit=limit, cursor=cursor)
    if chosen.json:
        say_page(target, page, "locks")
        return
    if page.items:
        rows = (
            (
                row.key,
                row.mode,
                row.holder_id,
                row.holder_state,
                until(row.expires_at, page.now) if row.expires_at else "with its job",
            )
            for row in page
        )
        draw(_COLUMNS, rows)
    say_rest(target, page, "lock")


@command.command(
    help="Show who holds a lock, since when, and until when."
    + example("rqj locks show crunch_sales:book_id=42")
)
@click.argument("key")
@reader_options
@chosen
def show(chosen: Chosen, key: str) -> None:
    """Show a lock."""
    target = resolve(chosen)
    row = target.inspect.lock(key)
    (holder,) = target.inspect.look([row.holder_id])
    if chosen.json:
        say_json({"namespace": target.app.namespace, **to_json(row), "holder": to_json(holder)})
        return
    now = target.inspect.now()
    facts(
        (
            ("key", row.key),
            ("mode", row.mode),
            ("holder", row.holder_id),
            ("its job", call_text(holder, 2000) if holder.name else "-"),
            ("its state", row.holder_state),
            ("since", moment(holder.enqueued_at, now)),
            (
                "ends",
                moment(row.expires_at, now)
                if row.expires_at
                else "when its job is done, dead, or taken away",
            ),
            ("now", _meaning(row)),
        )
    )


@command.command(
    help="Free a lock by hand. If its job waits or runs, that takes --force: the job goes on without it, and the same "
    "work may run twice." + example("rqj locks release crunch_sales:book_id=42")
)
@click.argument("key")
@click.option("--force", is_flag=True, help="Also if its job waits or runs.")
@consent_options
@reader_options
@chosen
def release(chosen: Chosen, key: str, force: bool, yes: bool, dry_run: bool) -> None:
    """Free a lock."""
    target = resolve(chosen)
    row = target.inspect.lock(key)
    word = "held"
    if row.holder_state not in _HOLDING or force:
        deed = f"release the lock {key!r} of job {row.holder_id} ({row.holder_state}) in {target.shown}"
        word = f"would be {_RELEASED}"
        if Consent(yes, dry_run).given(deed):
            word = target.app.control.release(key, force=force)[key]
    if chosen.json:
        told = {"key": key, "word": word, "holder_id": row.holder_id, "dry_run": dry_run}
        say_json({"namespace": target.app.namespace, **told})
    elif word == "held":
        remark(
            f"not released: job {row.holder_id} holds it and is {row.holder_state}; --force frees it all the same"
        )
    elif not dry_run:
        say(f"released {key}" if word == _RELEASED else f"{key} was free by then")
    if word == "held":
        sys.exit(CONFLICT)


def _meaning(row: LockRow) -> str:
    """What an enqueue with this lock would meet."""
    if row.mode == "until_expired" or row.holder_state in _HOLDING:
        return "an enqueue of the same work is answered with the holder, as its on_conflict says"
    return "its job does not hold it any more: the next enqueue of the same work takes it over"
