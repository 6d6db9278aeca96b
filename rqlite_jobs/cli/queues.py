"""`rqj queues`: list queues, pause, resume and empty them."""

import getpass
import socket
from collections.abc import Mapping
from datetime import datetime

import click

from rqlite_jobs.cli.chosen import Chosen, chosen, reader_options
from rqlite_jobs.cli.consent import Consent, consent_options
from rqlite_jobs.cli.groups import Noun, example
from rqlite_jobs.cli.listing import say_page, say_rest
from rqlite_jobs.cli.tables import Column, draw
from rqlite_jobs.cli.target import Target, resolve
from rqlite_jobs.cli.text import count, say, say_json
from rqlite_jobs.cli.times import age, until
from rqlite_jobs.durations import to_ms, to_text
from rqlite_jobs.errors import BadDuration, QueueNotFound, nearest, shown
from rqlite_jobs.inspector.rows import QueueRow

_COLUMNS = (
    Column("QUEUE", gives=True),
    Column("READY", right=True),
    Column("SCHEDULED", right=True),
    Column("WAITING FOR", right=True),
    Column("NEXT DUE", right=True),
)
_PAUSED = Column("PAUSED", gives=True)


@click.group("queues", cls=Noun)
def command() -> None:
    """List queues, pause, resume and empty them."""


@command.command(
    help="List the queues, and how long the next job of each has been waiting." + example("rqj queues")
)
@reader_options
@chosen
def ls(chosen: Chosen) -> None:
    """List queues."""
    target = resolve(chosen)
    page = target.inspect.queues()
    if chosen.json:
        say_page(target, page, "queues")
        return
    if page.items:
        # A column that is nearly always empty is drawn only when it is not.
        paused = any(row.paused_since for row in page)
        rows = (
            (
                row.name,
                f"{row.ready:,}",
                f"{row.scheduled:,}",
                age(row.waiting_since, page.now),
                until(row.next_due_at, page.now),
                *([_paused(row, page.now)] if paused else []),
            )
            for row in page
        )
        draw((*_COLUMNS, _PAUSED) if paused else _COLUMNS, rows)
    say_rest(target, page, "queue")


@command.command(
    help="Delete what waits in queues, ready and scheduled, with its locks; running jobs go on."
    + example("rqj queues purge sales", "rqj queues purge --dry-run sales mail")
)
@click.argument("names", nargs=-1, required=True, metavar="QUEUE...")
@consent_options
@reader_options
@chosen
def purge(chosen: Chosen, names: tuple[str, ...], yes: bool, dry_run: bool) -> None:
    """Empty queues."""
    target = resolve(chosen)
    names = tuple(dict.fromkeys(names))
    known = {row.name: row for row in target.inspect.queues()}
    for name in names:
        if name not in known:
            raise _not_found(target, name, known)
    consent, purged = Consent(yes, dry_run), dict.fromkeys(names, 0)
    waiting = sum(known[name].ready + known[name].scheduled for name in names)
    quoted = f"{'queue' if len(names) == 1 else 'queues'} {', '.join(map(repr, names))}"
    deed = f"delete {count(waiting, 'waiting job')} of {quoted} in {target.shown}"
    if waiting and consent.given(deed):
        for name in names:
            left = known[name].ready + known[name].scheduled
            # Not until it is empty: a producer that is faster than we are would keep us here.
            while left > 0:
                ready, scheduled, behind = target.app.run(target.app.operations.purge(name))
                purged[name] += ready + scheduled
                left = min(left - ready - scheduled, behind) if ready + scheduled else 0
    if chosen.json:
        say_json(
            {"namespace": target.app.namespace, "dry_run": dry_run, "waiting": waiting, "deleted": purged}
        )
    elif not dry_run or not waiting:
        say(f"deleted {count(sum(purged.values()), 'job')} of {quoted}")


@command.command(
    help="Start no more jobs of queues until they are resumed, or for a while. They take new jobs as before; what runs "
    "goes on." + example("rqj queues pause sales", "rqj queues pause --for 10m sales mail")
)
@click.argument("names", nargs=-1, required=True, metavar="QUEUE...")
@click.option("--for", "for_", metavar="DURATION", help="Resume by itself after this: 10m, 2h.")
@reader_options
@chosen
def pause(chosen: Chosen, names: tuple[str, ...], for_: str | None) -> None:
    """Pause queues."""
    for_ms = 0 if for_ is None else to_ms(for_, what="--for")
    if for_ is not None and for_ms == 0:
        raise BadDuration("--for is 0, so nothing would be paused.", hint="Write --for 10m, or leave it out.")
    _steer(chosen, names, for_ms)


@command.command(help="Start the jobs of paused queues again." + example("rqj queues resume sales"))
@click.argument("names", nargs=-1, required=True, metavar="QUEUE...")
@reader_options
@chosen
def resume(chosen: Chosen, names: tuple[str, ...]) -> None:
    """Resume queues."""
    _steer(chosen, names, None)


def _steer(chosen: Chosen, names: tuple[str, ...], for_ms: int | None) -> None:
    """Pause queues for a while (0: until they are resumed), or resume them (None)."""
    target = resolve(chosen)
    names = tuple(dict.fromkeys(names))
    known = {row.name: row for row in target.inspect.queues()}
    for name in names:
        if name not in known:
            raise _not_found(target, name, known)
    by = f"{getpass.getuser()}@{socket.gethostname()}"[:100]
    words = {name: target.app.run(target.app.operations.pause(name, for_ms, by)) for name in names}
    if chosen.json:
        say_json({"namespace": target.app.namespace, "queues": words})
        return
    for name, word in words.items():
        told = {
            "paused": "paused",
            "resumed": "resumed",
            "running": "was not paused:",
            "unknown": "is unknown:",
        }[word]
        after = f" for {to_text(for_ms)}" if for_ms else ""
        say(f"{told}{after} queue {name!r} of {target.shown}")


def _paused(row: QueueRow, now: datetime) -> str:
    if row.paused_since is None:
        return "-"
    ends = "till it is resumed" if row.paused_until is None else f"ends {until(row.paused_until, now)}"
    return f"{ends}, by {row.paused_by}"


def _not_found(target: Target, name: str, known: Mapping[str, QueueRow]) -> QueueNotFound:
    return QueueNotFound(
        f"no job was ever put into a queue {shown(name)} of {target.shown}.",
        hint=nearest(name, known) or "There is no queue yet.",
        queue=name,
    )
