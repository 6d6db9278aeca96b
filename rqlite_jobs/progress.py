"""How far a running job says it is."""

from dataclasses import dataclass
from datetime import datetime
from typing import Self

from rqlite_jobs.durations import instant
from rqlite_jobs.errors import BadOption, a_type, shown

TEXT_MAX = 200
"""The longest text, in characters; what is longer is cut."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a running job said it is.

    Attributes:
        value: from 0 to 1.
        text: what it does, in its own words; may be empty. It is data: whoever draws it escapes it.
        at: when the server heard of it.
    """

    value: float
    text: str
    at: datetime

    @classmethod
    def read(cls, entry: bytes) -> Self | None:
        """Read an entry of the hash `progress`; None for what is none of ours.

        >>> Progress.read(b"0.5 1000 pages").value
        0.5
        """
        parts = entry.split(b" ", 2)
        try:
            value, at_ms, text = parts
            found = cls(float(value), text.decode("utf-8", "replace"), instant(int(at_ms)))
        except (ValueError, OverflowError):
            return None
        return found if 0 <= found.value <= 1 else None


def checked(value: object, text: object) -> tuple[float, str]:
    """What a handler says, in the form in which it is sent.

    A sum of tenths may be a little more than 1; that is 1.

    Raises:
        BadOption: no number from 0 to 1, or no text.

    >>> checked(2 / 5, "pages")
    (0.4, 'pages')
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not -1e-9 <= value <= 1 + 1e-9:
        raise BadOption(
            f"progress({shown(value)}) is not possible: it is {a_type(value)}, and no number from 0 to 1.",
            hint="Give the part that is done: progress(done / total).",
            option="value",
        )
    if not isinstance(text, str):
        raise BadOption(f"the text of progress() is {a_type(text)}.", hint="Give it as a str.", option="text")
    short = text if len(text) <= TEXT_MAX else text[: TEXT_MAX - 3] + "..."
    return min(max(float(value), 0.0), 1.0), short.encode("utf-8", "replace").decode()
