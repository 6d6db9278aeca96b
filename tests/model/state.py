"""What a namespace is, as plain Python values, and the moves that the verbs of `model` are made of.

Written from the design, not from the scripts: a job here *has* a state, a lock *is* a pointer, and nothing is spread
over keys. How all of it would lie in Redis is the business of `picture`.
"""

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from tests.model.branches import BRANCHES
from tests.model.facts import Bounds, Job, Pointer, Trouble

HOLDING = frozenset({"ready", "scheduled", "running"})
"""The states in which a job of `until_executed` holds its lock."""


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
    left: list[str] = field(default_factory=list)
    gone: dict[str, str] = field(default_factory=dict)
    locks: dict[str, Pointer] = field(default_factory=dict)
    workers: dict[str, int] = field(default_factory=dict)
    fallen: dict[str, int] = field(default_factory=dict)
    facts: dict[str, dict[str, str]] = field(default_factory=dict)
    queues: set[str] = field(default_factory=set)
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
        job.state, job.due_ms = "scheduled", due_ms

    def take_out(self, job: Job) -> None:
        """A waiting job leaves its place; a ready one leaves a tomb, and a list of tombs only goes at once."""
        if job.state == "scheduled":
            return
        self.tombs.setdefault(job.queue, set()).add(job.id)
        if len(self.tombs[job.queue]) >= len(self.ready[job.queue]):
            self.note("take out: nothing but tombs left")
            self.ready[job.queue], self.tombs[job.queue] = [], set()

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

    # Ends.

    def change(self, job: Job, **changes: int | str) -> Trouble:
        """Write down what went wrong."""
        job.trouble = replace(job.trouble or Trouble(), **changes)  # type: ignore[arg-type]
        return job.trouble

    def bury(
        self, job: Job, reason: str, error: str, trace: str = "", *, shelf: list[str] | None = None
    ) -> None:
        self.change(job, died_ms=self.now_ms, reason=reason, error=error)
        if trace:
            job.traceback = trace
        job.state = "dead"
        (self.dead if shelf is None else shelf).insert(0, job.id)
        self.totals["died"] += 1
        if shelf is None:
            self.free_lock(job)

    def bury_unsound(self, job: Job) -> None:
        self.bury(job, "malformed", "a key of the queue of this job has a foreign type")
        self.trim_dead()

    def trim(self, shelf: list[str], max_count: int, max_age_ms: int) -> None:
        """Drop the oldest dead over the count, then those over the age (0: of no age)."""
        over, dropped = len(shelf) - max_count, 0
        while shelf:
            died_ms = (self.jobs[shelf[-1]].trouble or Trouble()).died_ms
            if dropped < over:
                self.note("dead: over the count")
            elif max_age_ms and died_ms + max_age_ms <= self.now_ms:
                self.note("dead: over the age")
                if dropped >= self.bounds.trim_max:
                    self.note("dead: more over the age than a call takes")
                    break
            else:
                break
            del self.jobs[shelf.pop()]
            dropped += 1
        self.totals["deleted"] += dropped

    def trim_dead(self) -> None:
        self.trim(self.dead, self.bounds.dead_max_count, self.bounds.dead_max_age_ms)

    def finish(self, finished: list[Job]) -> None:
        for job in finished:
            job.state, job.ended = "done", (job.started_ms, self.now_ms)
            self.free_lock(job)
            self.done.insert(0, job.id)
        self.totals["done"] += len(finished)
        while len(self.done) > self.bounds.done_max_count:
            self.note("done: over the count")
            del self.jobs[self.done.pop()]

    # Giving back.

    def give_back(self, job: Job, *, crashed: bool) -> None:
        trouble = job.trouble or Trouble()
        if crashed:
            self.totals["crashed"] += 1
            trouble = self.change(
                job,
                attempts=trouble.attempts + 1,
                crashes=trouble.crashes + 1,
                started_ms=job.started_ms,
                error=f"the worker {job.worker} died while it ran this job",
            )
        if crashed and trouble.crashes >= self.bounds.max_crashes:
            self.note("give back: crashed too often")
            self.bury(
                job, "crashed", f"crashed {trouble.crashes} times, the last time with the worker {job.worker}"
            )
            self.trim_dead()
        elif job.queue in self.foreign:
            self.note("give back: a foreign key, so it is dead")
            self.bury_unsound(job)
        else:
            self.note("give back: crashed" if crashed else "give back: uncounted")
            self.put_first(job)

    def give_back_all(self, worker: str, limit: int, *, crashed: bool) -> int:
        """Give back what a worker holds, the last claimed first: so the first claimed is first again."""
        held = self.running(worker)
        for job in held[:limit]:
            self.give_back(job, crashed=crashed and job.to_start)
        if len(held) <= limit:
            self.fallen.pop(worker, None)
            self.facts.pop(worker, None)
        else:
            self.note("give back: more than a call takes")
        return min(len(held), limit)

    def fell(self, worker: str) -> None:
        del self.workers[worker]
        self.fallen[worker] = self.now_ms

    def sweep(self) -> int:
        """Recover all whose lease is over, and what is left of earlier ones."""
        for _, worker in sorted((end, worker) for worker, end in self.workers.items() if end <= self.now_ms):
            self.fell(worker)
        count = 0
        for _, worker in sorted((since, worker) for worker, since in self.fallen.items()):
            if count < self.bounds.recover_max:
                count += self.give_back_all(worker, self.bounds.recover_max - count, crashed=True)
        return count
