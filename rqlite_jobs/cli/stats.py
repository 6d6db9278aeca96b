"""`rqj stats`: all numbers of a namespace, read at one instant."""

from itertools import zip_longest

import click

from rqlite_jobs.cli.chosen import Chosen, chosen, reader_options
from rqlite_jobs.cli.groups import example
from rqlite_jobs.cli.tables import Column, draw
from rqlite_jobs.cli.target import resolve
from rqlite_jobs.cli.text import say, say_json
from rqlite_jobs.inspector import to_json

_NOW = ("ready", "scheduled", "running", "parked", "dead", "locks", "workers")
_TOTAL = (
    "enqueued", "done", "died", "failed", "attempts", "crashed", "refused", "cancelled", "deleted", "expired",
    "superseded",
)  # fmt: skip


@click.command("stats", help="Show all numbers of a namespace." + example("rqj stats -n bookstore"))
@reader_options
@chosen
def command(chosen: Chosen) -> None:
    """Show all numbers of a namespace."""
    target = resolve(chosen)
    stats = target.inspect.stats()
    found = to_json(stats)
    if chosen.json:
        say_json({"namespace": target.app.namespace, **found})
    else:
        say(f"{target.shown}")
        click.echo()
        rows = [
            (now, f"{found[now]:,}" if now else "", ever, f"{found[ever]:,}")
            for now, ever in zip_longest(_NOW, _TOTAL, fillvalue="")
        ]
        draw((Column("NOW"), Column("", right=True), Column("TOTAL"), Column("", right=True)), rows)
        if stats.paused:
            click.echo()
            say(f"paused: {', '.join(stats.paused)}")
    if not found["enqueued"]:
        target.explain_nothing()
