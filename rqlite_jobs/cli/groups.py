"""The shape of the command line: nouns that are loaded when they are used, and verbs below them."""

import io
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import click
from click.exceptions import NoSuchCommand

from rqlite_jobs.cli import errors
from rqlite_jobs.cli.chosen import Chosen
from rqlite_jobs.cli.text import readable


class Root(click.Group):
    """The command itself: its nouns by section, with one line each, so that its help loads none of them.

    Args:
        sections: title -> name -> the line of help. The module `rqlite_jobs.cli.<name>` has the command as `command`.
    """

    def __init__(self, *args: Any, sections: Mapping[str, Mapping[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.sections = sections

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The nouns, in the order of the help."""
        return [name for names in self.sections.values() for name in names]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a noun."""
        if cmd_name not in self.list_commands(ctx):
            return None
        found: click.Command = import_module(f"rqlite_jobs.cli.{cmd_name}").command
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or suggest the nearest."""
        _check_known(self, ctx, args)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections."""
        for title, names in self.sections.items():
            with formatter.section(title):
                formatter.write_dl(list(names.items()))

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command line, tell what went wrong, and exit with the code that stands for it."""
        words = list(map(readable, sys.argv[1:]) if args is None else args)
        if sys.stdout is None:
            # Closed by the caller, `>&-`: what is said is not wanted, which is no reason to stop.
            sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        for stream in (sys.stdout, sys.stderr):
            # A locale that cannot show a character shows its number instead; it is no reason to stop.
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        chosen = Chosen(json="--json" in words, debug="--debug" in words)
        # None lets the stream decide: colours are for terminals.
        color = False if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" else None
        try:
            code = super().main(
                words, prog_name, complete_var, standalone_mode=False, obj=chosen, **{"color": color, **extra}
            )
        except click.exceptions.NoArgsIsHelpError as error:
            click.echo(error.ctx.get_help(), err=True)
            code = errors.USAGE
        except Exception as error:
            code = errors.report(error, as_json=chosen.json, debug=chosen.debug)
        except KeyboardInterrupt as error:
            code = errors.report(error, as_json=chosen.json, debug=False)
        sys.exit(code if isinstance(code, int) else errors.OK)


class Noun(click.Group):
    """A noun with its verbs. Alone, or with options only, it is its `ls` (or whatever verb is its `alone`)."""

    alone = "ls"

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verbs, each with its whole first sentence."""
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, verb.get_short_help_str(limit=300)) for name, verb in sorted(self.commands.items())]
            )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put in the verb that was left out."""
        if not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names):
            args = [self.alone, *args]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb, or suggest the nearest."""
        _check_known(self, ctx, args)
        return super().resolve_command(ctx, args)


def example(*lines: str) -> str:
    """The end of a help text: examples that are left as they are typed."""
    return "\n\n\b\nExample:\n" + "\n".join(f"  {line}" for line in lines)


def _check_known(group: click.Group, ctx: click.Context, args: list[str]) -> None:
    # Asked here, since the library looks for the nearest among commands that are loaded already.
    if args and not args[0].startswith("-") and args[0] not in group.list_commands(ctx):
        raise NoSuchCommand(args[0], possibilities=group.list_commands(ctx), ctx=ctx)
