"""Text for a terminal: whatever came out of a queue is data, and may not move the cursor or hide a line."""

import json
import sys
from typing import Any

import click


def plain(text: str) -> str:
    r"""Escape everything in a text that a terminal does not just show: control, format and ANSI characters.

    Line ends too, so that a cell stays one line; directions of writing (bidi) too, so that it reads as it is.

    >>> plain("a\x1b[31mred\n")
    'a\\x1b[31mred\\n'
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def plain_lines(text: str) -> str:
    """The same for a text of several lines, which keeps its lines."""
    return "\n".join(plain(line.replace("\t", "    ")) for line in text.splitlines())


def cut(text: str, limit: int) -> str:
    """A text of at most `limit` characters, escaped; dots stand for the rest.

    >>> cut("crunch_sales(42)", 10)
    'crunch_...'
    """
    # Cut before it is escaped: an error of 4 KiB of control characters is not worth escaping whole.
    shown = plain(text[: limit + 1])
    return shown if len(shown) <= limit else shown[: limit - 3] + "..."


def readable(word: str) -> str:
    """A word as it was typed: Python reads what its locale does not know as halves of surrogates, we as UTF-8."""
    if word.isascii():
        return word
    return word.encode(sys.getfilesystemencoding(), "surrogateescape").decode("utf-8", "replace")


def count(number: int, one: str, many: str = "") -> str:
    """A number and what it counts: `1 job`, `1,234 jobs`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def say(line: str) -> None:
    """Print a line for people, escaped."""
    click.echo(plain(line))


def remark(line: str) -> None:
    """Print a line to stderr: it is about the answer, not part of it."""
    click.echo(plain(line), err=True)


def say_json(document: Any) -> None:
    """Print one JSON document, in ASCII: it comes through any locale, and no character in it moves a cursor."""
    click.echo(json.dumps(document, indent=2, ensure_ascii=True))
