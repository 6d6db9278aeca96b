"""`rqj doctor`: what is wrong with a server, and what to do about it."""

import shutil
import sys
import textwrap

import click

from rqlite_jobs.cli.chosen import Chosen, chosen, reader_options
from rqlite_jobs.cli.errors import FAILED
from rqlite_jobs.cli.groups import example
from rqlite_jobs.cli.target import resolve
from rqlite_jobs.cli.text import plain, say, say_json
from rqlite_jobs.inspector import to_json

_COLOURS = {"ok": "green", "warning": "yellow", "error": "red"}
_MARGIN = 22
_HELP = """Look for what is wrong with a server.

It looks at the version, eviction policy, memory, persistence, round trip, scripts, rights, and the format of the
namespace. The exit code is 1 if a finding is an error; warnings are only told.
""" + example("rqj doctor -u redis://localhost:6379")


@click.command("doctor", help=_HELP)
@reader_options
@chosen
def command(chosen: Chosen) -> None:
    """Look for what is wrong with a server."""
    from rqlite_jobs.inspector.checkup import examine

    target = resolve(chosen, any_namespace=True)
    findings = examine(target.app)
    wrong = any(finding.level == "error" for finding in findings)
    if chosen.json:
        server = {"server": target.app.address.shown, "namespace": target.app.namespace, "ok": not wrong}
        say_json({**server, "findings": to_json(findings)})
    else:
        say(f"server {target.app.address.shown}")
        click.echo()
        for finding in findings:
            level = click.style(f"{finding.level:<7}", fg=_COLOURS[finding.level])
            first, *more = [*_lines(finding.found), *_lines(finding.remedy)]
            click.echo(f"{level}  {finding.check:<11}  {first}")
            for line in more:
                click.echo(f"{'':{_MARGIN}}{line}")
    if wrong:
        sys.exit(FAILED)


def _lines(text: str) -> list[str]:
    """A text in lines that fit the terminal beside the names of the checks; in one line where it is no terminal."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 1000
    return textwrap.wrap(plain(text), max(20, width - _MARGIN), break_on_hyphens=False)
