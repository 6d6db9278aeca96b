"""The command `rqj`: its help, and the way to its nouns."""

from typing import NoReturn

import click

from rqlite_jobs import __version__
from rqlite_jobs.cli.chosen import reader_options
from rqlite_jobs.cli.groups import Root, example

# Kept here, so that `rqj --help` loads no noun; a test compares each line with the help of its command.
SECTIONS = {
    "Run": {
        "worker": "Run the jobs of an app.",
        "enqueue": "Enqueue a call of a job.",
        "demo": "See the main job done, on a server of its own.",
    },
    "Look": {
        "stats": "Show all numbers of a namespace, or their history.",
        "jobs": "List, show, await, cancel, retry, delete and bury jobs.",
        "queues": "List queues, pause and resume them, and empty one.",
        "scheduled": "List the jobs that wait for their time.",
        "dead": "List, show, revive and delete dead jobs.",
        "locks": "List locks, show who holds one, and release it.",
        "workers": "List workers.",
        "changelog": "List who did what, and when.",
        "config": "Show every setting and where it came from.",
        "scripts": "List and show the Lua scripts.",
    },
    "Mend": {
        "doctor": "Look for what is wrong with a server.",
        "recover": "Give the jobs of dead workers back to their queues.",
        "server": "Show, stop or locate the embedded server.",
    },
}

HELP = """Background jobs on Redis or Valkey: unique, retried, and moved only by atomic Lua scripts.

A noun alone is its `ls`. Which namespace a command means: -n, else that of --app, else RQJ_NAMESPACE or RQJ_APP, else
rqj.toml, else the only one on the server.
""" + example(
    "rqj worker shop.jobs:app",
    "rqj enqueue -a shop.jobs:app crunch_sales book_id:=42",
    "rqj dead",
)


@click.group(
    cls=Root,
    sections=SECTIONS,
    help=HELP,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@reader_options
@click.version_option(__version__, prog_name="rqj", message="%(prog)s %(version)s")
def rqj() -> None:
    """Run one command; see HELP."""


def main() -> NoReturn:
    """Run the command line of this process, and exit."""
    rqj.main(prog_name="rqj")
    raise SystemExit  # `Root.main` has left already
