"""What a script must write into the changelog: told by the model's answer, and by what the model came to be.

A line is (act, how many, ids); the ids are None where the answer does not tell them, and are not compared then.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from rqlite_jobs.operations import Call
from tests.model.state import State

Line = tuple[str, int, tuple[str, ...] | None]

_DONE = {
    "cancel": "cancelled", "delete": "deleted", "bury": "buried", "revive": "revived", "retry": "retried",
    "release": "released",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Before:
    """What of a state must be kept to tell later what happened."""

    workers: frozenset[str]
    crashed_too_often: int
    expired: int

    @classmethod
    def of(cls, state: State) -> Self:
        crashed = state.taken["give back: crashed too often"]
        return cls(frozenset(state.workers), crashed, state.totals["expired"])


def told(call: Call[Any], answer: Any, before: Before, state: State) -> Mapping[str, list[Line]]:
    """The lines of a call, by stream."""
    lines, events = list[Line](), list[Line]()
    if call.verb in _DONE:
        asked = [str(arg) for arg in call.args[len(call.args) - len(answer) :]]
        pairs = [one if isinstance(one, tuple) else (one, "") for one in answer]
        done = [
            holder if call.verb == "release" else id
            for id, (word, holder) in zip(asked, pairs, strict=True)
            if word == _DONE[call.verb]
        ]
        lines += _line(call.verb, done)
    elif call.verb == "purge":
        lines += _line("purge", answer[0] + answer[1])
    elif call.verb == "pause":
        act = {"paused": "pause", "resumed": "resume"}.get(answer)
        lines += [(act, 0, ())] if act else []
    elif call.verb in ("recover", "heartbeat"):
        count = answer[0] if call.verb == "recover" else answer.recovered
        if count or before.workers - state.workers.keys():
            lines.append(("recover", count, None))
        lines += _line("bury", state.taken["give back: crashed too often"] - before.crashed_too_often)
    if call.verb in ("enqueue", "turn", "revive"):
        events += _line("expire", state.totals["expired"] - before.expired)
    if call.verb == "enqueue":
        events += _line("reject", [one.id for one in answer if one.outcome == "rejected"])
    return {"changelog": lines, "events": events}


def differing(found: Sequence[Mapping[str, str]], wanted: Sequence[Line]) -> str:
    """Where lines of a stream are not those that were told; empty if they are."""
    read = [
        (one["act"], int(one["count"]), tuple(one["ids"].split("\0")) if one["ids"] else ()) for one in found
    ]
    same = len(read) == len(wanted) and all(
        one[:2] == other[:2] and other[2] in (None, one[2]) for one, other in zip(read, wanted, strict=True)
    )
    return "" if same else f"the changelog has {read}, the model {list(wanted)}"


def _line(act: str, what: int | list[str]) -> list[Line]:
    if isinstance(what, int):
        return [(act, what, None)] if what else []
    return [(act, len(what), tuple(what))] if what else []
