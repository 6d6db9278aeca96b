"""The lifetime counters of a namespace, and what each of the last minutes or days has added to them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

COUNTERS = (
    "enqueued", "done", "died", "failed", "crashed", "refused", "cancelled", "deleted", "expired", "superseded",
)  # fmt: skip
"""What is counted; see the fields of `Stats`."""

UNITS = {"minute": 1, "day": 24 * 60}
"""What history is kept by, in minutes. Days and minutes are those of UTC."""


@dataclass(frozen=True, slots=True)
class Counted:
    """What was counted in some minutes or days.

    Attributes:
        now_ms: the server's time.
        last: the number of the newest minute or day since 1970: this one, or a later one if the clock went back.
        by_number: number -> counter -> count; without those that counted nothing.
    """

    now_ms: int
    last: int
    by_number: Mapping[int, Mapping[str, int]]


def counters(flat: list[Any]) -> dict[str, int]:
    """The counters of a flat list of counter, value; what is none of them is left out."""
    pairs = {flat[at].decode("utf-8", "replace"): flat[at + 1] for at in range(0, len(flat), 2)}
    return {name: int(value) for name, value in pairs.items() if name != "minute" and value.isdigit()}


def read_counted(reply: Any, unit_ms: int) -> Counted:
    """The answer of `history`: a minute added what the counters were at the next one, less those at its own."""
    now_ms, flat, *copies = reply
    after, by_number = counters(flat), dict[int, Mapping[str, int]]()
    for number, before in copies:
        begun = counters(before)
        added = {name: count - begun.get(name, 0) for name, count in after.items()}
        if some := {name: count for name, count in added.items() if count > 0}:
            by_number[number] = some
        after = begun
    return Counted(now_ms, max(now_ms // unit_ms, *by_number, 0), by_number)
