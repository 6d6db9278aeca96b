"""What a reader gets: one frozen row a thing, times as aware UTC datetimes, as in `Job`."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Self, TypeVar

from rqlite_jobs.answers import LockEntry, Pause, QueueSurvey, Survey, WorkerEntry
from rqlite_jobs.counters import COUNTERS
from rqlite_jobs.durations import instant

T = TypeVar("T")

_LAST_MS = 253_402_300_799_999  # the end of the year 9999, beyond which no datetime goes


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some of many things.

    Attributes:
        items: the things on this page.
        now: the server's time when it was read.
        count: how many there are in all; None where that would cost reading them, as with a filter.
        next: the cursor of the next page, to be passed on as it is; empty on the last one.
        looked: how many records were looked at for this page and those before it; None where pages are not read so.
        among: of how many; those that come and go meanwhile are why this is no promise.

    Iterating over a page goes through its items.
    """

    items: tuple[T, ...]
    now: datetime
    count: int | None = None
    next: str = ""
    looked: int | None = None
    among: int | None = None

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


@dataclass(frozen=True, slots=True)
class PauseRow:
    """The pause of a queue.

    Attributes:
        until: when it ends; None: when somebody resumes the queue.
        since: when it began.
        by: who asked for it.
    """

    until: datetime | None
    since: datetime | None
    by: str

    @classmethod
    def of(cls, found: Pause) -> Self:
        """Make the row from what the script answered."""
        return cls(moment(found.until_ms), moment(found.since_ms), found.by)


@dataclass(frozen=True, slots=True)
class QueueRow:
    """One queue.

    Attributes:
        name: its name.
        ready: jobs that could be claimed now.
        scheduled: jobs that wait for their time: delayed, or for a retry.
        waiting_since: since when the next ready job has been waiting: it was enqueued then, or was due if it was
            delayed or had failed, or came back from a dead worker or from among the dead; None without one.
        next_due_at: when the first scheduled job is due; None without one.
        pause: its pause, if it is paused: then none of its jobs is started.
    """

    name: str
    ready: int
    scheduled: int
    waiting_since: datetime | None
    next_due_at: datetime | None
    pause: PauseRow | None = None

    @classmethod
    def of(cls, found: QueueSurvey) -> Self:
        """Make the row from what the script answered."""
        since, due = moment(found.waiting_ms), moment(found.next_due_ms)
        pause = PauseRow.of(found.pause) if found.pause else None
        return cls(found.name, found.ready, found.scheduled, since, due, pause)


@dataclass(frozen=True, slots=True)
class LockRow:
    """One lock that is held.

    Attributes:
        key: its key, which begins with the name of the job.
        mode: `until_executed` or `until_expired`.
        holder_id: the job that holds it.
        holder_state: where that job is.
        expires_at: when it is let go whatever its job does; None: it lives with its job.
        left_ms: the time until then, in ms.
    """

    key: str
    mode: str
    holder_id: str
    holder_state: str
    expires_at: datetime | None
    left_ms: int | None

    @classmethod
    def of(cls, found: LockEntry, now_ms: int) -> Self:
        """Make the row from what the script answered at `now_ms`."""
        left_ms = max(0, found.until_ms - now_ms) if found.until_ms else None
        return cls(found.key, found.mode, found.holder_id, found.state, moment(found.until_ms), left_ms)


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """One worker.

    Attributes:
        id: its id; a worker that loses its lease comes back under a new one.
        state: `alive`; `silent`, its lease is over and its jobs will be given back; `fallen`, they are being
            given back.
        host, pid, version: where it runs, and what.
        queues: those it serves, in order; `all_queues`: and every other that exists.
        concurrency: how many jobs it runs at once.
        running: how many it holds now.
        names: the jobs it knows.
        started_at: when it registered.
        lease_ends_at: when it counts as dead, unless it is heard of before.
    """

    id: str
    state: str
    host: str
    pid: int
    version: str
    queues: tuple[str, ...]
    all_queues: bool
    concurrency: int
    running: int
    names: tuple[str, ...]
    started_at: datetime | None
    lease_ends_at: datetime | None

    @classmethod
    def of(cls, found: WorkerEntry, now_ms: int) -> Self:
        """Make the row from what the script answered at `now_ms`."""
        facts = found.facts
        silent = "silent" if found.lease_end_ms <= now_ms else "alive"
        return cls(
            id=found.id,
            state="fallen" if found.fallen else silent,
            host=facts.get("host", ""),
            pid=_number(facts.get("pid")),
            version=facts.get("version", ""),
            queues=_names(facts.get("queues")),
            all_queues=facts.get("all_queues") == "1",
            concurrency=_number(facts.get("concurrency")),
            running=found.running,
            names=_names(facts.get("names")),
            started_at=moment(_number(facts.get("started_ms"))),
            # Of a fallen one the script keeps the moment of its fall there.
            lease_ends_at=None if found.fallen else moment(found.lease_end_ms),
        )


@dataclass(frozen=True, slots=True)
class Stats:
    """All numbers of a namespace, read at one instant.

    At every instant enqueued = ready + scheduled + running + parked + dead + done + cancelled + deleted + expired +
    superseded.

    Attributes:
        now: the server's time.
        ready, scheduled, running, parked, dead: how many jobs are there now.
        locks: how many locks are held now.
        workers: how many workers have a lease.
        enqueued: jobs ever stored, refused duplicates that were stored among them.
        done: jobs that ended well.
        died: how often a job came among the dead.
        failed: attempts that raised.
        attempts: all attempts that have ended.
        crashed: attempts that ended with their process.
        refused: enqueues answered with another job that held the lock.
        cancelled, deleted, expired, superseded: jobs that left before they were done.
        waiting_since: the queues that have a ready job, by name: since when the next one waits; see `QueueRow`.
        paused: the queues that are paused now, by name.
    """

    now: datetime
    ready: int
    scheduled: int
    running: int
    parked: int
    dead: int
    locks: int
    workers: int
    enqueued: int
    done: int
    died: int
    failed: int
    attempts: int
    crashed: int
    refused: int
    cancelled: int
    deleted: int
    expired: int
    superseded: int
    waiting_since: Mapping[str, datetime]
    paused: Mapping[str, PauseRow]

    @classmethod
    def of(cls, found: Survey) -> Self:
        """Make the numbers from what the script answered."""
        queues = sorted(found.queues, key=lambda queue: queue.name)
        waiting = {queue.name: moment(queue.waiting_ms) for queue in queues}
        total = {name: found.totals.get(name, 0) for name in COUNTERS}
        return cls(
            now=instant(found.now_ms),
            ready=sum(queue.ready for queue in found.queues),
            scheduled=sum(queue.scheduled for queue in found.queues),
            running=found.running,
            parked=0,
            dead=found.dead + found.rejected,
            locks=found.locks,
            workers=found.workers,
            attempts=_attempts(total),
            waiting_since={name: since for name, since in waiting.items() if since},
            paused={queue.name: PauseRow.of(queue.pause) for queue in queues if queue.pause},
            **total,
        )


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """What one minute, or one day, of a namespace has counted.

    Attributes:
        start: when it began; minutes and days are those of UTC.
        enqueued, done, died, failed, attempts, crashed, refused, cancelled, deleted, expired, superseded: as in
            `Stats`, but only what this minute or day added.
    """

    start: datetime
    enqueued: int = 0
    done: int = 0
    died: int = 0
    failed: int = 0
    attempts: int = 0
    crashed: int = 0
    refused: int = 0
    cancelled: int = 0
    deleted: int = 0
    expired: int = 0
    superseded: int = 0

    @classmethod
    def of(cls, start_ms: int, counted: Mapping[str, int]) -> Self:
        """Make the row from what was counted."""
        total = {name: counted.get(name, 0) for name in COUNTERS}
        return cls(instant(start_ms), attempts=_attempts(total), **total)


def _attempts(total: Mapping[str, int]) -> int:
    """Every attempt ends in one of three ways."""
    return total["done"] + total["failed"] + total["crashed"]


def moment(ms: int) -> datetime | None:
    """A time of the server as a datetime; None for 0, and for what no datetime can be."""
    return instant(ms) if 0 < ms <= _LAST_MS else None


def _number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 19 else 0


def _names(text: str | None) -> tuple[str, ...]:
    """A list of names as a worker registers it; what is none of ours is no name."""
    try:
        found = json.loads(text or "[]")
    except (ValueError, RecursionError):
        return ()
    return tuple(str(name) for name in found) if isinstance(found, list) else ()
