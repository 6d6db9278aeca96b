"""`rqj queues`: list queues, and empty one."""

import click

from rqlite_jobs.cli.chosen import Chosen, chosen, reader_options
from rqlite_jobs.cli.consent import Consent, consent_options
from rqlite_jobs.cli.groups import Noun, example
from rqlite_jobs.cli.listing import say_page, say_rest
from rqlite_jobs.cli.tables import Column, draw
from rqlite_jobs.cli.target import resolve
from rqlite_jobs.cli.text import count, say, say_json
from rqlite_jobs.cli.times import age, until
from rqlite_jobs.errors import QueueNotFound, nearest, shown

_COLUMNS = (
    Column("QUEUE", gives=True),
    Column("READY", right=True),
    Column("SCHEDULED", right=True),
    Column("WAITING FOR", right=True),
    Column("NEXT DUE", right=True),
)


@click.group("queues", cls=Noun)
def command() -> None:
    """List queues, and empty one."""


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
            )
            for row in page
        )
        draw(_COLUMNS, rows)
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
            raise QueueNotFound(
                f"no job was ever put into a queue {shown(name)} of {target.shown}.",
                hint=nearest(name, known) or "There is no queue yet.",
                queue=name,
            )
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
