"""`rqj jobs`: list and show jobs, wait for one, cancel, retry, delete and bury them."""

from typing import Any

import click

from rqlite_jobs.cli.awaited import await_job, progress_text, result_of, result_text
from rqlite_jobs.cli.chosen import Chosen, chosen, reader_options
from rqlite_jobs.cli.consent import Consent, consent_options
from rqlite_jobs.cli.deeds import Deed, do, one_word
from rqlite_jobs.cli.groups import Noun, example
from rqlite_jobs.cli.ids import ids_argument, read_ids
from rqlite_jobs.cli.listing import (
    CALL,
    ID,
    QUEUE,
    TRIES,
    call,
    filter_options,
    filters,
    list_jobs,
    page_options,
    tries,
    when,
)
from rqlite_jobs.cli.tables import Column, facts
from rqlite_jobs.cli.target import Target, resolve
from rqlite_jobs.cli.text import remark, say, say_json
from rqlite_jobs.cli.times import lasted, moment, until
from rqlite_jobs.cli.which import do_to, which_options
from rqlite_jobs.errors import JobNotFound
from rqlite_jobs.inspector import call_text, to_json
from rqlite_jobs.job import Job

_STATES = ("running", "ready", "scheduled", "dead", "done")
_COLUMNS = (
    (ID, lambda job, now: job.id),
    (Column("STATE"), lambda job, now: job.state),
    (QUEUE, lambda job, now: job.queue),
    (CALL, call),
    (TRIES, tries),
    (Column("WHEN", right=True), when),
)

WAITING = frozenset({"ready", "scheduled"})
CANCEL = Deed("cancel", "cancelled", WAITING, lambda ops, ids: one_word(ops.cancel(ids)))
DELETE = Deed(
    "delete",
    "deleted",
    frozenset({"ready", "scheduled", "dead", "done", "malformed"}),
    lambda ops, ids: one_word(ops.delete(ids)),
)
RETRY = Deed(
    "retry",
    "retried",
    frozenset({"scheduled"}),
    lambda ops, ids: one_word(ops.retry(ids)),
    lambda job: job.attempts > 0 or job.last_error is not None,  # a delayed one has not failed
)


@click.group("jobs", cls=Noun)
def command() -> None:
    """List, show, await, cancel, retry, delete and bury jobs."""


@command.command(
    help="List jobs: running, ready, scheduled, dead and done ones; what runs next comes first."
    + example("rqj jobs ls --state ready --queue sales")
)
@click.option("-s", "--state", type=click.Choice(_STATES), help="Only jobs in this state.")
@filter_options
@page_options
@chosen
def ls(chosen: Chosen, state: str | None, limit: int, cursor: str, **said: Any) -> None:
    """List jobs."""
    target = resolve(chosen)
    page = target.inspect.jobs(state, limit=limit, cursor=cursor, **filters(**said))
    list_jobs(target, chosen, page, "job", _COLUMNS)


@command.command(help="Show all that is known of jobs." + example("rqj jobs show 0VJ1Zq8W00k3Xb7T9aQd"))
@ids_argument
@reader_options
@chosen
def show(chosen: Chosen, ids: tuple[str, ...]) -> None:
    """Show jobs."""
    target = resolve(chosen)
    show_jobs(target, chosen, read_ids(ids))


@command.command(
    help="Say why a job is where it is, and what would make it go on."
    + example("rqj jobs why 0VJ1Zq8W00k3Xb7T9aQd")
)
@click.argument("id", metavar="ID")
@reader_options
@chosen
def why(chosen: Chosen, id: str) -> None:
    """Say why a job is where it is."""
    target = resolve(chosen)
    reason = target.inspect.why(id)
    if chosen.json:
        say_json({"namespace": target.app.namespace, **to_json(reason)})
        return
    end = f"; {until(reason.until, reason.now)}" if reason.until else ""
    say(f"{reason.id} is {reason.state}: {reason.text}{end}.")
    if reason.hint:
        remark(reason.hint)


@command.command(
    help="Wait until a job has ended, and print what it returned as JSON. The exit code is 1 if it died or was "
    "cancelled, and 5 if it has not ended in time. On a terminal a bar shows how far it is."
    + example("rqj jobs wait 0VJ1Zq8W00k3Xb7T9aQd --timeout 30s")
)
@click.argument("id")
@click.option("-t", "--timeout", metavar="DURATION", help="How long at most.  [default: until it has ended]")
@reader_options
@chosen
def wait(chosen: Chosen, id: str, timeout: str | None) -> None:
    """Wait for a job."""
    await_job(resolve(chosen), chosen, id, timeout)


@command.command(
    help="Cancel jobs that wait: they will never start."
    + example("rqj jobs cancel 0VJ1Zq8W00k3Xb7T9aQd", "rqj jobs cancel --yes - < ids.txt")
)
@ids_argument
@consent_options
@reader_options
@chosen
def cancel(chosen: Chosen, ids: tuple[str, ...], yes: bool, dry_run: bool) -> None:
    """Cancel jobs."""
    target = resolve(chosen)
    do(CANCEL, target, chosen, Consent(yes, dry_run), target.inspect.look(read_ids(ids)))


@command.command(
    help="Let jobs that wait for their next attempt go now. More than one is asked for."
    + example("rqj jobs retry 0VJ1Zq8W00k3Xb7T9aQd", "rqj jobs retry --name send_email --error timeout")
)
@which_options("jobs that wait for their next attempt")
@consent_options
@reader_options
@chosen
def retry(chosen: Chosen, yes: bool, dry_run: bool, **which: Any) -> None:
    """Retry jobs now."""
    consent = Consent(yes or bool(which["ids"]), dry_run)
    do_to(RETRY, chosen, consent, state="scheduled", what="failed job", **which)


@command.command(
    help="Delete jobs with all that is known of them; a running one is left alone."
    + example("rqj jobs delete 0VJ1Zq8W00k3Xb7T9aQd", "rqj jobs delete --state done --name send_email")
)
@which_options("jobs, or all in that state")
@click.option(
    "-s", "--state", type=click.Choice(_STATES[1:]), help="With --all or a filter: only in this state."
)
@consent_options
@reader_options
@chosen
def delete(chosen: Chosen, state: str | None, yes: bool, dry_run: bool, **which: Any) -> None:
    """Delete jobs."""
    do_to(DELETE, chosen, Consent(yes, dry_run), state=state, what="job", **which)


@command.command(
    help="Put jobs that wait among the dead, with a reason; `rqj dead revive` brings them back."
    + example('rqj jobs bury --reason "the customer is gone" 0VJ1Zq8W00k3Xb7T9aQd')
)
@ids_argument
@click.option(
    "--reason", default="buried by hand", show_default=True, help="It becomes the job's last error."
)
@consent_options
@reader_options
@chosen
def bury(chosen: Chosen, ids: tuple[str, ...], reason: str, yes: bool, dry_run: bool) -> None:
    """Bury jobs."""
    deed = Deed("bury", "buried", WAITING, lambda ops, some: one_word(ops.bury(some, reason[:4096])))
    target = resolve(chosen)
    do(deed, target, chosen, Consent(yes, dry_run), target.inspect.look(read_ids(ids)))


def show_jobs(target: Target, chosen: Chosen, ids: list[str]) -> None:
    """Print all that is known of some jobs.

    Raises:
        JobNotFound: one of them is not known; the others are printed before.
    """
    jobs, missing = [], []
    for one in ids:
        try:
            jobs.append(target.inspect.job(one))
        except JobNotFound as error:
            missing.append(error)
    if chosen.json and jobs:
        told = [_document(target, job) for job in jobs]
        say_json(told[0] if len(ids) == 1 else told)
    for at, job in enumerate(() if chosen.json else jobs):
        if at:
            click.echo()
        _show(target, job)
    if len(missing) > 1:
        raise JobNotFound(
            f"{len(missing)} of {len(ids)} ids are unknown: {_some(missing)}.", hint=missing[0].hint
        )
    if missing:
        raise missing[0]


def _some(missing: list[JobNotFound]) -> str:
    return ", ".join(error.job_id for error in missing[:5]) + (" ..." if len(missing) > 5 else "")


def _document(target: Target, job: Job[Any]) -> dict[str, Any]:
    document = {"namespace": target.app.namespace, **to_json(job, whole=True)}
    if job.state == "done":
        document["kept"], document["result"] = result_of(target, job)
    return document


def _show(target: Target, job: Job[Any]) -> None:
    now = target.inspect.now()
    took = f" after {lasted(job.started_at, job.finished_at)}" if job.started_at and job.finished_at else ""
    pairs = [
        ("id", job.id),
        ("state", job.state),
        ("job", _called(job)),
        ("queue", job.queue or "-"),
        ("tags", ", ".join(job.tags)),
        ("attempts", tries(job, now)),
        ("lock", job.lock_key or "-"),
        ("enqueued", moment(job.enqueued_at, now)),
        ("due", moment(job.run_at, now) if job.run_at else ""),
        ("started", moment(job.started_at, now) if job.started_at else ""),
        ("ended", moment(job.finished_at, now) + took if job.finished_at else ""),
        ("progress", progress_text(job)),
        ("result", result_text(target, job) if job.state == "done" else ""),
        ("kept until", moment(job.result_expires_at, now) if job.result_expires_at else ""),
        ("last error", job.last_error or ""),
        ("traceback", job.traceback or ""),
    ]
    facts((name, value) for name, value in pairs if value)


def _called(job: Job[Any]) -> str:
    if job.name:
        return call_text(job, 2000)
    if job.state == "cancelled":
        return "(of a cancelled job only this word is kept)"
    if job.state == "expired":
        return "(of an expired job only this word is kept)"
    return "(its record or payload cannot be read)"
