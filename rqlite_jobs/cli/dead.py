"""`rqj dead`: list and show dead jobs, revive and delete them, one by one, all, or those that a filter takes."""

from datetime import datetime
from typing import Any

import click

from rqlite_jobs.cli.chosen import Chosen, chosen, reader_options
from rqlite_jobs.cli.consent import Consent, consent_options
from rqlite_jobs.cli.deeds import Deed, one_word
from rqlite_jobs.cli.groups import Noun, example
from rqlite_jobs.cli.ids import ids_argument, read_ids
from rqlite_jobs.cli.jobs import show_jobs
from rqlite_jobs.cli.listing import (
    CALL,
    ID,
    TRIES,
    call,
    filter_options,
    filters,
    list_jobs,
    page_options,
    tries,
)
from rqlite_jobs.cli.tables import Column
from rqlite_jobs.cli.target import resolve
from rqlite_jobs.cli.times import ago
from rqlite_jobs.cli.which import do_to, which_options
from rqlite_jobs.job import Job

_DEAD = frozenset({"dead"})


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


@click.group("dead", cls=Noun)
def command() -> None:
    """List, show, revive and delete dead jobs."""


@command.command(
    help="List dead jobs, the last one first; refused duplicates come behind the others."
    + example("rqj dead ls --name send_email --error timeout")
)
@filter_options
@page_options
@chosen
def ls(chosen: Chosen, limit: int, cursor: str, **said: Any) -> None:
    """List dead jobs."""
    target = resolve(chosen)
    page = target.inspect.jobs("dead", limit=limit, cursor=cursor, **filters(**said))
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
@which_options("dead jobs")
@consent_options
@reader_options
@chosen
def revive(chosen: Chosen, yes: bool, dry_run: bool, **which: Any) -> None:
    """Bring dead jobs back."""
    do_to(
        _REVIVE, chosen, Consent(yes or bool(which["ids"]), dry_run), state="dead", what="dead job", **which
    )


@command.command(
    help="Delete dead jobs with all that is known of them."
    + example("rqj dead delete 0VJ1Zq8W00k3Xb7T9aQd", "rqj dead delete --all --dry-run")
)
@which_options("dead jobs")
@consent_options
@reader_options
@chosen
def delete(chosen: Chosen, yes: bool, dry_run: bool, **which: Any) -> None:
    """Delete dead jobs."""
    do_to(_DELETE, chosen, Consent(yes, dry_run), state="dead", what="dead job", **which)
