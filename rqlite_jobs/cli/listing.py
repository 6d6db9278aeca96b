"""Lists of jobs: the options they share, and how they are drawn."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar

import click

from rqlite_jobs.cli.arguments import wanted_argument
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
    """Give a command the options that choose jobs by what they are; `filters` makes a filter of them."""
    for option in (
        click.option(
            "--text", metavar="TEXT", help="Only with this text in their payload: name, arguments and tags, as JSON."
        ),
        click.option("--error", metavar="TEXT", help="Only with this text in their last error."),
        click.option(
            "--arg", "args", metavar="NAME=TEXT", multiple=True,
            help="Only called with this argument; NAME:=JSON: of that very type. Without --app the first one given by "
            "position is 0.",
        ),
        click.option("--tag", metavar="TAG", help="Only with this tag."),
        click.option("--name", metavar="NAME", help="Only of the job declared under this name."),
        click.option("-q", "--queue", metavar="QUEUE", help="Only of this queue."),
    ):  # fmt: skip
        command = option(command)
    return command


def filters(
    *,
    queue: str | None,
    name: str | None,
    tag: str | None,
    args: tuple[str, ...],
    error: str | None,
    text: str | None,
) -> dict[str, Any]:
    """What the options of `filter_options` said, as arguments of `Inspector.jobs`; without what was not said.

    Raises:
        UsageError: an argument that is neither name=text nor name:=json, or is given twice.
    """
    arg: dict[str, Any] = {}
    for one in args:
        argument, value = wanted_argument(one)
        if argument in arg:
            raise click.UsageError(f"argument {argument!r} is given twice.")
        arg[argument] = value
    said = {"queue": queue, "name": name, "tag": tag, "arg": arg or None, "error": error, "text": text}
    return {option: value for option, value in said.items() if value is not None}


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
    items: dict[str, Any] = {"count": page.count}
    if page.looked is not None:
        items |= {"looked": page.looked, "among": page.among}
    items |= {name: to_json(page.items), "next": page.next or None}
    say_json({"namespace": target.app.namespace, "now": to_json(page.now), **items})


def say_rest(target: Target, page: Page[Any], what: str) -> None:
    """Say what a page does not show: that there is nothing, or how to go on."""
    if not page.items:
        say(f"No {what}s{' so far' if page.next else ''}.")
        target.explain_nothing()
    if page.next:
        far = f"{len(page)} shown"
        if page.count is not None:
            far = f"{len(page)} of {count(page.count, what)} shown"
        elif page.looked is not None and page.among is not None:
            far += f", looked at {page.looked:,} of {max(page.looked, page.among):,}"
        remark(f"{far}; the same command goes on with --cursor {page.next}")


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
