"""`rqj config`: every setting that is in force here, and where it was given."""

from typing import TYPE_CHECKING, Any

import click

from rqlite_jobs.cli.chosen import Chosen, chosen, reader_options, setting_options
from rqlite_jobs.cli.groups import example
from rqlite_jobs.cli.tables import Column, draw
from rqlite_jobs.cli.target import pointed_app
from rqlite_jobs.cli.text import say, say_json
from rqlite_jobs.errors import RqjError, UnknownOption, nearest, shown
from rqlite_jobs.setting import SETTINGS

if TYPE_CHECKING:
    from rqlite_jobs.app import App

_COLUMNS = (Column("SETTING"), Column("VALUE", gives=True), Column("FROM", gives=True))
_HELP = """Show every setting and where it came from.

A flag goes before an argument in code, then come RQJ_... variables, rqj.toml and [tool.rqj] in pyproject.toml of the
current folder, and the default. What an app says in code is known if -a or RQJ_APP names it. Flags are tried here as
`rqj worker` takes them. No server is asked; passwords are masked. With names: only the values of these settings.
""" + example(
    "rqj config -a shop.jobs:app --lease 2s",
    "rqj config beat lease",
)


@click.command("config", help=_HELP)
@click.argument("names", nargs=-1, metavar="[SETTING]...")
@setting_options(*(name for name in SETTINGS if name not in ("url", "namespace")))
@reader_options
@chosen
def command(chosen: Chosen, names: tuple[str, ...], **flags: Any) -> None:
    """Show every setting and where it came from."""
    wanted = [name.replace("-", "_") for name in names]
    for name in wanted:
        if name not in SETTINGS:
            raise UnknownOption(
                f"there is no setting {shown(name)}.", hint=nearest(name, SETTINGS), option=name
            )
    app = pointed_app(chosen)
    app.set_flags(**flags)
    found = {name: _found(app, name) for name in wanted or SETTINGS}
    if chosen.json:
        told = {name: {"value": value, "from": origin} for name, (value, origin) in found.items()}
        say_json({"settings": told})
    elif wanted:
        for name, (value, _) in found.items():
            say(_text(value, name))
    else:
        draw(_COLUMNS, ((name, _text(value, name), origin) for name, (value, origin) in found.items()))


def _found(app: "App", name: str) -> tuple[Any, str]:
    if name == "url":
        return _url(app)
    return app.settings.written(name), app.settings.origin(name)


def _url(app: "App") -> tuple[str | None, str]:
    """The address without its password; a client that the app was given goes before all but a flag."""
    from rqlite_jobs.address import Address

    url, origin = app.settings.url, app.settings.origin("url")
    if app.link.client is not None and origin != "flag":
        return Address.of_client(app.link.client).with_credentials, "code"
    if url is None or url.startswith("embedded://"):
        return url, origin
    try:
        return Address.parse(url).with_credentials, origin
    except RqjError:
        # Where its password ends cannot be told. Whoever uses it is told what is wrong with it.
        return f"{url.partition('://')[0]}://***" if "://" in url else "***", origin


_UNSET = {"url": "the embedded server", "result_ttl": "as long as the job is among the last finished ones"}


def _text(value: Any, name: str) -> str:
    if value is None:
        return _UNSET.get(name, "-")
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, dict):
        return ", ".join(f"{name} = {inner}" for name, inner in value.items())
    return str(value)
