"""The jobs that a command line names: ids as arguments, or on standard input with `-`."""

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import click

from rqlite_jobs.cli.text import readable

F = TypeVar("F", bound=Callable[..., Any])


def ids_argument(command: F) -> F:
    """Give a command the argument `ids`: one or more."""
    return click.argument("ids", nargs=-1, required=True, metavar="ID...")(command)


def optional_ids(command: F) -> F:
    """Give a command the argument `ids`, where something else may be given instead."""
    return click.argument("ids", nargs=-1, metavar="[ID]...")(command)


def read_ids(given: Sequence[str]) -> list[str]:
    """The ids that were given, each once and in order; for `-` those on standard input, apart by white space.

    Raises:
        UsageError: standard input has none.
    """
    ids = list(dict.fromkeys(_each(given)))
    if given and not ids:
        raise click.UsageError("there is no id on standard input.")
    return ids


def _each(given: Sequence[str]) -> Iterator[str]:
    for one in given:
        if one != "-":
            yield one
            continue
        for line in sys.stdin:
            yield from readable(line).split()
