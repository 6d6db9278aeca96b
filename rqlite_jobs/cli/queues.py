"""`rqj queues`: list queues, pause and resume them, and empty one."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

import click

from rqlite_jobs.cli.chosen import Chosen, chosen, reader_options
from rqlite_jobs.cli.consent import Consent, consent_options
from rqlite_jobs.cli.groups import Noun, example
from rqlite_jobs.cli.listing import say_page, say_rest
from rqlite_jobs.cli.tables import Column, draw
from rqlite_jobs.cli.target import Target, resolve
from rqlite_jobs.cli.text import count, say, say_json
from rqlite_jobs.cli.times import age, duration, until
from rqlite_jobs.durations import to_ms, to_text
from rqlite_jobs.errors import QueueNotFound, nearest, shown
from rqlite_jobs.inspector import QueueRow

F = TypeVar("F", bound=Callable[..., Any])

_COLUMNS = (
    Column("QUEUE", gives=True),
    Column("READY", right=True),
    Column("SCHEDULED", right=True),
    Column("WAITING FOR", right=True),
    Column("NEXT DUE", right=True),
    Column("PAUSED"),
)


def _names_argument(command: F) -> F:
    return click.argument("names", nargs=-1, required=True, metavar="QUEUE...")(command)


@click.group("queues", cls=Noun)
def command() -> None:
    """List queues, pause and resume them, and empty one."""


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
        rows = (
            (
                row.name,
                f"{row.ready:,}",
                f"{row.scheduled:,}",
                age(row.waiting_since, page.now),
                until(row.next_due_at, page.now),
                _paused(row, page.now),
            )
            for row in page
        )
        draw(_COLUMNS, rows)
    say_rest(target, page, "queue")


@command.command(
    help="Start no more jobs of queues; they take new ones, and what runs goes on."
    + example("rqj queues pause mail --for 10m", "rqj queues pause sales mail")
)
@_names_argument
@click.option("--for", "for_", metavar="DURATION", help="How long; without it, until they are resumed.")
@reader_options
@chosen
def pause(chosen: Chosen, names: tuple[str, ...], for_: str | None) -> None:
    """Pause queues."""
    length = duration(for_)
    length_ms = None if length is None else to_ms(length, what="--for")
    if length_ms == 0:
        raise click.UsageError("a pause --for 0 is none: leave --for out, and it lasts until resumed.")
    target = resolve(chosen)
    words = {name: target.app.control.pause(name, for_=length) for name in _known(target, names)}
    _tell(target, chosen, words, ", until resumed" if length_ms is None else f" for {to_text(length_ms)}")


@command.command(help="Start jobs of paused queues again." + example("rqj queues resume mail"))
@_names_argument
@reader_options
@chosen
def resume(chosen: Chosen, names: tuple[str, ...]) -> None:
    """Resume queues."""
    target = resolve(chosen)
    words = {name: target.app.control.resume(name) for name in _known(target, names)}
    _tell(target, chosen, words, "")


@command.command(
    help="Delete what waits in queues, ready and scheduled, with its locks; running jobs go on."
    + example("rqj queues purge sales", "rqj queues purge --dry-run sales mail")
)
@_names_argument
@consent_options
@reader_options
@chosen
def purge(chosen: Chosen, names: tuple[str, ...], yes: bool, dry_run: bool) -> None:
    """Empty queues."""
    target = resolve(chosen)
    names = _known(target, names)
    known = {row.name: row for row in target.inspect.queues()}
    consent, purged = Consent(yes, dry_run), dict.fromkeys(names, 0)
    waiting = sum(known[name].ready + known[name].scheduled for name in names)
    quoted = f"{'queue' if len(names) == 1 else 'queues'} {', '.join(map(repr, names))}"
    deed = f"delete {count(waiting, 'waiting job')} of {quoted} in {target.shown}"
    if waiting and consent.given(deed):
        purged = {name: target.app.control.purge(name) for name in names}
    if chosen.json:
        say_json(
            {"namespace": target.app.namespace, "dry_run": dry_run, "waiting": waiting, "deleted": purged}
        )
    elif not dry_run or not waiting:
        say(f"deleted {count(sum(purged.values()), 'job')} of {quoted}")


def _known(target: Target, names: tuple[str, ...]) -> tuple[str, ...]:
    """The queues named, each once; all of them are looked for before anything is done to the first.

    Raises:
        QueueNotFound: there is no such queue.
    """
    known = {row.name for row in target.inspect.queues()}
    for name in names:
        if name not in known:
            raise QueueNotFound(
                f"no job was ever put into a queue {shown(name)} of {target.shown}.",
                hint=nearest(name, sorted(known)) or "There is no queue yet.",
                queue=name,
            )
    return tuple(dict.fromkeys(names))


def _tell(target: Target, chosen: Chosen, words: dict[str, str], how: str) -> None:
    if chosen.json:
        say_json({"namespace": target.app.namespace, "queues": words})
        return
    for name, word in words.items():
        say(f"queue {name!r} was not paused" if word == "running" else f"{word} queue {name!r}{how}")


def _paused(row: QueueRow, now: datetime) -> str:
    if row.pause is None:
        return ""
    end = f"ends {until(row.pause.until, now)}" if row.pause.until else "until resumed"
    return f"{end}, by {row.pause.by}"
