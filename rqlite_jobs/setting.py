"""One setting: its name, how text or a value becomes what the library works with, and its default."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from rqlite_jobs.backoff import Retry
from rqlite_jobs.durations import to_ms, to_text
from rqlite_jobs.errors import BadOption, UnknownOption, a_type, nearest, shown
from rqlite_jobs.keys import check_namespace, check_queue


@dataclass(frozen=True, slots=True)
class Setting:
    """How one setting is read.

    Attributes:
        name: as it is written in code and files: `lease`. Its variable is `RQJ_LEASE`, its flag `--lease`.
        attribute: of `Settings`: `lease_ms`.
        parse: makes the value that is stored; takes what an error shall call the setting, and what was given.
        says: what it is, in one line; the help of its flag.
        default: what stands in where nothing is given, before `parse`; None: worked out from other settings.
        metavar: what stands for its value in a help.
        written: makes of the stored value what would be written in a file.
    """

    name: str
    attribute: str
    parse: Callable[[str, Any], Any]
    says: str
    default: Any = None
    metavar: str = ""
    written: Callable[[Any], Any] = lambda value: value


def _bad(what: str, value: object, why: str, hint: str) -> BadOption:
    return BadOption(f"{what}={shown(value)} {why}.", hint=hint, option=what)


def _duration(least_ms: int) -> Callable[[str, Any], int]:
    def parse(what: str, value: Any) -> int:
        # Variables and flags are always text, so a bare number in them is a number: of seconds.
        number = isinstance(value, str) and re.fullmatch(r"[0-9]+(\.[0-9]+)?", value)
        found = to_ms(float(value) if number else value, what=what)
        if found < least_ms:
            raise _bad(what, value, "is too short", f"Give at least {to_text(least_ms)}.")
        return found

    return parse


def _whole(least: int, most: int) -> Callable[[str, Any], int]:
    def parse(what: str, value: Any) -> int:
        text = isinstance(value, str) and re.fullmatch(r"[0-9]{1,18}", value)
        found = int(value) if text else value
        if type(found) is not int or not least <= found <= most:
            raise _bad(what, value, "is not possible", f"Give a whole number from {least:,} to {most:,}.")
        return found

    return parse


def _size(what: str, value: Any) -> int:
    """A number of bytes, or text with a unit."""
    found = value
    if isinstance(value, str):
        match = re.fullmatch(r"([0-9]{1,12})\s*(B|KiB|MiB|KB|MB)?", value)
        found = int(match[1]) * _UNITS[match[2] or "B"] if match else None
    if type(found) is not int or not 1 <= found <= 512 * 1024**2:
        raise _bad(what, value, "is no possible size", 'Give bytes, or text like "256KiB", up to 512MiB.')
    return found


_UNITS = {"B": 1, "KB": 1000, "MB": 1000**2, "KiB": 1024, "MiB": 1024**2}


def _ttl(what: str, value: Any) -> int:
    return -1 if value == "forever" else _duration(0)(what, value)


def _written_ttl(value: int) -> str:
    return "forever" if value < 0 else to_text(value)


def _switch(what: str, value: Any) -> bool:
    found = value if isinstance(value, bool) else _SWITCH.get(str(value).lower())
    if found is None:
        raise _bad(what, value, "is neither on nor off", "Give 1 or 0.")
    return found


_SWITCH = {
    "1": True,
    "true": True,
    "yes": True,
    "on": True,
    "0": False,
    "false": False,
    "no": False,
    "off": False,
}


def _retry(what: str, value: Any) -> Retry:
    if isinstance(value, Retry):
        return value
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value):
        value = int(value)
    if type(value) is int:
        return Retry(value)
    known = ("max_attempts", "delay", "base", "cap", "jitter")
    if not isinstance(value, dict):
        hint = f"Give a number of attempts, or a table of {', '.join(known)}."
        raise _bad(what, value, "is no retry policy", hint)
    for name in value:
        if name not in known:
            raise UnknownOption(f"{what} has no field {name!r}.", hint=nearest(name, known), option=name)
    return Retry(**value)


def _url(what: str, value: Any) -> str:
    if not isinstance(value, str):  # not shown: whatever it is, it may hold a password
        why = f"{what} is {a_type(value)}, not text."
        raise BadOption(why, hint="Give redis://host:6379/0.", option="url")
    return value


def _name(check: Callable[[str], str]) -> Callable[[str, Any], str]:
    return lambda what, value: check(value)


def _path(what: str, value: Any) -> Path:
    if not isinstance(value, str | os.PathLike):
        raise _bad(what, value, "is no path", "Give the path of a folder.")
    try:
        return Path(value).expanduser()
    except RuntimeError:  # a user without a home, as in many containers, who may never need this folder
        return Path(value)


def _written_size(size: int) -> str | int:
    if size % 1024:
        return size
    return f"{size // 1024}KiB" if size % 1024**2 else f"{size // 1024**2}MiB"


def _written_retry(policy: Retry) -> Any:
    """A number of attempts, or a table of what is not as ever."""
    given = {one.name: getattr(policy, one.name) for one in fields(policy)}
    changed = {name: value for name, value in given.items() if value != getattr(Retry(), name)}
    if changed.keys() <= {"max_attempts"}:
        return policy.max_attempts
    return {name: _written_field(value) for name, value in changed.items()}


def _written_field(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_written_field(one) for one in value]
    # Functions and classes, which only code can give, show as Python has them.
    return value if isinstance(value, str | int | float) else shown(value)


def _time(name: str, least_ms: int, says: str, default: str | None = None) -> Setting:
    return Setting(name, f"{name}_ms", _duration(least_ms), says, default, "DURATION", to_text)


def _count(name: str, least: int, most: int, says: str, default: int) -> Setting:
    return Setting(name, name, _whole(least, most), says, default, "N")


def _any(
    name: str,
    parse: Callable[[str, Any], Any],
    metavar: str,
    says: str,
    default: Any = None,
    written: Callable[[Any], Any] = lambda value: value,
) -> Setting:
    return Setting(name, name, parse, says, default, metavar, written)


SETTINGS = {
    setting.name: setting
    for setting in (
        _any("url", _url, "URL", "The server: redis:// rediss:// unix:// valkey:// embedded://"),
        _any("namespace", _name(check_namespace), "NAME", "Whose jobs these are.", "default"),
        _any("default_queue", _name(check_queue), "NAME", "Where a job goes that names no queue.", "default"),
        _any("retry", _retry, "N", "How often a job is tried that does not say.", Retry(), _written_retry),
        _time("lease", 100, "How long a silent worker keeps its jobs.", "15s"),
        _time("beat", 10, "How often a worker says that it lives."),
        _time("sweep", 10, "How soon at the earliest a worker looks after another's lease."),
        _time("stop_after", 0, "How long running jobs may finish when a worker is stopped.", "25s"),
        _count("concurrency", 1, 10_000, "Run so many jobs at once.", 10),
        _count("max_crashes", 1, 1_000_000, "Bury a job whose process died so often.", 3),
        _count("dead_max_count", 0, 100_000, "Keep so many dead jobs.", 10_000),
        _time("dead_max_age", 1, "Keep dead jobs so long at most.", "180d"),
        _count("rejected_max_count", 0, 100_000, "Keep so many refused duplicates.", 1000),
        _count("done_max_count", 0, 100_000, "Keep so many finished jobs.", 1000),
        _count("changelog_max", 0, 100_000, "Keep so many lines of the changelog.", 10_000),
        _any("payload_max", _size, "SIZE", "The largest arguments of one job.", "256KiB", _written_size),
        Setting(
            "result_ttl",
            "result_ttl_ms",
            _ttl,
            "How long results are kept at least, or forever.",
            None,
            "DURATION",
            _written_ttl,
        ),
        _any("result_max", _size, "SIZE", "The largest result of one job.", "256KiB", _written_size),
        _time(
            "lock_safety", 1000, "How long past its job's due time a lock stays that nobody let go.", "30d"
        ),
        _any("data_dir", _path, "FOLDER", "Where the embedded server keeps its data.", None, str),
        _any("embedded", _switch, "", "Start the embedded server where no address is given.", True),
        _any("allow_eviction", _switch, "", "Work on a server that may drop keys when it is full.", False),
    )
}
"""Every setting by its name, as it is written in code and files."""
