"""What the scripts answer, as plain values, and how their raw replies are read.

The words they answer with are matched here; one that is not known raises, for it would mean that script and reader
are not of one version.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import Struct

from rqlite_jobs.counters import read_counters
from rqlite_jobs.job import NewJob
from rqlite_jobs.lock import MODE_OF
from rqlite_jobs.snapshot import Snapshot


class Enqueued(Struct, frozen=True):
    """The answer to one enqueued job.

    Attributes:
        outcome: `enqueued`, `duplicate` or `rejected`.
        id: of the stored job; for a duplicate, of the holder.
        state: where that job is.
        holder_id: who holds the lock; empty when enqueued.
        record: the holder's record, for a duplicate; empty if it is gone by now.
        now_ms: the server's time at the call.
    """

    outcome: str
    id: str
    state: str
    holder_id: str
    record: bytes
    now_ms: int


class Claim(Struct, frozen=True):
    """A job that a worker was given.

    Attributes:
        id: its id.
        token: the right to settle it.
        record: its record, raw.
        body: its payload, if that is not in the record.
        attempts, crashes, putoffs: what went wrong before this start; see `Tries`.
    """

    id: str
    token: str
    record: bytes
    body: bytes
    attempts: int
    crashes: int
    putoffs: int


@dataclass(frozen=True, slots=True)
class Turned:
    """The answer to a turn; the attributes are those of `lua/turn.lua`."""

    registered: bool
    now_ms: int
    next_due_ms: int
    left: bool
    refused: Mapping[str, str]
    claims: Sequence[Claim]


@dataclass(frozen=True, slots=True)
class Beat:
    """The answer to a heartbeat; the attributes are those of `lua/heartbeat.lua`."""

    lost: bool
    now_ms: int
    next_end_ms: int
    recovered: int
    queues: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QueueSurvey:
    """The numbers of one queue.

    Attributes:
        name: the queue.
        ready, scheduled: how many jobs wait so.
        waiting_ms: since when the next ready one waits, 0 if there is none.
        next_due_ms: when the next scheduled one is due, 0 if there is none.
        pause: its pause, if it is paused.
    """

    name: str
    ready: int
    scheduled: int
    waiting_ms: int
    next_due_ms: int
    pause: "Pause | None" = None


@dataclass(frozen=True, slots=True)
class Pause:
    """A queue is paused: until when (0: until it is resumed), since when, by whom."""

    until_ms: int
    since_ms: int
    by: str

    @classmethod
    def read(cls, entry: bytes, now_ms: int) -> "Pause | None":
        """Read an entry of the hash `queues`; None if it tells of no pause, or of one that is over."""
        _, *told = entry.split(b" ", 3)
        if len(told) != 3 or not (told[0].isdigit() and told[1].isdigit()):
            return None
        until_ms = int(told[0])
        return cls(until_ms, int(told[1]), text(told[2])) if until_ms == 0 or until_ms > now_ms else None


@dataclass(frozen=True, slots=True)
class Survey:
    """All numbers of a namespace at one instant; see `lua/survey.lua`."""

    now_ms: int
    running: int
    dead: int
    rejected: int
    done: int
    kept: int
    locks: int
    workers: int
    records: int
    totals: Mapping[str, int]
    queues: Sequence[QueueSurvey]


@dataclass(frozen=True, slots=True)
class LockEntry:
    """One lock.

    `mode` is a word of `lock.MODES`, empty if nobody holds the lock; `until_ms` is 0 if it lives with its job, and
    `left_ms` -1 if its key has no TTL.
    """

    key: str
    mode: str
    until_ms: int
    holder_id: str
    state: str
    left_ms: int


@dataclass(frozen=True, slots=True)
class LockPage:
    """Some locks, how many there are in all, and from where a page goes on behind these; empty at the end."""

    now_ms: int
    count: int
    behind: bytes
    locks: Sequence[LockEntry]


@dataclass(frozen=True, slots=True)
class WorkerEntry:
    """One worker: the end of its lease, how many jobs it holds, whether it is being recovered, what it registered."""

    id: str
    lease_end_ms: int
    running: int
    fallen: bool
    facts: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Crew:
    """All workers at one instant."""

    now_ms: int
    workers: Sequence[WorkerEntry]


@dataclass(frozen=True, slots=True)
class Page:
    """Some jobs of one place, and from where a page goes on behind each, and behind all; empty at the end."""

    jobs: Sequence[Snapshot]
    behind_each: Sequence[bytes]
    behind: bytes


def text(raw: bytes) -> str:
    """Bytes of a reply as text; what is not UTF-8 is marked, never an error."""
    return raw.decode("utf-8", "replace")


def id_text(raw: bytes) -> str:
    """An id as text that `wire` makes the same bytes of again, also where they are no UTF-8: a job is settled by it."""
    return raw.decode("utf-8", "surrogateescape")


def read_words(reply: list[bytes]) -> list[str]:
    """A word for each id, of `cancel`, `delete` and `bury`."""
    return [word.decode() for word in reply]


def read_enqueued(jobs: Sequence[NewJob], reply: Any) -> list[Enqueued]:
    """The answers of `enqueue`, one for each job, in order."""
    if isinstance(reply, int):
        return [
            Enqueued("enqueued", job.id, "scheduled" if _waits(job) else "ready", "", b"", reply)
            for job in jobs
        ]
    now_ms, answers = reply[0], []
    for outcome, id_, state, holder, *record in reply[1:]:
        word = outcome.decode()
        if word not in ("enqueued", "duplicate", "rejected"):
            raise ValueError(f"enqueue answered with the word {word!r}")
        answers.append(
            Enqueued(word, text(id_), state.decode(), text(holder), record[0] if record else b"", now_ms)
        )
    return answers


def _waits(job: NewJob) -> bool:
    return job.delay_ms is not None or job.run_at_ms is not None


def read_turned(reply: Any) -> Turned:
    """The answer of `turn`."""
    word, now_ms, next_due_ms, left, refused, jobs = reply
    if word not in (b"ok", b"unregistered"):
        raise ValueError(f"turn answered with the word {word!r}")
    claims = [
        Claim(id_text(jobs[at]), jobs[at + 1].decode(), jobs[at + 2], jobs[at + 3], *jobs[at + 4 : at + 7])
        for at in range(0, len(jobs), 7)
    ]
    told = {id_text(refused[at]): refused[at + 1].decode() for at in range(0, len(refused), 2)}
    return Turned(word == b"ok", now_ms, next_due_ms, left == 1, told, claims)


def read_beat(reply: Any) -> Beat:
    """The answer of `heartbeat`."""
    word, now_ms, next_end_ms, recovered, queues = reply
    if word not in (b"ok", b"lost"):
        raise ValueError(f"heartbeat answered with the word {word!r}")
    return Beat(word == b"lost", now_ms, next_end_ms, recovered, tuple(map(text, queues)))


def read_lock_page(reply: Any) -> LockPage:
    """The answer of `holders`."""
    now_ms, count, behind, *found = reply
    locks = [
        LockEntry(
            text(key),
            str(MODE_OF.get(mode.decode(), mode.decode())),
            int(until),
            text(holder),
            state.decode(),
            left,
        )
        for key, mode, until, holder, state, left in found
    ]
    return LockPage(now_ms, count, behind, locks)


def read_page(reply: Any) -> Page:
    """The answer of `page`."""
    behind, *found = reply
    return Page([Snapshot.read(one[:-1]) for one in found], [one[-1] for one in found], behind)


def read_crew(reply: Any) -> Crew:
    """The answer of `crew`."""
    now_ms, *found = reply
    workers = []
    for id_, lease_end, running, fallen, *facts in found:
        pairs = {text(facts[at]): text(facts[at + 1]) for at in range(0, len(facts), 2)}
        workers.append(WorkerEntry(text(id_), int(float(lease_end)), running, fallen == 1, pairs))
    return Crew(now_ms, workers)


def read_survey(reply: Any) -> Survey:
    """The answer of `survey`."""
    now_ms, running, dead, rejected, done, kept, locks, workers, records, totals, *queues = reply
    found = [
        QueueSurvey(text(name), ready, scheduled, waiting_ms, due_ms, Pause.read(entry or b"", now_ms))
        for name, ready, scheduled, waiting_ms, due_ms, entry in queues
    ]
    return Survey(
        now_ms, running, dead, rejected, done, kept, locks, workers, records, read_counters(totals), found
    )
