"""`rqj worker`: run the jobs of an app until told to stop."""

import logging
import os
import sys
from typing import Any

import click

from rqlite_jobs.cli.chosen import Chosen, chosen, setting_options, where_options
from rqlite_jobs.cli.groups import example
from rqlite_jobs.cli.target import is_app_named, named_app
from rqlite_jobs.cli.text import plain, plain_lines
from rqlite_jobs.setting import SETTINGS

_HELP = """Run the jobs of an app.

Without -q it serves every queue that the app's jobs name and every one that jobs were ever put into. TERM and INT let
running jobs finish for --stop-after, then hand them back; a second one hands back at once; TSTP claims nothing more.
What is not given here comes from the settings. A server that does not answer at the start is an error; later it is
waited for.
""" + example(
    "rqj worker shop.jobs:app -q sales,default -c 10",
    "rqj worker shop.jobs:app --burst",
)


@click.command("worker", help=_HELP)
@click.argument("name", required=False, metavar="MODULE:APP")
@click.option("-q", "--queues", multiple=True, metavar="A,B", help="Serve these queues, in this order.")
@click.option("-c", "--concurrency", metavar="N", help=SETTINGS["concurrency"].says)
@click.option("--burst", is_flag=True, help="End with 0 when nothing is ready or due.")
@setting_options(*(name for name in SETTINGS if name not in ("url", "namespace", "concurrency")))
@where_options
@chosen
def command(chosen: Chosen, name: str | None, queues: tuple[str, ...], burst: bool, **settings: Any) -> None:
    """Run the jobs of an app."""
    chosen.app = name or chosen.app
    if not is_app_named(chosen):
        raise click.UsageError("say whose jobs: rqj worker MODULE:APP, or RQJ_APP.")
    app = named_app(chosen)
    app.set_flags(**settings)
    log_to_stderr(logging.DEBUG if chosen.debug else logging.INFO)
    from rqlite_jobs.worker import Worker

    wanted = [queue.strip() for given in queues for queue in given.split(",") if queue.strip()]
    if queues and not wanted:
        raise click.UsageError("--queues names no queue; leave it out to serve every queue of the app.")
    worker = Worker(app, wanted or None, burst=burst)
    worker.run()
    if worker.abandoned:
        # Threads that no one can end are still in a handler; a normal exit would wait for them.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def log_to_stderr(level: int) -> None:
    """Show what the library logs, on stderr and escaped. An app that has set up logging itself is left alone."""
    logger = logging.getLogger("rqlite_jobs")
    if logger.hasHandlers():
        return
    handler = logging.StreamHandler()
    handler.setFormatter(_Escaped("%(asctime)s %(levelname)-7s %(message)s"))
    logger.addHandler(handler)
    logger.setLevel(level)
    logger.propagate = False  # handlers that a job gives the root logger later would show each line twice


class _Escaped(logging.Formatter):
    """A line is what its first line says; tracebacks keep theirs."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        return plain(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:
        return plain_lines(super().formatException(ei))
