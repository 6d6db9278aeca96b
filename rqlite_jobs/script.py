"""The Lua scripts: loaded from `lua/`, joined from their parts, each line remembering where it came from.

In an installed wheel the folder lies inside the package, in a checkout beside it. A script names its parts by
`--- @include lib/lock.lua`; every part is taken in once, where it is first named. (Inside a function where only
some runs need it: making thirty functions costs as much as all the commands of an enqueue.) Comments are sent along,
so that a line number in an error of the server is a line of the joined text.
"""

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

_INCLUDE = re.compile(r"\s*--- @include (\S+)\s*$")
_OF_QUEUE = re.compile(r"local (\w+)_prefix\s*= KEYS\[\d+\]\s+-- (hashes|lists|zsets)\s+\.\. queue\b")
_SINGULAR = {"hashes": "hash", "lists": "list", "zsets": "zset"}
_TYPE = re.compile(r"local (\w+_key)\s*= KEYS\[\d+\]\s+-- (hash|list|zset|string|stream)\b")
_BINDING = re.compile(r"local (\w+_(?:key|prefix))\s*= KEYS\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a joined script, and the file (below `lua/`) and number it has there."""

    text: str
    file: str
    number: int


@dataclass(frozen=True, slots=True)
class Script:
    """One script, ready to send.

    Attributes:
        verb: its name, that of its file: `turn` for `lua/turn.lua`.
        lines: the joined text, line by line.
        text: what is sent to a server.
        sha: the SHA-1 of `text`, by which the server knows it.
        bindings: the names of its keys in order, as its binding block has them: `jobs_key`, `ready_prefix` ...
        plain_text: the same with the `#!lua` line commented out, for an interpreter that does not know it.
        plain_sha: the SHA-1 of `plain_text`.
    """

    verb: str
    lines: tuple[Line, ...]
    text: str
    sha: str
    bindings: tuple[str, ...]
    plain_text: str
    plain_sha: str

    def origin(self, number: int) -> Line:
        """The place that line `number` (from 1) of the joined text came from; the last line for a number beyond."""
        return self.lines[min(max(number, 1), len(self.lines)) - 1]

    @property
    def read_only(self) -> bool:
        """Whether it only reads: the server is told so by its first line."""
        return "no-writes" in self.lines[0].text

    @property
    def summary(self) -> str:
        """The first sentence of its documentation."""
        said = [line.text.removeprefix("---").strip() for line in self.lines if line.text.startswith("--- ")]
        return said[0] if said else ""


@cache
def script(verb: str) -> Script:
    """The script of a verb.

    Raises:
        KeyError: there is none of this name.

    >>> script("turn").bindings[0]
    'jobs_key'
    """
    if verb not in verbs():
        raise KeyError(verb)
    lines = tuple(_joined(f"{verb}.lua", set()))
    text = "\n".join(line.text for line in lines) + "\n"
    plain = "--" + text if text.startswith("#!") else text
    bound = sorted((int(number), name) for name, number in _BINDING.findall(text))
    return Script(
        verb,
        lines,
        text,
        _sha(text),
        tuple(name for _, name in bound),
        plain_text=plain,
        plain_sha=_sha(plain),
    )


@cache
def verbs() -> tuple[str, ...]:
    """The names of all scripts, sorted."""
    return tuple(
        sorted(entry.name.removesuffix(".lua") for entry in folder().iterdir() if entry.name.endswith(".lua"))
    )


@cache
def key_types() -> dict[str, str]:
    """The type of each key that a namespace has once, by its name in binding blocks: `jobs_key` is a `hash`."""
    text = "\n".join(script(verb).text for verb in verbs())
    return dict(_TYPE.findall(text))


@cache
def queue_key_types() -> dict[str, str]:
    """The type of each key that a queue has, by the name of its family: `scheduled` is a `zset`."""
    text = "\n".join(script(verb).text for verb in verbs())
    return {family: _SINGULAR[kind] for family, kind in _OF_QUEUE.findall(text)}


@cache
def folder() -> Traversable:
    """The folder of the scripts: inside the installed package, else beside it in a checkout.

    Raises:
        FileNotFoundError: neither is there; the installation is broken.
    """
    inside = resources.files("rqlite_jobs") / "lua"
    if inside.is_dir():
        return inside
    beside = Path(__file__).resolve().parent.parent / "lua"
    if beside.is_dir():
        return beside
    raise FileNotFoundError(
        f"the Lua scripts are neither in {inside} nor in {beside}; install rqlite-jobs again"
    )


def _joined(file: str, taken: set[str]) -> list[Line]:
    taken.add(file)
    lines: list[Line] = []
    source = folder().joinpath(*file.split("/")).read_text("utf-8")
    for number, text in enumerate(source.splitlines(), 1):
        include = _INCLUDE.match(text)
        if not include:
            lines.append(Line(text, file, number))
        elif include[1] not in taken:
            lines.extend(_joined(include[1], taken))
    return lines


def _sha(text: str) -> str:
    # The server's name for a script, not a matter of security.
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
