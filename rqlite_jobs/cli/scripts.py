"""`rqj scripts`: the Lua scripts as they are sent to the server."""

import click

from rqlite_jobs.cli.chosen import Chosen, chosen, json_option
from rqlite_jobs.cli.errors import NotFound
from rqlite_jobs.cli.groups import Noun, example
from rqlite_jobs.cli.tables import Column, draw
from rqlite_jobs.cli.text import say_json
from rqlite_jobs.errors import nearest, shown
from rqlite_jobs.script import Script, script, verbs

_COLUMNS = (
    Column("SCRIPT"),
    Column("WRITES"),
    Column("KEYS", right=True),
    Column("SHA1"),
    Column("WHAT IT DOES", gives=True),
)


@click.group("scripts", cls=Noun)
def command() -> None:
    """List and show the Lua scripts."""


@command.command(help="List the scripts." + example("rqj scripts"))
@json_option
@chosen
def ls(chosen: Chosen) -> None:
    """List scripts."""
    found = [script(verb) for verb in verbs()]
    if chosen.json:
        say_json({"scripts": [_fields(one) for one in found]})
        return
    rows = (
        (one.verb, "no" if one.read_only else "yes", str(len(one.bindings)), one.sha[:10], one.summary)
        for one in found
    )
    draw(_COLUMNS, rows)


@command.command(
    help="Print a script, joined from its parts, as the server gets it." + example("rqj scripts show turn")
)
@click.argument("verb")
@json_option
@chosen
def show(chosen: Chosen, verb: str) -> None:
    """Print a script."""
    try:
        found = script(verb)
    except KeyError:
        raise NotFound(f"there is no script {shown(verb)}.", hint=nearest(verb, verbs())) from None
    if chosen.json:
        say_json({**_fields(found), "text": found.text})
    else:
        click.echo(found.text, nl=False)


def _fields(one: Script) -> dict[str, object]:
    return {
        "script": one.verb,
        "read_only": one.read_only,
        "keys": list(one.bindings),
        "sha1": one.sha,
        "summary": one.summary,
    }
