"""What producers ask, in plain Python, with the answers they must get.

A batch is its items one after the other, but that new entries of ready lists come at its end; a refusal changes
nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from rqlite_jobs.answers import Enqueued
from rqlite_jobs.job import NewJob
from tests.model.ends import Ends
from tests.model.facts import Job
from tests.model.state import Refused


@dataclass(slots=True)
class _Batch:
    """Of one request: the words there were before it, for all is decided before anything is written; the ids that it
    stored so far, and those that it ended; the jobs whose place is still to be taken.
    """

    words: dict[str, str]
    stored: set[str] = field(default_factory=set)
    expired: set[str] = field(default_factory=set)
    behind: list[Job] = field(default_factory=list)


class Producers(Ends):
    """Enqueues."""

    def enqueue(self, news: Sequence[NewJob]) -> list[Enqueued]:
        if any(new.queue in self.foreign for new in news):
            self.note("enqueue: refused, a foreign key")
            raise Refused("foreign type")
        if any(new.id in self.jobs and not new.own_id for new in news):
            self.note("enqueue: refused, the id exists")
            raise Refused("exists already")
        batch = _Batch(dict(self.gone))
        answers = [self._enqueue_one(new, batch) for new in news]
        for job in batch.behind:
            self.line_up(job)
        self.trim(self.rejected, self.bounds.rejected_max_count, 0)
        return answers

    def _enqueue_one(self, new: NewJob, batch: _Batch) -> Enqueued:
        if new.own_id and (known := self.jobs.get(new.id)):
            if not self.lapsed(known):
                where = "a twin" if new.id in batch.stored else known.state
                self.note(f"enqueue: known, {where}")
                self.totals["refused"] += 1
                return Enqueued("duplicate", new.id, known.state, new.id, b"", self.now_ms)
            self.note("expiry: an enqueue of that very id")
            self.expire(known)
            batch.expired.add(new.id)
        holder, state = self._in_the_way(new, batch)
        if holder and new.lock:
            self.totals["refused"] += 1
            twin = " (twin)" if holder in batch.stored else f" ({self.locks[new.lock.key].mode})"
            if new.lock.on_conflict != "reject":
                self.note("enqueue: duplicate" + twin)
                return Enqueued("duplicate", holder, state, holder, b"", self.now_ms)
            self.note("enqueue: rejected" + twin)
            self.bury(
                self._store(new, batch), "duplicate", f"duplicate of {holder}", shelf=self.rejected
            )  # fmt: skip
            return Enqueued("rejected", new.id, "dead", holder, b"", self.now_ms)
        due_ms = self.now_ms
        if new.delay_ms is not None:
            due_ms += new.delay_ms
        elif new.run_at_ms is not None:
            due_ms = new.run_at_ms
        job = self._store(new, batch)
        if job.lock:
            self.take_lock(job)
        if due_ms > self.now_ms:
            self.note("enqueue: scheduled")
            self.put_off(job, due_ms)
        elif self.unbury(job):
            self.note("enqueue: its old entry lives again")
            self.wake(job.queue)
        else:
            self.note("enqueue: ready")
            job.state = "ready"
            batch.behind.append(job)
        return Enqueued("enqueued", job.id, job.state, "", b"", self.now_ms)

    def _in_the_way(self, new: NewJob, batch: _Batch) -> tuple[str | None, str]:
        """Who holds the lock it asks for, and where that job is; one whose time is over is ended on the way."""
        holder = self.holder_of(new.lock.key) if new.lock else None
        if holder is None or new.lock is None:
            return None, ""
        if self.lapsed(self.jobs.get(holder)):
            mode = self.locks[new.lock.key].mode
            self.note(f"expiry: an enqueue meets the holder ({mode})")
            self.expire(self.jobs[holder])
            batch.expired.add(holder)
            if mode != "until_expired":
                return None, ""
        if holder in self.jobs:
            return holder, self.jobs[holder].state
        return holder, "expired" if holder in batch.expired else batch.words.get(holder, "unknown")

    def _store(self, new: NewJob, batch: _Batch) -> Job:
        expires_ms = self.now_ms + new.expires_ms if new.expires_ms is not None else 0
        job = Job(
            new.id, new.queue, new.payload, new.lock, self.now_ms, state="", expires_ms=expires_ms
        )  # fmt: skip
        self.forget_word(new.id)
        self.jobs[job.id] = job
        self.queues.add(job.queue)
        batch.stored.add(job.id)
        self.totals["enqueued"] += 1
        return job
