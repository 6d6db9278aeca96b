"""Which jobs a verb is done to: those with the ids given, all of a state, or those that a filter takes."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from rqlite_jobs.cli.chosen import Chosen
from rqlite_jobs.cli.consent import Consent
from rqlite_jobs.cli.deeds import Deed, do
from rqlite_jobs.cli.ids import optional_ids, read_ids
from rqlite_jobs.cli.listing import filter_options, filters
from rqlite_jobs.cli.target import Target, resolve
from rqlite_jobs.cli.text import say, say_json
from rqlite_jobs.job import Job

F = TypeVar("F", bound=Callable[..., Any])
_READ_STEP = 1000


def which_options(what: str) -> Callable[[F], F]:
    """Give a command what chooses jobs: ids, `--all`, or a filter.

    Args:
        what: what all of them are: `dead jobs`.
    """

    def give(command: F) -> F:
        command = filter_options(command)
        command = click.option("--all", "everything", is_flag=True, help=f"All {what}.")(command)
        return optional_ids(command)

    return give


def do_to(
    deed: Deed,
    chosen: Chosen,
    consent: Consent,
    *,
    state: str | None,
    what: str,
    ids: tuple[str, ...],
    everything: bool,
    **said: Any,
) -> None:
    """Do it to the jobs that were chosen; see `deeds.do`.

    Args:
        deed: what is done.
        chosen: how to answer.
        consent: whether it may be done.
        state: of the jobs that `--all` and the filters are about; None: any that the deed can be done to.
        what: what one of them is called: `dead job`.
        ids, everything, said: what the options of `which_options` said.

    Raises:
        UsageError: nothing was chosen, or twice.
    """
    wanted = filters(**said)
    if bool(ids) + everything + bool(wanted) != 1:
        raise click.UsageError(
            f"say which {what}s to {deed.verb}: either ids, or --all, or any of --queue, --name, --tag, --arg, "
            "--error, --text."
        )
    target = resolve(chosen)
    if ids:
        do(deed, target, chosen, consent, target.inspect.look(read_ids(ids)))
    found = _chosen_by(target, deed, state, wanted)
    if found:
        do(deed, target, chosen, consent, found)
    if chosen.json:
        told = {"namespace": target.app.namespace, "verb": deed.verb, "dry_run": consent.dry_run}
        say_json({**told, "count": 0, "jobs": []})
    else:
        say(f"No {what} is like that." if wanted else f"No {what}s.")
    target.explain_nothing()


def _chosen_by(target: Target, deed: Deed, state: str | None, wanted: dict[str, Any]) -> list[Job[Any]]:
    """All jobs that the filters take and the deed can be done to; of the dead the oldest first, as they came."""
    found: list[Job[Any]] = []
    cursor = ""
    while True:
        page = target.inspect.jobs(state, cursor=cursor, limit=_READ_STEP, **wanted)
        found += [job for job in page if job.state in deed.states and deed.meant(job)]
        cursor = page.next
        if not cursor:
            return found[::-1] if state == "dead" else found
