"""Lua source as the form test reads it: functions, calls, and which keys a command is given.

No parser of the language: it leans on the form that the scripts keep (a function begins and ends in column 0), and
what it does not understand makes a test fail, never pass.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from rqlite_jobs.script import script

LUA = Path(__file__).parents[2] / "lua"

WRITES = frozenset(
    "DEL EXPIRE HDEL HINCRBY HSET HSETNX LPUSH LREM PEXPIRE RPOP RPUSH SET XADD ZADD ZREM".split()
)  # fmt: skip
READS = frozenset(
    "EXISTS GET HEXISTS HGET HGETALL HKEYS HLEN HMGET LINDEX LLEN LRANGE MGET PTTL TIME XLEN XREVRANGE ZCARD ZCOUNT "
    "ZRANGE ZRANGEBYSCORE ZSCORE".split()
)
_ALL_KEYS = frozenset({"DEL", "EXISTS", "MGET"})  # every argument is a key
_KEYWORDS = frozenset(
    "and break do else elseif end false for function if in local nil not or repeat return then true until while".split()
)
_BUILTINS = frozenset("cjson ipairs math pairs redis string table tonumber tostring type unpack".split())
_BINDING = re.compile(r"\w+_(?:key|prefix)\Z")
_ROW = re.compile(r"\| `([^`]+)` \| (\w+) \| ([^|]+) \| ([^|]+) \| ([a-z ]*) \| (\*stays\*)? ?\|")


def table() -> dict[str, tuple[str, str, str, str, bool]]:
    """The data dictionary: key -> type, meaning, bound, who writes it, and whether it may stay when all is drained."""
    rows = {
        row[1]: (row[2], row[3], row[4], row[5], bool(row[6]))
        for row in _ROW.finditer((LUA / "README.md").read_text("utf-8"))
    }
    assert len(rows) > 20
    return rows


def family(key: str) -> str:
    """`ready` of `ready:<queue>:<level>`."""
    return key.partition(":")[0]


def bare(text: str) -> str:
    """The text without its comments and without what stands inside its strings; lines stay where they are.

    A string of capitals is kept: it is the name of a command.
    """

    def keep(found: re.Match[str]) -> str:
        if found[0].startswith("--"):
            return ""
        return found[0] if re.fullmatch(r"'[A-Z]+'", found[0]) else "''"

    return re.sub(r"--[^\n]*|'(?:[^'\\\n]|\\.)*'", keep, text)


@dataclass
class Function:
    """A function, or with the name '' what a script does outside any.

    Attributes:
        name: as it is called: `lock.take`.
        parameters: their names.
        body: its bare text.
    """

    name: str
    parameters: list[str]
    body: str


def functions(text: str) -> dict[str, Function]:
    """The functions of a bare text by name, and '' for the rest."""
    found = {"": Function("", [], "")}
    inside: Function | None = None
    for line in text.splitlines(keepends=True):
        head = re.match(r"(?:local )?function ([\w.]+)\(([^)]*)\)", line)
        if head:
            inside = found[head[1]] = Function(head[1], re.findall(r"\w+", head[2]), "")
            line = line[head.end() :]
        (inside or found[""]).body += line
        if line.startswith("end"):
            inside = None
    return found


def arguments(text: str, at: int) -> list[str]:
    """The arguments of a call whose opening parenthesis (or brace) is at `at`, as texts."""
    depth, parts, start = 0, [], at + 1
    for place in range(at, len(text)):
        sign = text[place]
        if sign in "({[":
            depth += 1
        elif sign in ")}]":
            depth -= 1
        if (sign == "," and depth == 1) or depth == 0:
            parts.append(text[start:place].strip())
            start = place + 1
        if depth == 0:
            return [part for part in parts if part]
    raise ValueError(f"a call is not closed: {text[at : at + 60]!r}")


@dataclass
class Assembled:
    """One script with its parts, by function; only what is reached from its main part counts.

    Attributes:
        verb: which script.
        functions: all its functions by name.
        reached: the names of those that can be called.
    """

    verb: str
    functions: dict[str, Function] = field(init=False)
    reached: list[str] = field(init=False)

    def __post_init__(self) -> None:
        self.functions = functions(bare(script(self.verb).text))
        self.reached = [""]
        for name in self.reached:  # grows while it is walked
            for other in self.functions:
                if other and other not in self.reached and _called(self.functions[name].body, other):
                    self.reached.append(other)

    def commands(self) -> Iterator[tuple[str, set[str]]]:
        """Each command it may send, with the bindings that its key may be made of."""
        for name in self.reached:
            function = self.functions[name]
            for found in re.finditer(r"redis\.p?call\(", function.body):
                command, *rest = arguments(function.body, found.end() - 1)
                for word in self._words(command, function):
                    keys = rest if word in _ALL_KEYS else rest[:1]
                    bound = {key for text in keys for key in self.bindings(text, function)}
                    yield word, bound

    def written(self) -> set[str]:
        """The bindings of all keys that it may write."""
        return {key for command, keys in self.commands() if command in WRITES for key in keys}

    def bindings(self, text: str, function: Function) -> set[str]:
        """The bindings that an expression in a function may begin with."""
        return self._resolved(text, function, frozenset())

    def _words(self, text: str, function: Function) -> set[str]:
        if text.startswith("'"):
            return {text.strip("'")}
        at = function.parameters.index(text)
        return {
            word for caller, parts in self._calls(function.name) for word in self._words(parts[at], caller)
        }

    def _calls(self, name: str) -> Iterator[tuple[Function, list[str]]]:
        for caller in (self.functions[other] for other in self.reached):
            for found in re.finditer(rf"(?<![\w.]){re.escape(name)}\(", caller.body):
                yield caller, arguments(caller.body, found.end() - 1)

    def _resolved(self, text: str, function: Function, seen: frozenset[tuple[str, str]]) -> set[str]:
        text = text.split("..")[0].strip()
        for opening in ("unpack(", "{"):
            if text.startswith(opening):
                parts = arguments(text, len(opening) - 1)
                parts = parts[:1] if opening == "unpack(" else [part.split("=")[-1] for part in parts]
                return {key for part in parts for key in self._resolved(part, function, seen)}
        name = re.match(r"\w+", text)
        if not name or (name[0], function.name) in seen:
            return set()
        if name[0] in script(self.verb).bindings and name[0] not in function.parameters:
            return {name[0]}
        seen |= {(name[0], function.name)}
        if name[0] in function.parameters:
            at = function.parameters.index(name[0])
            calls = list(self._calls(function.name))
            return {key for caller, parts in calls for key in self._resolved(parts[at], caller, seen)}
        given = list(_given(name[0], function.body)) or list(_given(name[0], self.functions[""].body))
        return {key for part in given for key in self._resolved(part, function, seen)}


@cache
def assembled(verb: str) -> Assembled:
    """The script of a verb, taken apart."""
    return Assembled(verb)


def free_names(text: str) -> set[str]:
    """The names that a text uses and does not itself define: bindings, parts, and what belongs to nobody."""
    text = bare(text)
    text = re.sub(r"'[^']*'", "''", text)
    defined = set(re.findall(r"\w+", " ".join(re.findall(r"\blocal ([\w, ]+)", text))))
    defined |= set(re.findall(r"\w+", " ".join(re.findall(r"\bfor ([\w, ]+?) ?(?:in|=)", text))))
    defined |= set(re.findall(r"\w+", " ".join(re.findall(r"\bfunction [\w.]*\(([^)]*)\)|function\(", text))))
    defined |= {
        name for found in re.findall(r"function\(([^)]*)\)", text) for name in re.findall(r"\w+", found)
    }
    used = set(re.findall(r"(?<![\w.])(?<!\.\.)([A-Za-z_]\w*)(?!\w|\s*=[^=])", text))
    used |= set(re.findall(r"\.\. ?([A-Za-z_]\w*)", text))
    return used - defined - _KEYWORDS - _BUILTINS


def is_binding(name: str) -> bool:
    """Is this the name of a key in a binding block?"""
    return bool(_BINDING.match(name))


def _called(body: str, name: str) -> bool:
    return bool(re.search(rf"(?<![\w.]){re.escape(name)}\(", body))


def _given(name: str, body: str) -> Iterator[str]:
    """What is assigned to a name in a body, or to places in it."""
    for found in re.finditer(rf"(?<![\w.]){name}\[[^=\n]*\] = ([^\n]*)", body):
        yield found[1]
    for found in re.finditer(r"local ([\w, ]+) = ([^\n]*)", body):
        names = re.findall(r"\w+", found[1])
        if name in names:
            parts = arguments(f"({found[2]})" if found[2].count("(") == found[2].count(")") else "()", 0)
            if names.index(name) < len(parts):
                yield parts[names.index(name)]
    for found in re.finditer(rf"for [\w, ]*\b{name} in ipairs\(", body):
        yield from arguments(body, found.end() - 1)
