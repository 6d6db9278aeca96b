"""One setting: its name, how text or a value becomes what the library works with, and its default."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
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
        default: what stands in where nothing is given, before `parse`; None: worked out from other settings.
    """

    name: str
    attribute: str
    parse: Callable[[str, Any], Any]
    default: Any = None


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
    fields = ("max_attempts", "delay", "base", "cap", "jitter")
    if not isinstance(value, dict):
        hint = f"Give a number of attempts, or a table of {', '.join(fields)}."
        raise _bad(what, value, "is no retry policy", hint)
    for name in value:
        if name not in fields:
            raise UnknownOption(f"{what} has no field {name!r}.", hint=nearest(name, fields), option=name)
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


SETTINGS = {
    setting.name: setting
    for setting in (
        Setting("url", "url", _url),
        Setting("namespace", "namespace", _name(check_namespace), "default"),
        Setting("default_queue", "default_queue", _name(check_queue), "default"),
        Setting("retry", "retry", _retry, Retry()),
        Setting("lease", "lease_ms", _duration(100), "15s"),
        Setting("beat", "beat_ms", _duration(10)),
        Setting("sweep", "sweep_ms", _duration(10)),
        Setting("stop_after", "stop_after_ms", _duration(0), "25s"),
        Setting("concurrency", "concurrency", _whole(1, 10_000), 10),
        Setting("max_crashes", "max_crashes", _whole(1, 1_000_000), 3),
        Setting("dead_max_count", "dead_max_count", _whole(0, 100_000), 10_000),
        Setting("dead_max_age", "dead_max_age_ms", _duration(1), "180d"),
        Setting("rejected_max_count", "rejected_max_count", _whole(0, 100_000), 1000),
        Setting("done_max_count", "done_max_count", _whole(0, 100_000), 1000),
        Setting("payload_max", "payload_max", _size, "256KiB"),
        Setting("lock_safety", "lock_safety_ms", _duration(1000), "30d"),
        Setting("data_dir", "data_dir", _path),
        Setting("embedded", "embedded", _switch, True),
        Setting("allow_eviction", "allow_eviction", _switch, False),
    )
}
"""Every setting by its name, as it is written in code and files."""
