"""Lists of jobs: the options they share, and how they are drawn."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar

import click

from rqlite_jobs.cli.chosen import Chosen, reader_options
from rqlite_jobs.cli.tables import Column, draw
from rqlite_jobs.cli.target import Target
from rqlite_jobs.cli.text import count, remark, say, say_json
from rqlite_jobs.cli.times import age, ago, until
from rqlite_jobs.inspector import Page, call_text, to_json
from rqlite_jobs.job import Job

F = TypeVar("F", bound=Callable[..., Any])
Cell = Callable[[Job[Any], datetime], str]

ID = Column("ID")
QUEUE = Column("QUEUE")
CALL = Column("CALL", gives=True)
TRIES = Column("TRIES", right=True)


def page_options(command: F) -> F:
    """Give a command that lists `--limit` and `--cursor`, and the options of a reader."""
    command = reader_options(command)
    command = click.option(
        "--cursor", default="", metavar="CURSOR", help="Go on where a page ended; it says what to type."
    )(command)
    return click.option(
        "-l",
        "--limit",
        type=click.IntRange(1, 1000),
        default=20,
        show_default=True,
        help="How many to list at most.",
    )(command)


def filter_options(command: F) -> F:
    """Give a command `--queue` and `--name`."""
    command = click.option("--name", metavar="NAME", help="Only of the job declared under this name.")(
        command
    )
    return click.option("-q", "--queue", metavar="QUEUE", help="Only of this queue.")(command)


def list_jobs(
    target: Target, chosen: Chosen, page: Page[Job[Any]], what: str, columns: Sequence[tuple[Column, Cell]]
) -> None:
    """Print a page of jobs.

    Args:
        target: where they are.
        chosen: how to answer.
        page: what was read.
        what: what they are called: `dead job`.
        columns: the columns, and what makes a cell of a job and the server's time.
    """
    if chosen.json:
        say_page(target, page, "jobs")
        return
    if page.items:
        rows = ([cell(job, page.now) for _, cell in columns] for job in page)
        draw([column for column, _ in columns], rows)
    say_rest(target, page, what)


def say_page(target: Target, page: Page[Any], name: str) -> None:
    """Print a page as a JSON document; its items stand under `name`."""
    if not page.items:
        target.explain_nothing()
    items = {"count": page.count, name: to_json(page.items), "next": page.next or None}
    say_json({"namespace": target.app.namespace, "now": to_json(page.now), **items})


def say_rest(target: Target, page: Page[Any], what: str) -> None:
    """Say what a page does not show: that there is nothing, or how to go on."""
    if not page.items:
        say(f"No {what}s{' so far' if page.next else ''}.")
        target.explain_nothing()
    if page.next:
        of = "" if page.count is None else f" of {count(page.count, what)}"
        remark(f"{len(page)}{of} shown; the same command goes on with --cursor {page.next}")


def when(job: Job[Any], now: datetime) -> str:
    """When a job came where it is, or will leave it."""
    if job.state == "scheduled":
        return until(job.run_at, now)
    if job.state == "running":
        return f"for {age(job.started_at, now)}"
    return ago(job.finished_at or job.enqueued_at, now)


def call(job: Job[Any], now: datetime) -> str:
    """A job's call."""
    return call_text(job)


def tries(job: Job[Any], now: datetime) -> str:
    """How many attempts there were, and how many of them crashed."""
    return f"{job.attempts} ({job.crashes} crashed)" if job.crashes else str(job.attempts)
