"""Lengths of time and points in time: what people write, as whole milliseconds."""

import math
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TypeAlias

from rqlite_jobs.errors import BadDuration, BadOption, a_type, shown

Duration: TypeAlias = str | float | timedelta
"""`"250ms"`, `"30s"`, `"1h30m"`, a number of seconds, or a timedelta."""

MAX_MS = 36_525 * 86_400_000
"""The longest duration that is accepted: 100 years. More is a slip of units."""

_UNITS_MS = {"w": 604_800_000, "d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
# Largest unit first and each at most once: "30m1h" and "1m1m" are slips far more often than intentions.
_TEXT = re.compile(r"\s*(-)?" + "".join(rf"(?:([0-9]+(?:\.[0-9]+)?){u}(?![a-z])\s*)?" for u in _UNITS_MS))
_MS = timedelta(milliseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_MS = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MS
_FORMS = 'Write a number of seconds, a timedelta, or text: "250ms", "30s", "10m", "2h", "7d", "1w", "1h30m".'


def to_ms(value: Duration, *, what: str = "duration", signed: bool = False) -> int:
    """Turn a duration into whole milliseconds, rounded up so that nothing comes too early.

    Args:
        value: text with units, a number of seconds, or a timedelta.
        what: what the duration is for, to be named in an error: `"delay"`.
        signed: True lets negative durations through (one of more than 100 years comes back as 100 years).

    Raises:
        BadDuration: no duration, NaN or infinite, negative without `signed`, or longer than 100 years.

    >>> to_ms("1h30m"), to_ms(0.25), to_ms(timedelta(days=1))
    (5400000, 250, 86400000)
    """
    if isinstance(value, str):
        found = _text_ms(value, what)
    elif isinstance(value, timedelta):
        found = _ceil_ms(value)
    elif isinstance(value, bool):
        raise _bad(what, value, "is a bool, not a duration")
    elif isinstance(value, int):
        found = int(value) * 1000
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise _bad(what, value, "is not a finite number")
        # Through the shortest text: 0.07 * 1000 is 70.00000000000001, which would round up to 71.
        found = math.ceil(Decimal(float.__repr__(value)) * 1000)
    else:
        raise _bad(what, value, f"is {a_type(value)}, not a duration")
    if found < 0 and not signed:
        raise _bad(what, value, "is negative")
    if found > MAX_MS:
        raise _bad(what, value, "is more than 100 years")
    return max(found, -MAX_MS)


def to_text(ms: int) -> str:
    """Write milliseconds the way `to_ms` reads them, days being the largest unit.

    >>> to_text(5_400_000), to_text(250), to_text(0)
    ('1h30m', '250ms', '0s')
    """
    if ms < 0:
        return "-" + to_text(-ms)
    parts = []
    for unit, size in _UNITS_MS.items():
        if unit != "w" and ms >= size:
            count, ms = divmod(ms, size)
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def instant_ms(when: datetime, *, what: str = "run_at") -> int:
    """Turn a point in time into milliseconds since 1970, rounded up; what lies before 1970 is 0.

    The last millisecond of the year 9999 is the latest there is, so that the time can be read back.

    Args:
        when: a datetime with a zone. One without is refused, because hosts disagree about "local".
        what: what the time is for, to be named in an error.

    Raises:
        BadOption: not a datetime, or one without a zone.

    >>> instant_ms(datetime(2031, 7, 1, 2, tzinfo=UTC))
    1940637600000
    """
    if not isinstance(when, datetime):
        raise BadOption(
            f"{what} is {shown(when)}, {a_type(when)}; it has to be a datetime with a zone.",
            hint="Write datetime(2031, 7, 1, 12, tzinfo=ZoneInfo('Europe/Paris')); delay= takes a duration.",
            option=what,
        )
    if when.utcoffset() is None:
        raise BadOption(
            f"{what} is {when.isoformat()}, which has no zone, and hosts may disagree about local time.",
            hint="Add one: when.replace(tzinfo=UTC), or when.astimezone() where local time is meant.",
            option=what,
        )
    return min(max(0, _ceil_ms(when - _EPOCH)), _LAST_MS)


def instant(ms: int) -> datetime:
    """Turn milliseconds since 1970 into a datetime in UTC.

    >>> instant(1_940_637_600_000).isoformat()
    '2031-07-01T02:00:00+00:00'
    """
    return _EPOCH + timedelta(milliseconds=ms)


def _text_ms(text: str, what: str) -> int:
    """Read text with units."""
    match = _TEXT.fullmatch(text) if len(text) <= 100 else None
    if match is None or not any(match.groups()[1:]):
        raise _bad(what, text, "is not a duration")
    sign, *counts = match.groups()
    sizes = _UNITS_MS.values()
    total = sum(Decimal(count) * size for count, size in zip(counts, sizes, strict=True) if count)
    return math.ceil(-total if sign else total)


def _ceil_ms(value: timedelta) -> int:
    # Not -(-value // _MS): the negative of timedelta.max does not exist.
    ms, rest = divmod(value, _MS)
    return ms + bool(rest)


def _bad(what: str, value: object, why: str) -> BadDuration:
    return BadDuration(f"{what} {shown(value)} {why}.", hint=_FORMS)
