"""The lifetime counters of a namespace, and what each of the last minutes or days has added to them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

COUNTERS = (
    "enqueued", "done", "died", "failed", "crashed", "refused", "cancelled", "deleted", "expired", "superseded",
)  # fmt: skip
"""What is counted; see the fields of `Stats`."""

UNITS = {"minute": 1, "day": 24 * 60}
"""What history is kept by, in minutes. Days and minutes are those of UTC."""


@dataclass(frozen=True, slots=True)
class Copy:
    """What the counters were when a minute or day began.

    Attributes:
        number: which one, since 1970.
        counters: counter -> value.
        before: the number of the one that counted last before it; 0 if there is none.
    """

    number: int
    counters: Mapping[str, int]
    before: int


@dataclass(frozen=True, slots=True)
class Copies:
    """Some of the copies, the newest first.

    Attributes:
        now_ms: the server's time.
        counters: what the counters are now.
        copies: those of minutes or days that counted something.
    """

    now_ms: int
    counters: Mapping[str, int]
    copies: Sequence[Copy]

    def added(self) -> dict[int, dict[str, int]]:
        """What each minute or day added: what the counters were at the next one, less what they were at its own.

        Returns:
            number -> counter -> count, without counts of 0 and without those that added nothing.
        """
        found: dict[int, dict[str, int]] = {}
        after = self.counters
        for copy in self.copies:
            added = {name: count - copy.counters.get(name, 0) for name, count in after.items()}
            if some := {name: count for name, count in added.items() if count > 0}:
                found[copy.number] = some
            after = copy.counters
        return found


def read_counters(flat: list[Any]) -> dict[str, int]:
    """The counters of a flat list of counter, value; what is none of them is left out."""
    return {name: int(value) for name, value in _pairs(flat).items() if name != "minute" and value.isdigit()}


def read_copies(reply: Any, minutes: int) -> Copies:
    """The answer of `history` about units of so many minutes."""
    now_ms, flat, *found = reply
    copies = [Copy(number, read_counters(one), _minute(one) // minutes) for number, one in found]
    return Copies(now_ms, read_counters(flat), copies)


def _minute(flat: list[Any]) -> int:
    text = _pairs(flat).get("minute", b"")
    return int(text) if text.isdigit() else 0


def _pairs(flat: list[Any]) -> dict[str, bytes]:
    return {flat[at].decode("utf-8", "replace"): flat[at + 1] for at in range(0, len(flat), 2)}
