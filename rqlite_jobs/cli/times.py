"""Times as people read them: how long ago, how soon, by the server's clock and not by that of this machine."""

import re
from datetime import datetime, timedelta

_SECOND = timedelta(seconds=1)
_UNITS = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))
NONE = "-"


def age(then: datetime | None, now: datetime) -> str:
    """How long ago something was: `42s`, `5m12s`, `3d4h`; never negative.

    >>> from datetime import UTC
    >>> age(datetime(2031, 1, 1, tzinfo=UTC), datetime(2031, 1, 1, 1, 30, tzinfo=UTC))
    '1h30m'
    """
    return NONE if then is None else span(max(0, (now - then) // _SECOND))


def ago(then: datetime | None, now: datetime) -> str:
    """The same with a word behind it: `5m12s ago`."""
    return NONE if then is None else f"{age(then, now)} ago"


def until(then: datetime | None, now: datetime) -> str:
    """How soon something is: `in 42s`; `due` once it is over.

    Seconds are rounded up, so that nothing seems to be due before it is.
    """
    if then is None:
        return NONE
    return "due" if then <= now else f"in {span(-((now - then) // _SECOND))}"


def lasted(begin: datetime | None, end: datetime | None) -> str:
    """How long something took: `250ms`, `3s`."""
    if begin is None or end is None:
        return NONE
    took = max(timedelta(0), end - begin)
    return span(took // _SECOND) if took >= _SECOND else f"{took // timedelta(milliseconds=1)}ms"


def moment(then: datetime | None, now: datetime) -> str:
    """A point in time and how far away it is: `2031-07-01 02:00:00 UTC (5m12s ago)`."""
    if then is None:
        return NONE
    distance = ago(then, now) if then <= now else until(then, now)
    return f"{then:%Y-%m-%d %H:%M:%S} UTC ({distance})"


def span(seconds: int) -> str:
    """Whole seconds in their two largest units.

    >>> span(0), span(75), span(90_000)
    ('0s', '1m15s', '1d1h')
    """
    parts = []
    for unit, size in _UNITS:
        number, seconds = divmod(seconds, size)
        parts.append(f"{number}{unit}" if number else "")
    first = next((at for at, part in enumerate(parts) if part), len(parts) - 1)
    return "".join(parts[first : first + 2]) or "0s"


def duration(text: str | None) -> str | float | None:
    """A duration as it was typed; a bare number is seconds, as in code."""
    if text is not None and re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", text):
        return float(text)
    return text
