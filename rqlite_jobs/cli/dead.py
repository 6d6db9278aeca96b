"""`rqj dead`: list and show dead jobs, revive and delete them, one by one, all, or those that a filter takes."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

import click

from rqlite_jobs.cli.chosen import Chosen, chosen, reader_options
from rqlite_jobs.cli.consent import Consent, consent_options
from rqlite_jobs.cli.deeds import Deed, do, one_word
from rqlite_jobs.cli.groups import Noun, example
from rqlite_jobs.cli.ids import ids_argument, optional_ids, read_ids
from rqlite_jobs.cli.jobs import show_jobs
from rqlite_jobs.cli.listing import (
    CALL,
    ID,
    TRIES,
    call,
    filter_options,
    list_jobs,
    page_options,
    tries,
)
from rqlite_jobs.cli.tables import Column
from rqlite_jobs.cli.target import Target, resolve
from rqlite_jobs.cli.text import say, say_json
from rqlite_jobs.cli.times import ago
from rqlite_jobs.job import Job

F = TypeVar("F", bound=Callable[..., Any])
_DEAD = frozenset({"dead"})
_READ_STEP = 1000


def _error(job: Job[Any], now: datetime) -> str:
    return job.last_error or "-"


_COLUMNS = (
    (ID, lambda job, now: job.id),
    (CALL, call),
    (TRIES, tries),
    (Column("DIED", right=True), lambda job, now: ago(job.finished_at, now)),
    (Column("ERROR", gives=True), _error),
)
_REVIVE = Deed("revive", "revived", _DEAD, lambda ops, ids: ops.revive(ids))
_DELETE = Deed("delete", "deleted", _DEAD, lambda ops, ids: one_word(ops.delete(ids)))


def _which_options(command: F) -> F:
    """Give a command what chooses dead jobs: ids, `--all`, or a filter."""
    command = filter_options(_error_option(command))
    command = click.option("--all", "everything", is_flag=True, help="All dead jobs.")(command)
    return optional_ids(command)


def _error_option(command: F) -> F:
    return click.option("--error", metavar="TEXT", help="Only with this text in their last error.")(command)


@click.group("dead", cls=Noun)
def command() -> None:
    """List, show, revive and delete dead jobs."""


@command.command(
    help="List dead jobs, the last one first; refused duplicates come behind the others."
    + example("rqj dead ls --name send_email --error timeout")
)
@_error_option
@filter_options
@page_options
@chosen
def ls(
    chosen: Chosen, queue: str | None, name: str | None, error: str | None, limit: int, cursor: str
) -> None:
    """List dead jobs."""
    target = resolve(chosen)
    page = target.inspect.jobs("dead", queue=queue, name=name, error=error, limit=limit, cursor=cursor)
    list_jobs(target, chosen, page, "dead job", _COLUMNS)


@command.command(help="Show all that is known of dead jobs." + example("rqj dead show 0VJ1Zq8W00k3Xb7T9aQd"))
@ids_argument
@reader_options
@chosen
def show(chosen: Chosen, ids: tuple[str, ...]) -> None:
    """Show dead jobs."""
    show_jobs(resolve(chosen), chosen, read_ids(ids))


@command.command(
    help="Bring dead jobs back: ready, with attempts beginning at 0. More than one is asked for."
    + example("rqj dead revive 0VJ1Zq8W00k3Xb7T9aQd", "rqj dead revive --name send_email --error timeout")
)
@_which_options
@consent_options
@reader_options
@chosen
def revive(chosen: Chosen, yes: bool, dry_run: bool, **which: Any) -> None:
    """Bring dead jobs back."""
    _each(_REVIVE, chosen, Consent(yes or bool(which["ids"]), dry_run), **which)


@command.command(
    help="Delete dead jobs with all that is known of them."
    + example("rqj dead delete 0VJ1Zq8W00k3Xb7T9aQd", "rqj dead delete --all --dry-run")
)
@_which_options
@consent_options
@reader_options
@chosen
def delete(chosen: Chosen, yes: bool, dry_run: bool, **which: Any) -> None:
    """Delete dead jobs."""
    _each(_DELETE, chosen, Consent(yes, dry_run), **which)


def _each(
    deed: Deed,
    chosen: Chosen,
    consent: Consent,
    ids: tuple[str, ...],
    everything: bool,
    queue: str | None,
    name: str | None,
    error: str | None,
) -> None:
    filters = {"queue": queue, "name": name, "error": error}
    filtered = any(value is not None for value in filters.values())
    if bool(ids) + everything + filtered != 1:
        raise click.UsageError(
            f"say which dead jobs to {deed.verb}: either ids, or --all, or any of --queue, --name, --error."
        )
    target = resolve(chosen)
    if ids:
        do(deed, target, chosen, consent, target.inspect.look(read_ids(ids)))
    found = _chosen_by(target, filters)
    if not found:
        if chosen.json:
            told = {"namespace": target.app.namespace, "verb": deed.verb, "dry_run": consent.dry_run}
            say_json({**told, "count": 0, "jobs": []})
        else:
            say("No dead job is like that." if filtered else "No dead jobs.")
        target.explain_nothing()
        return
    do(deed, target, chosen, consent, found)


def _chosen_by(target: Target, filters: dict[str, str | None]) -> list[Job[Any]]:
    """All dead jobs that the filters take, the oldest first: they go back in the order they came."""
    found: list[Job[Any]] = []
    cursor = ""
    while True:
        page = target.inspect.jobs("dead", cursor=cursor, limit=_READ_STEP, **filters)
        found += page.items
        cursor = page.next
        if not cursor:
            return found[::-1]
