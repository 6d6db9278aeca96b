"""The changelog as its script answers: lines of fields, the newest first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rqlite_jobs.answers import text

ACTS = (
    "cancel", "delete", "bury", "revive", "retry", "purge", "pause", "resume", "release", "recover",
    "expire", "reject", "takeover",
)  # fmt: skip
"""What lines tell of: what operators do, and from `expire` on what befalls jobs and locks by themselves."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Some lines of `count`: how many were looked at for them, and the cursor behind the last of those.

    The cursor is empty where nothing comes behind.
    """

    now_ms: int
    count: int
    looked: int
    next: str
    lines: Sequence[Mapping[str, str]]


def read_changes(reply: Any) -> Changes:
    """The answer of `changes`."""
    now_ms, count, looked, following, *lines = reply
    return Changes(now_ms, count, looked, text(following), [_line(line) for line in lines])


def _line(facts: Sequence[bytes]) -> Mapping[str, str]:
    return {text(facts[at]): text(facts[at + 1]) for at in range(0, len(facts), 2)}
