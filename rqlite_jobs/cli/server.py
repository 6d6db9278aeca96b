"""`rqj server`: the embedded server of this user."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rqlite_jobs.cli.chosen import Chosen, chosen, json_option
from rqlite_jobs.cli.groups import Noun, example
from rqlite_jobs.cli.tables import facts
from rqlite_jobs.cli.text import say, say_json
from rqlite_jobs.cli.times import span
from rqlite_jobs.inspector import to_json

if TYPE_CHECKING:
    from rqlite_jobs.embedded import Embedded


class _Server(Noun):
    alone = "status"


@click.group("server", cls=_Server)
def command() -> None:
    """Show, stop or locate the embedded server."""


@command.command(
    help="Show whether the embedded server is up, and where its data are." + example("rqj server status")
)
@json_option
@chosen
def status(chosen: Chosen) -> None:
    """Show the embedded server."""
    server, folder = _embedded(chosen)
    found = server.status()
    if chosen.json:
        say_json({"running": found is not None, "data_dir": str(folder), **(to_json(found) if found else {})})
    elif found is None:
        say(f"The embedded server of {folder} is not running; the first command that needs it starts it.")
    else:
        facts(
            (
                ("state", "loading its data" if found.loading else "running"),
                ("version", found.version),
                ("pid", found.pid),
                ("up for", span(found.uptime_s)),
                ("socket", found.socket),
                ("data", found.data_dir),
                ("log", found.log),
            )
        )


@command.command(
    help="Stop the embedded server; its data stay, and the next command that needs it starts it again."
    + example("rqj server stop")
)
@json_option
@chosen
def stop(chosen: Chosen) -> None:
    """Stop the embedded server."""
    server, folder = _embedded(chosen)
    stopped = server.stop()
    if chosen.json:
        say_json({"stopped": stopped, "data_dir": str(folder)})
    else:
        say(f"{'stopped the' if stopped else 'There was no'} embedded server of {folder}")


@command.command(
    help="Print the address of the embedded server, and start it if it is not up." + example("rqj server url")
)
@json_option
@chosen
def url(chosen: Chosen) -> None:
    """Print the address of the embedded server."""
    server, folder = _embedded(chosen)
    found = server.url()
    if chosen.json:
        say_json({"url": found, "data_dir": str(folder)})
    else:
        say(found)


def _embedded(chosen: Chosen) -> "tuple[Embedded, Path]":
    """The embedded server that is meant: of an address embedded://<dir>, else of the setting data_dir."""
    from rqlite_jobs.config import Settings
    from rqlite_jobs.embedded import Embedded

    Embedded.announce = False
    settings = Settings.load(flags={"url": chosen.url})
    scheme, _, rest = (settings.url or "").partition("://")
    folder = Path(rest).expanduser() if scheme == "embedded" and rest else settings.data_dir
    return Embedded(folder, allowed=settings.embedded), folder
