"""A namespace on which a test runs one script after the other, at times it names, and sees all that each changed."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from rqlite_jobs.address import Address
from rqlite_jobs.answers import Claim, Enqueued
from rqlite_jobs.caller import Caller
from rqlite_jobs.config import Settings
from rqlite_jobs.connection import Connections
from rqlite_jobs.job import NewJob
from rqlite_jobs.keys import Keys
from rqlite_jobs.lock import MODES, Lock
from rqlite_jobs.operations import Call, Operations, Settlement
from rqlite_jobs.snapshot import Snapshot
from tests.world import World, changes, ttls_ms, world

T = TypeVar("T")

NONCE = "n" * 11
LEASE_MS = 15_000
PAYLOAD = '["f"]'
FOREIGN_QUEUE = "a key of the queue of this job has a foreign type"
UNREADABLE = "the record of this job is not one of ours"


class Stage:
    """One namespace, by default in simulated time at t = 1,000 ms.

    Attributes:
        now_ms: what the next script takes for the time; -1: the server's clock.
        client: a plain client of the server; keys are spelt by `key`.
        kept: what the last laned script keeps of its answer.
        logged: the lines that the last script wrote into the changelog, without their time, which is `now_ms`; those
            about operators first, then those of events.
    """

    def __init__(self, server: Any, namespace: str = "größe", **settings: Any) -> None:
        self.now_ms = 1000
        self.server = server
        self.client = server.client()
        self.keys = Keys(namespace)
        self.caller = Caller(Connections(Address.parse(server.url)), random.Random(1))
        self.kept = ""
        self.logged: list[dict[str, str]] = []
        self.set(**settings)

    def set(self, **settings: Any) -> None:
        """Choose settings; the rest have their defaults."""
        found = Settings.load(settings, environ={}, cwd=Path("/nowhere"))
        self.ops = Operations(self.keys, found, self._clock())

    def run(self, call: Call[T]) -> T:
        """Send a call."""
        return self.caller.run(call)

    def did(self, call: Call[T]) -> tuple[T, dict[str, Any]]:
        """Send a call; its answer, and all that it changed but the lane and the changelog."""
        before = self.world()
        answer = self.run(call)
        found = changes(before, self.world())
        lanes = [key for key in found if key.startswith("lane:")]
        assert len(lanes) == (call.repeat == "laned")
        for lane in lanes:
            self.kept = found.pop(lane)[1][len(self.caller.nonce()) :]
        self.logged = []
        for stream in ("changelog", "events"):
            old, new = found.pop(stream, (None, None))
            lines = (new or [])[len(old or []) :]
            assert self.now_ms < 0 or {line.pop("at") for line in lines} <= {str(self.now_ms)}
            self.logged += lines
        return answer, found

    def sent(self, call: Call[Any], lane: str = "lane", nonce: str = NONCE) -> Any:
        """Send a call once, in the lane and with the nonce named; the raw reply."""
        connection = self.caller.connections.resting() or self.caller.connections.address.connection()
        connection.connect()
        connection.send_packed_command([self.caller.pack(call, lane, nonce, whole=True)])
        reply = connection.read_response(disable_decoding=True)
        self.caller.connections.give(connection)
        return reply

    def world(self) -> World:
        """All keys of the namespace; no other key must be there."""
        found = world(self.client, self.keys)
        assert len(found) == self.client.dbsize()
        return found

    def ttls_ms(self) -> dict[str, int]:
        """The keys that have a TTL, but lanes and history."""
        apart = ("lane:", "history:")
        return {key: ms for key, ms in ttls_ms(self.client, self.keys).items() if not key.startswith(apart)}

    def key(self, name: str) -> str:
        """The full name of a key: `ready:sales:0`."""
        return self.keys.tag + name

    # What most tests begin with.

    def enqueue(self, *jobs: NewJob) -> list[Enqueued]:
        """Enqueue jobs in one script."""
        return self.run(self.ops.enqueue(jobs))

    def worker(self, worker: str = "w1") -> None:
        """Register a worker."""
        self.run(self.ops.register(worker, LEASE_MS, {}))

    def claim(
        self, count: int = 1, *, worker: str = "w1", queue: str = "sales", hand: int = 0, nonce: str = NONCE
    ) -> Sequence[Claim]:
        """Let a worker, registered if it is not, claim jobs."""
        self.worker(worker)
        return self.run(self.ops.turn(worker, nonce, [queue], [], count, hand)).claims

    def settle(self, word: str, claim: Claim, worker: str = "w1", **facts: Any) -> dict[str, str]:
        """Settle one job; answers what was refused."""
        settlement = Settlement(word, claim.id, claim.token, **facts)
        return dict(self.run(self.ops.turn(worker, NONCE, [], [settlement], 0)).refused)

    def bury(self, *jobs: NewJob, error: str = "ValueError('bad')", trace: str = "at x") -> None:
        """Enqueue jobs, one after the other, and let each die of a failure."""
        for job in jobs:
            self.enqueue(job)
            for claim in self.claim(queue=job.queue):
                self.settle("bury", claim, reason="failed", error=error, traceback=trace)

    def finish(self, *jobs: NewJob) -> None:
        """Enqueue jobs, one after the other, and let each be done."""
        for job in jobs:
            self.enqueue(job)
            for claim in self.claim(queue=job.queue):
                self.settle("done", claim)

    def looked(self, job_id: str) -> Snapshot:
        """Look at one job."""
        return self.run(self.ops.look([job_id]))[0]

    def state(self, job_id: str) -> str:
        """Where a job is."""
        return self.looked(job_id).state

    def _clock(self) -> Any:
        stage = self

        class Clock:
            def now_ms(self) -> int:
                return stage.now_ms

        return Clock()


def job(job_id: str, queue: str = "sales", lock: Lock | None = None, **facts: Any) -> NewJob:
    """A job to enqueue."""
    return NewJob(id=job_id, queue=queue, payload=facts.pop("payload", PAYLOAD).encode(), lock=lock, **facts)


def locked(
    job_id: str, key: str = "k", *, ttl_ms: int = 0, on_conflict: str = "return", **facts: Any
) -> NewJob:
    """A job with a lock that lives with it, or for `ttl_ms`."""
    return job(job_id, lock=Lock("until_executed", key, ttl_ms, on_conflict), **facts)


def once(
    job_id: str, key: str = "k", ttl_ms: int = 60_000, on_conflict: str = "return", **facts: Any
) -> NewJob:
    """A job with a lock that its time alone ends."""
    return job(job_id, lock=Lock("until_expired", key, ttl_ms, on_conflict), **facts)


def nearly(left_ms: int, whole_ms: int) -> bool:
    """Is this what is left of a time that began a moment ago? A busy machine may take a while for a moment."""
    return whole_ms - 100_000 < left_ms <= whole_ms + 1  # delays are rounded up to whole ms


def own(job_id: str, queue: str = "sales", lock: Lock | None = None, **facts: Any) -> NewJob:
    """A job with an id of its caller's choice."""
    return job(job_id, queue, lock, own_id=True, **facts)


def record(
    new: NewJob, enqueued_ms: int = 1000, payload: str | None = None, *, since_ms: int | None = None
) -> str:
    """The record of a job, as it stands in `jobs`; `since_ms`: since when it waits, if not as it was enqueued."""
    parts = ["1", new.queue, str(new.level), str(enqueued_ms)]
    if new.lock:
        parts += [f"m{MODES[new.lock.mode]}", f"k{new.lock.key}"]
        parts += [f"t{new.lock.ttl_ms}"] if new.lock.ttl_ms else []
    parts += [] if new.expires_ms is None else [f"x{enqueued_ms + new.expires_ms}"]
    if since_ms is None:
        due_ms = enqueued_ms + (new.delay_ms or 0) if new.run_at_ms is None else new.run_at_ms
        since_ms = due_ms if due_ms > enqueued_ms else None
    parts += [] if since_ms is None else [f"d{since_ms}"]
    return "\0".join([*parts, "", new.payload.decode() if payload is None else payload])


def tries(
    attempts: int = 0,
    crashes: int = 0,
    putoffs: int = 0,
    died_ms: int = 0,
    started_ms: int = 0,
    reason: str = "",
    error: str = "",
) -> str:
    """An entry of `tries`."""
    return "\0".join([*map(str, (attempts, crashes, putoffs, died_ms, started_ms)), reason, error])
