"""What a reader finds of a job in Redis: its record and what went wrong with it so far, as plain values."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rqlite_jobs.progress import Progress


@dataclass(frozen=True, slots=True)
class Tries:
    """What went wrong with a job so far; all zero for a job that never failed.

    Attributes:
        attempts: starts that failed, or ended with their process.
        crashes: those of them that ended with their process.
        putoffs: how often a worker that does not know the job put it off.
        died_ms: when it came among the dead, server's time; 0 if it is not there.
        started_ms: when the last of the attempts started, server's time.
        reason: why it is dead, a word: `failed crashed buried malformed duplicate`.
        error: the last error, text.
    """

    attempts: int = 0
    crashes: int = 0
    putoffs: int = 0
    died_ms: int = 0
    started_ms: int = 0
    reason: str = ""
    error: str = ""

    @classmethod
    def read(cls, entry: bytes) -> "Tries":
        """Read an entry of the hash `tries`; one that is empty or unreadable is that of a job which never failed."""
        parts = entry.split(b"\0", 6)
        if len(parts) != 7 or not all(part.isdigit() for part in parts[:5]):
            return cls()
        attempts, crashes, putoffs, died_ms, started_ms = map(_number, parts[:5])
        return cls(attempts, crashes, putoffs, died_ms, started_ms, _text(parts[5]), _text(parts[6]))


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One job at one instant.

    Attributes:
        id: its id.
        state: where it is: `ready scheduled running dead done`, a word about one that is gone, `malformed` or
            `unknown`.
        record: its record, raw; empty if it is gone.
        body: its payload, if that does not stand in the record and was asked for.
        tries: what went wrong so far.
        traceback: of the last error, if asked for.
        started_ms, finished_ms: of the last run, server's time; 0 where there is none.
        worker, token: whose it is while it runs.
        run_at_ms: when it is due, while scheduled; else 0.
        progress: how far it said it is, while it runs.
        kept_until_ms: until when its result is kept, if it is done and that has an end of its own; else 0.
    """

    id: str
    state: str
    record: bytes
    body: bytes
    tries: Tries
    traceback: str
    started_ms: int
    finished_ms: int
    worker: str
    token: str
    run_at_ms: int
    progress: Progress | None = None
    kept_until_ms: int = 0

    @classmethod
    def read(cls, reply: Sequence[Any]) -> "Snapshot":
        """Read what `lua/lib/snapshot.lua` answers; what none of our scripts has written reads as nothing."""
        id_, state, record, body, tries, trace, end, worker, entry, run_at, far, kept_until = reply
        started, finished, *_ = *bytes(end).split(b" ", 2), b""
        token = bytes(entry)[1:]
        known = Tries.read(tries)
        return cls(
            id=_text(id_),
            state=_text(state),
            record=record,
            body=body,
            tries=known,
            traceback=_text(trace),
            started_ms=_number(started) or _number(token.partition(b"-")[0]) // 1000 or known.started_ms,
            finished_ms=_number(finished) or known.died_ms,
            worker=_text(worker),
            token=_text(token),
            run_at_ms=_moment(run_at),
            progress=Progress.read(far),
            kept_until_ms=_moment(kept_until),
        )


def _moment(score: bytes) -> int:
    score_ms = float(score or 0)
    return int(score_ms) if math.isfinite(score_ms) else 0


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _number(raw: bytes) -> int:
    return int(raw) if len(raw) < 20 and raw.isdigit() else 0
