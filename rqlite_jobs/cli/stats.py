"""`rqj stats`: all numbers of a namespace, read at one instant; or what its last minutes or days have counted."""

from itertools import zip_longest

import click

from rqlite_jobs.cli.chosen import Chosen, chosen, reader_options
from rqlite_jobs.cli.groups import example
from rqlite_jobs.cli.listing import say_page
from rqlite_jobs.cli.tables import Column, draw, spark
from rqlite_jobs.cli.target import Target, resolve
from rqlite_jobs.cli.text import say, say_json
from rqlite_jobs.cli.times import age
from rqlite_jobs.counters import COUNTERS
from rqlite_jobs.inspector import HistoryRow, Page, to_json
from rqlite_jobs.inspector.questions import HISTORY_MAX

_NOW = ("ready", "scheduled", "running", "parked", "dead", "locks", "workers")
_TOTAL = (
    "enqueued", "done", "died", "failed", "attempts", "crashed", "refused", "cancelled", "deleted", "expired",
    "superseded",
)  # fmt: skip
_ALWAYS = ("enqueued", "done", "failed", "died")
_FORMS = {"minute": "%H:%M", "day": "%Y-%m-%d"}
_SPARKED = 60


@click.command(
    "stats",
    help="Show all numbers of a namespace, or their history."
    + example("rqj stats -n bookstore", "rqj stats --history minute --last 30"),
)
@click.option(
    "--history", type=click.Choice(tuple(_FORMS)), help="What each of the last minutes or days counted."
)
@click.option(
    "--last",
    type=click.IntRange(1, 1440),
    metavar="N",
    help="With --history: how many, up to 1,440 minutes or 366 days.  [default: 60]",
)
@reader_options
@chosen
def command(chosen: Chosen, history: str | None, last: int | None) -> None:
    """Show all numbers of a namespace."""
    if history is None and last is not None:
        raise click.UsageError("--last says how far back --history goes: --history minute, or --history day.")
    if history is not None and (last or 1) > HISTORY_MAX[history]:
        raise click.UsageError(
            f"--last {last} is too far back: at most {HISTORY_MAX[history]:,} by {history}."
        )
    target = resolve(chosen)
    if history is None:
        _numbers(target, chosen)
    else:
        _history(target, chosen, history, target.inspect.history(history, last=last or _SPARKED))


def _numbers(target: Target, chosen: Chosen) -> None:
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
        click.echo()
        if stats.waiting_since:
            queue, since = min(stats.waiting_since.items(), key=lambda item: item[1])
            say(f"longest wait: {age(since, stats.now)}, in {queue}")
        if stats.paused:
            say(f"paused: {', '.join(stats.paused)}")
    if not found["enqueued"]:
        target.explain_nothing()


def _history(target: Target, chosen: Chosen, by: str, page: Page[HistoryRow]) -> None:
    if chosen.json:
        say_page(target, page, "history")
        return
    counted = [row for row in page if any(getattr(row, name) for name in COUNTERS)]
    span = f"{len(page):,} {by}{'' if len(page) == 1 else 's'}"
    if not counted:
        say(f"Nothing was counted in the last {span}.")
        target.explain_nothing()
        return
    say(f"{target.shown}, the last {span}, UTC")
    click.echo()
    for name in ("enqueued", "done"):
        if line := spark([getattr(row, name) for row in page.items[-_SPARKED:]]):
            click.echo(f"{name:<9} {line}")
    click.echo()
    shown = [name for name in _TOTAL if name in _ALWAYS or any(getattr(row, name) for row in counted)]
    columns = [Column(by.upper()), *(Column(name.upper(), right=True) for name in shown)]
    draw(
        columns,
        ([f"{row.start:{_FORMS[by]}}", *(f"{getattr(row, name):,}" for name in shown)] for row in counted),
    )
