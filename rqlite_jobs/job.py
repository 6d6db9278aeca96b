"""The job: what a caller holds, what a producer sends, and what lies in the server."""

import os
import random
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Protocol, Self, TypeVar

from msgspec import Struct, field

from rqlite_jobs.durations import Duration
from rqlite_jobs.errors import RqjError
from rqlite_jobs.lock import MODE_OF, Lock

R_co = TypeVar("R_co", covariant=True)

_LAST_MS = 253_402_300_799_999  # the end of the year 9999, beyond which no datetime goes


class Source(Protocol):
    """Where a `Job` asks about itself: the App."""

    def job_by_id(self, id: str, /) -> "Job[Any]":
        """Read a job."""
        ...

    async def ajob_by_id(self, id: str, /) -> "Job[Any]":
        """Read a job."""
        ...

    def cancel_job(self, id: str, /) -> bool:
        """Cancel a job; True: it will never start."""
        ...

    async def acancel_job(self, id: str, /) -> bool:
        """Cancel a job; True: it will never start."""
        ...

    def result_of(self, job: "Job[Any]", timeout: Duration | None = None, /) -> Any:
        """Wait for what a job returns."""
        ...

    async def aresult_of(self, job: "Job[Any]", timeout: Duration | None = None, /) -> Any:
        """Wait for what a job returns."""
        ...


class Job(Struct, Generic[R_co], frozen=True):
    """A job as it was when it was enqueued or read. It never changes; `refresh` reads it anew.

    Attributes:
        id: its id, 20 characters unless the caller chose one.
        name: the name of its handler; empty where its record could not be read.
        queue: the queue it is in.
        args: positional arguments of the call.
        kwargs: keyword arguments of the call.
        tags: words about it, chosen by the caller.
        outcome: what became of the enqueue (`enqueued`, `duplicate`, `rejected`); None on a job read later.
        holder_id: the job that holds the lock, or has the id, in every outcome but `enqueued`.
        state: `ready`, `scheduled`, `running`, `dead`, `done`, `cancelled`, `expired`.
        attempts: starts that were neither handed back nor snoozed.
        crashes: those attempts that ended with their process.
        last_error: the repr of the last exception, at most 4 KiB.
        traceback: its traceback, at most 32 KiB.
        lock_key: the key of its lock, None without one.
        run_at: when it is due, while it is scheduled.
        enqueued_at: when the server took it.
        started_at: when its running attempt started.
        finished_at: when it was done, or died.
    """

    id: str
    name: str = ""
    queue: str = ""
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    outcome: str | None = None
    holder_id: str | None = None
    state: str = ""
    attempts: int = 0
    crashes: int = 0
    last_error: str | None = None
    traceback: str | None = None
    lock_key: str | None = None
    run_at: datetime | None = None
    enqueued_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    tags: tuple[str, ...] = ()
    _app: Source | None = None

    def refresh(self) -> "Job[R_co]":
        """Read the job as it is now.

        Raises:
            JobNotFound: nothing of it is left.
            Unreachable: the server does not answer.
        """
        return self._source().job_by_id(self.id)

    async def arefresh(self) -> "Job[R_co]":
        """Read the job as it is now: `refresh` for async code."""
        return await self._source().ajob_by_id(self.id)

    def cancel(self) -> bool:
        """Keep the job from running.

        Returns:
            True: it will never start. False: it is running, has ended, or is not known.

        Raises:
            Unreachable: the server does not answer.
        """
        return self._source().cancel_job(self.id)

    async def acancel(self) -> bool:
        """Keep the job from running: `cancel` for async code."""
        return await self._source().acancel_job(self.id)

    def result(self, timeout: Duration | None = None) -> R_co:
        """Wait for what the job returns. It is told when the job ends; nothing is polled.

        Args:
            timeout: how long; None: until it ends.

        Raises:
            ResultTimeout: it has not ended by then.
            JobFailed: it is dead.
            JobCancelled: it was cancelled, deleted, or expired.
            ResultExpired: it was there, and what it returned is not kept, or not any more.
            JobNotFound: nothing of it is known.

        Cost: two commands; one thread and connection serve all that wait in a process.

        Example: `crunch_sales.enqueue(42).result("5s")`.
        """
        found: R_co = self._source().result_of(self, timeout)
        return found

    async def aresult(self, timeout: Duration | None = None) -> R_co:
        """Wait for what the job returns: `result` for async code."""
        found: R_co = await self._source().aresult_of(self, timeout)
        return found

    def __eq__(self, other: object) -> bool:
        # Without the app: the same job read through two apps is the same.
        return isinstance(other, Job) and all(
            getattr(self, name) == getattr(other, name) for name in self.__struct_fields__ if name != "_app"
        )

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        # Without the arguments: they may be secret, and reprs end in logs.
        facts = [f"{name}={getattr(self, name)!r}" for name in ("id", "name", "queue", "state")]
        if self.outcome:
            facts.append(f"outcome={self.outcome!r}")
        return f"Job({', '.join(facts)})"

    def _source(self) -> Source:
        if self._app is None:
            raise RqjError(f"{self!r} belongs to no app.", hint="Read it with app.job_by_id(id).")
        return self._app


class NewJob(Struct, frozen=True):
    """A call that was bound and encoded, ready to be sent.

    Attributes:
        id: its id.
        queue: where it goes.
        payload: what `codec.encode` made of the call.
        level: its place among the levels of its queue; 0 without priorities.
        delay_ms: how long from the server's now until it is due; None: now.
        run_at_ms: when it is due, in ms since 1970; None: now. Never together with `delay_ms`.
        lock: the lock it asks for.
        name, args, kwargs, tags: the call itself, for the handle that the caller gets.
        own_id: its id was chosen by the caller, so one that is known already is a duplicate and no fault.
        expires_ms: how long from the server's now it may wait to be started; None: for ever.
    """

    id: str
    queue: str
    payload: bytes
    level: int = 0
    delay_ms: int | None = None
    run_at_ms: int | None = None
    lock: Lock | None = None
    name: str = ""
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    own_id: bool = False
    expires_ms: int | None = None
    tags: tuple[str, ...] = ()

    @property
    def plain(self) -> bool:
        """Is it due now, without a lock, an id of its own and an end?"""
        due_now = self.delay_ms is None and self.run_at_ms is None
        return due_now and self.lock is None and not self.own_id and self.expires_ms is None


@dataclass(frozen=True, slots=True)
class Record:
    """A job as it lies in the hash `jobs`; lua/lib/record.lua reads and writes the same.

        1 NUL queue NUL level NUL enqueued_ms NUL {tag value NUL} NUL payload

    Attributes:
        queue: the queue it belongs to.
        level: its level in that queue, 0-9.
        enqueued_at_ms: when the server took it.
        mode: the mode of its lock, a key of `lock.MODES`; empty without a lock.
        lock_key: the key of its lock; empty without a lock.
        lock_ttl_ms: the ttl of its lock; 0: it lives with the job.
        payload: empty where it lies in the hash `bodies`.
        expires_at_ms: when it is too late to start it; 0: never.
    """

    queue: str
    level: int
    enqueued_at_ms: int
    mode: str = ""
    lock_key: str = ""
    lock_ttl_ms: int = 0
    payload: bytes = b""
    expires_at_ms: int = 0

    @classmethod
    def read(cls, raw: bytes) -> Self | None:
        """Read a record; None where it is not one of ours.

        >>> Record.read(bytes(1).join([b"1", b"sales", b"0", b"1700000000000", b"", b'["mail"]'])).queue
        'sales'
        """
        head = _HEAD.match(raw)
        if head is None:
            return None
        queue, level, enqueued_ms, tag_text = head.groups()
        payload = raw[head.end() :]
        tags = {tag[:1]: tag[1:] for tag in tag_text.split(b"\0")} if tag_text else {}
        try:
            expires_at_ms = int(tags.get(b"x", b"0"))
            found = cls(queue.decode(), int(level), int(enqueued_ms), *_lock_of(tags), payload, expires_at_ms)
        except ValueError:  # not UTF-8, not a number, or a lock with half of its facts
            return None
        return found if found.enqueued_at_ms <= _LAST_MS else None


_HEAD = re.compile(
    rb"1\0([^\0]+)\0([0-9])\0([0-9]{1,15})\0((?:[a-z][^\0]*\0)*)\0"  # queue, level, enqueued_ms, tags
)

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_PAIRS = [one + two for one in _DIGITS for two in _DIGITS]
_random = random.Random()  # our own: random.seed() in an application must not make ids repeat
_last_prefix = (0, "")
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_random.seed)


def new_id() -> str:
    """Make an id: 20 characters of base 62; 8 tell the time in ms, 2 the partition, and 10 are random.

    As text they sort by time. They differ between threads, processes and forks, whatever `random.seed` does.

    Cost: about 1 us.
    """
    global _last_prefix
    now_ms = time.time_ns() // 1_000_000
    prefix_ms, prefix = _last_prefix
    if now_ms != prefix_ms:
        prefix = _base62(now_ms, 4) + "00"
        _last_prefix = (now_ms, prefix)
    return prefix + _base62(_random.getrandbits(64), 5)


def _base62(number: int, pairs: int) -> str:
    """The last digits of a number: `pairs` times two."""
    text = ""
    for _ in range(pairs):
        number, rest = divmod(number, 3844)
        text = _PAIRS[rest] + text
    return text


def _lock_of(tags: Mapping[bytes, bytes]) -> tuple[str, str, int]:
    """Mode, key and ttl of the lock that the tags tell of."""
    if not tags:
        return "", "", 0
    letter, key = tags.get(b"m", b"").decode(), tags.get(b"k", b"").decode()
    if bool(letter) != bool(key):
        raise ValueError("a lock with a mode and no key, or the other way round")
    return MODE_OF.get(letter, letter), key, int(tags.get(b"t", b"0"))
