"""What a namespace is, as plain Python values, and the moves that the verbs of `model` are made of.

Written from the design, not from the scripts: a job here *has* a state, a lock *is* a pointer, and nothing is spread
over keys. How all of it would lie in Redis is the business of `picture`.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from rqlite_jobs.answers import Pause
from tests.model.branches import BRANCHES
from tests.model.facts import Bounds, Job, Pointer

WAITING = frozenset({"ready", "scheduled"})
HOLDING = WAITING | {"running"}
"""The states in which a job of `until_executed` holds its lock."""


class Refused(Exception):
    """The script answers with an error, of which this is a part, and nothing changes."""


@dataclass
class State:
    """All that is known in a namespace. Lists have the newest first, but `ready`: there the next to run is first."""

    bounds: Bounds
    now_ms: int
    taken: Counter[str] = field(default_factory=Counter)
    jobs: dict[str, Job] = field(default_factory=dict)
    ready: dict[str, list[str]] = field(default_factory=dict)
    tombs: dict[str, set[str]] = field(default_factory=dict)
    dead: list[str] = field(default_factory=list)
    rejected: list[str] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    kept: dict[str, float] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)
    gone: dict[str, str] = field(default_factory=dict)
    locks: dict[str, Pointer] = field(default_factory=dict)
    workers: dict[str, int] = field(default_factory=dict)
    fallen: dict[str, int] = field(default_factory=dict)
    facts: dict[str, dict[str, str]] = field(default_factory=dict)
    queues: set[str] = field(default_factory=set)
    pauses: dict[str, Pause] = field(default_factory=dict)
    tokens: set[str] = field(default_factory=set)
    totals: Counter[str] = field(default_factory=Counter)
    fence: int = 0
    foreign: set[str] = field(default_factory=set)
    lanes: dict[str, tuple[str, Any]] = field(default_factory=dict)

    def note(self, what: str) -> None:
        """Count that a branch was taken; see `branches`."""
        assert what in BRANCHES, f"{what!r} is missing in tests/model/branches.py"
        self.taken[what] += 1

    # Where jobs are.

    def place_of(self, id: str) -> str:
        job = self.jobs.get(id)
        return job.state if job else self.gone.get(id, "unknown")

    def scheduled(self, queue: str) -> list[Job]:
        waiting = [job for job in self.jobs.values() if job.state == "scheduled" and job.queue == queue]
        return sorted(waiting, key=lambda job: (job.due_ms, job.id))

    def running(self, worker: str) -> list[Job]:
        """What a worker holds, the last claimed first."""
        held = [job for job in self.jobs.values() if job.state == "running" and job.worker == worker]
        return sorted(held, key=lambda job: -job.fence)

    def ready_count(self, queue: str) -> int:
        return len(self.ready.get(queue, ())) - len(self.tombs.get(queue, ()))

    def pause_of(self, queue: str) -> Pause | None:
        """The pause of a queue that is paused now; one that is over is none."""
        pause = self.pauses.get(queue)
        return pause if pause and (pause.until_ms == 0 or pause.until_ms > self.now_ms) else None

    def lapsed(self, job: Job | None) -> bool:
        """Does it wait although its time is over? Whoever meets it ends it."""
        return bool(job and job.state in WAITING and 0 < job.expires_ms <= self.now_ms)

    # Waiting.

    def wake(self, queue: str) -> None:
        self.tokens.add(queue)

    def line_up(self, job: Job) -> None:
        job.state = "ready"
        self.ready.setdefault(job.queue, []).append(job.id)
        self.wake(job.queue)

    def put_first(self, job: Job) -> None:
        job.state = "ready"
        self.ready.setdefault(job.queue, []).insert(0, job.id)
        self.wake(job.queue)

    def put_off(self, job: Job, due_ms: int) -> None:
        before = self.scheduled(job.queue)
        if not before or due_ms < before[0].due_ms:
            self.wake(job.queue)
        job.state, job.due_ms, job.since_ms = "scheduled", due_ms, due_ms

    def unbury(self, job: Job) -> bool:
        """Give a job the place of its id, if one lies in the list of its queue under a tomb."""
        if job.id not in self.tombs.get(job.queue, ()):
            return False
        self.tombs[job.queue].remove(job.id)
        job.state = "ready"
        return True

    def take_out(self, job: Job) -> None:
        """A waiting job leaves its place; a ready one leaves a tomb, and a list of tombs only goes at once."""
        if job.state == "scheduled":
            return
        self.tombs.setdefault(job.queue, set()).add(job.id)
        if len(self.tombs[job.queue]) >= len(self.ready[job.queue]):
            self.note("take out: nothing but tombs left")
            self.ready[job.queue], self.tombs[job.queue] = [], set()

    # Words about those that are gone.

    def tell(self, id: str, word: str) -> None:
        self.gone[id] = word
        self.left.insert(0, id)
        while len(self.left) > self.bounds.done_max_count:
            self.note("gone: over the count")
            del self.gone[self.left.pop()]

    def forget_word(self, id: str) -> None:
        if self.gone.pop(id, None):
            self.note("gone: comes again")
            self.left.remove(id)

    # Locks.

    def holder_of(self, key: str) -> str | None:
        pointer = self.locks.get(key)
        if pointer is None:
            return None
        if 0 < pointer.until_ms <= self.now_ms:
            self.note(f"lock: time over, taken over ({pointer.mode})")
            return None
        if pointer.mode != "until_expired" and self.place_of(pointer.holder) not in HOLDING:
            return None
        return pointer.holder

    def take_lock(self, job: Job) -> None:
        assert job.lock
        until_ms = self.now_ms + job.lock.ttl_ms if job.lock.ttl_ms else 0
        self.locks[job.lock.key] = Pointer(job.lock.mode, until_ms, job.id)

    def free_lock(self, job: Job) -> None:
        pointer = self.locks.get(job.lock.key) if job.lock else None
        if not job.lock or pointer is None:
            return
        if pointer.holder != job.id:
            self.note("lock: let go, but another's by now")
        elif pointer.mode == "until_expired" and pointer.until_ms > self.now_ms:
            self.note("lock: let go, but its time goes on")
        else:
            del self.locks[job.lock.key]

    def sweep_locks(self) -> None:
        over = [
            (pointer.until_ms, key)
            for key, pointer in self.locks.items()
            if 0 < pointer.until_ms <= self.now_ms
        ]
        for _, key in sorted(over)[: self.bounds.sweep_max]:
            self.note("lock: swept")
            del self.locks[key]
