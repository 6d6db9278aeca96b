"""What was chosen on the command line for every command alike: where to look, and how to answer."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from rqlite_jobs.setting import SETTINGS

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(slots=True)
class Chosen:
    """The common options. They may stand before the noun or behind the verb; what stands last counts.

    Attributes:
        namespace: `-n`.
        app: `-a`, `module:attribute`.
        url: `-u`.
        json: answer with one JSON document.
        debug: show tracebacks.
    """

    namespace: str | None = None
    app: str | None = None
    url: str | None = None
    json: bool = False
    debug: bool = False


def _keep(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
    if value not in (None, False):
        setattr(ctx.ensure_object(Chosen), str(parameter.name), value)


def where_options(command: F) -> F:
    """Give a command the options `-n -a -u --debug`; they are kept in `Chosen`."""
    for option in (
        click.option("--debug", is_flag=True, expose_value=False, callback=_keep, help="Show tracebacks."),
        click.option(
            "-u", "--url", metavar="URL", expose_value=False, callback=_keep,
            help="The server: redis:// rediss:// unix:// valkey:// embedded://",
        ),
        click.option(
            "-a", "--app", metavar="MODULE:APP", expose_value=False, callback=_keep,
            help="The app whose namespace, server and jobs are meant.",
        ),
        click.option(
            "-n", "--namespace", metavar="NAME", expose_value=False, callback=_keep,
            help="The namespace, if it is not the app's or the only one.",
        ),
    ):  # fmt: skip
        command = option(command)
    return command


def json_option(command: F) -> F:
    """Give a command the option `--json`."""
    return click.option(
        "--json", is_flag=True, expose_value=False, callback=_keep, help="Answer with one JSON document."
    )(command)


def reader_options(command: F) -> F:
    """Give a command the options of everything that reads: where, and `--json`."""
    return json_option(where_options(command))


def setting_options(*names: str) -> Callable[[F], F]:
    """Give a command a flag for each of these settings, handed to it by name; None where it was not typed."""

    def give(command: F) -> F:
        for name in reversed(names):
            flag = f"--{name.replace('_', '-')}"
            setting = SETTINGS[name]
            if isinstance(setting.default, bool):
                flag += f"/--no-{flag[2:]}"
                command = click.option(flag, name, is_flag=True, default=None, help=setting.says)(command)
            else:
                command = click.option(flag, name, metavar=setting.metavar, help=setting.says)(command)
        return command

    return give


def chosen(command: Callable[..., Any]) -> Callable[..., Any]:
    """Hand a command its `Chosen` as the first argument."""
    return click.make_pass_decorator(Chosen, ensure=True)(command)
