"""Tables in a terminal. Cells are data and never markup; a table is as wide as the terminal at most.

The library that draws is imported here, inside the functions, and so only by a command that draws.
"""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import click

from rqlite_jobs.cli.text import cut, plain, plain_lines

CELL_MAX = 100
"""The longest cell; what is longer is looked at by itself, with `show`."""
_PIPED_WIDTH = 1000
_BARS = "".join(map(chr, range(0x2581, 0x2589)))  # the eight heights of a block
_STYLES = {
    "running": "cyan", "ready": "green", "scheduled": "yellow", "dead": "red", "done": "dim", "cancelled": "dim",
    "expired": "dim",
    "alive": "green", "silent": "red", "fallen": "red", "error": "red", "warning": "yellow", "ok": "green",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Attributes:
        title: its head.
        right: numbers: they stand at the right.
        gives: it gets narrower where the terminal is too narrow; the others keep their width.
    """

    title: str
    right: bool = False
    gives: bool = False


def draw(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> None:
    """Print a table.

    Args:
        columns: its columns.
        rows: a text for each; cut to `CELL_MAX` and escaped here.
    """
    from rich.box import Box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    on_screen = sys.stdout.isatty()
    console = Console(file=sys.stdout, width=None if on_screen else _PIPED_WIDTH, highlight=False)
    utf = console.encoding.startswith("utf")
    table = Table(
        box=Box(_box(utf), ascii=not utf), padding=(0, 1, 0, 0), show_edge=False, header_style="bold"
    )
    cutting: Literal["ellipsis", "crop"] = "ellipsis" if utf else "crop"
    for column in columns:
        table.add_column(column.title, justify="right" if column.right else "left", no_wrap=not column.gives)
    for row in rows:
        cells = [cut(cell, CELL_MAX) for cell in row]
        # Its own `no_wrap`: a column that gives way cuts its cells and keeps them on one line.
        table.add_row(
            *(Text(cell, style=_STYLES.get(cell, ""), no_wrap=True, overflow=cutting) for cell in cells)
        )
    with console.capture() as drawn:
        console.print(table)
    for text in drawn.get().splitlines():
        click.echo(text.rstrip())


def spark(numbers: Sequence[int]) -> str:
    """Numbers as one line of small bars, the largest of them full; empty where the terminal has no such characters.

    >>> spark([0, 1, 4, 8])
    ' \u2581\u2584\u2588'
    """
    if not (sys.stdout.encoding or "").lower().startswith("utf"):
        return ""
    most = max(numbers, default=0)
    # Whatever is there at all is seen: only nothing is drawn as nothing.
    return "".join(" " if number <= 0 else _BARS[(number * len(_BARS) - 1) // most] for number in numbers)


def _box(utf: bool) -> str:
    """A line below the heads and no other, in the form that the library reads: eight rows of four characters."""
    line = "\N{BOX DRAWINGS LIGHT HORIZONTAL}" if utf else "-"
    return "    \n" * 2 + f" {line}  \n" + "    \n" * 5


def facts(pairs: Iterable[tuple[str, Any]]) -> None:
    """Print names and values, one below the other; values of several lines, as tracebacks, are set in."""
    told = [(name, str(value)) for name, value in pairs]
    wide = max((len(name) for name, _ in told), default=0)
    for name, value in told:
        head = click.style(f"{name:<{wide}}", bold=True)
        if "\n" in value.strip("\n"):
            click.echo(head)
            for line in plain_lines(value).splitlines():
                click.echo(f"  {line}")
        else:
            click.echo(f"{head}  {plain(value.rstrip(chr(10)))}".rstrip())
