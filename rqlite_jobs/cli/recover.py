"""`rqj recover`: give the jobs of dead workers back, as any living worker would do."""

import click

from rqlite_jobs.cli.chosen import Chosen, chosen, reader_options
from rqlite_jobs.cli.consent import Consent, consent_options
from rqlite_jobs.cli.errors import NotFound
from rqlite_jobs.cli.groups import example
from rqlite_jobs.cli.target import resolve
from rqlite_jobs.cli.text import count, say, say_json
from rqlite_jobs.errors import nearest, shown


@click.command(
    "recover",
    help="Give the jobs of dead workers back to their queues.\n\nOf all whose lease is over; of the workers named, "
    "even if they live: they lose what they run."
    + example("rqj recover", "rqj recover --yes 0VJ1Zq8W00k3Xb7T9aQd"),
)
@click.argument("workers", nargs=-1, metavar="[WORKER]...")
@consent_options
@reader_options
@chosen
def command(chosen: Chosen, workers: tuple[str, ...], yes: bool, dry_run: bool) -> None:
    """Give the jobs of dead workers back to their queues."""
    target = resolve(chosen)
    crew = target.inspect.workers()
    known = {row.id: row for row in crew}
    for worker in workers:
        if worker not in known:
            raise NotFound(
                f"there is no worker {shown(worker)} in {target.shown}.",
                hint=nearest(worker, known) or "There is no worker at all.",
            )
    meant = [known[worker] for worker in dict.fromkeys(workers)] or [
        row for row in crew if row.state != "alive"
    ]
    held = sum(row.running for row in meant)
    deed = f"give back {count(held, 'job')} of {count(len(meant), 'worker')} in {target.shown}"
    # Whose lease is over is dead to everybody: only a living one is asked for.
    consent = Consent(yes or all(row.state != "alive" for row in meant), dry_run)
    recovered, max_crashes = 0, target.app.settings.max_crashes
    if meant and consent.given(deed):
        while True:
            ids = [row.id for row in meant] if workers else []
            done, left = target.app.run(target.app.operations.recover(max_crashes, ids))
            recovered += done
            # Nothing done and something left: others are at it, or it is none of the workers named.
            if not left or not done:
                break
    if chosen.json:
        told = {"dry_run": dry_run, "workers": [row.id for row in meant], "recovered": recovered}
        say_json({"namespace": target.app.namespace, **told})
    elif not meant:
        say("No worker is dead.")
        target.explain_nothing()
    elif not dry_run:
        say(f"gave back {count(recovered, 'job')} of {count(len(meant), 'worker')}")
