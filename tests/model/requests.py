"""What producers and operators ask, each verb in plain Python with the answer that it must give.

A batch is its items one after the other; a refusal changes nothing.
"""

from collections.abc import Callable, Sequence
from typing import Any

from rqlite_jobs.answers import Enqueued
from rqlite_jobs.job import NewJob
from tests.model.facts import Job
from tests.model.picture import record
from tests.model.state import State


class Refused(Exception):
    """The script answers with an error, of which this is a part, and nothing changes."""


class Requests(State):
    """The verbs whose answers are kept for their lane."""

    def laned(self, lane: str, nonce: str, perform: Callable[[], Any]) -> Any:
        """A request on a lane: done once, and answered alike when asked again with the same nonce."""
        if lane in self.lanes and self.lanes[lane][0] == nonce:
            self.note("lane: asked again")
        else:
            self.lanes[lane] = (nonce, perform())
        return self._told(self.lanes[lane][1])

    def _told(self, answer: Any) -> Any:
        # Who is answered with a holder sees the holder's record as it is now.
        if not isinstance(answer, list) or not all(isinstance(one, Enqueued) for one in answer):
            return answer
        return [self._with_record(one) for one in answer]

    def _with_record(self, one: Enqueued) -> Enqueued:
        holder = self.jobs.get(one.holder_id)
        raw = record(holder) if one.outcome == "duplicate" and holder else b""
        return Enqueued(one.outcome, one.id, one.state, one.holder_id, raw, one.now_ms)

    def enqueue(self, news: Sequence[NewJob]) -> list[Enqueued]:
        if any(new.id in self.jobs for new in news):
            self.note("enqueue: refused, the id exists")
            raise Refused("exists already")
        if any(new.queue in self.foreign for new in news):
            self.note("enqueue: refused, a foreign key")
            raise Refused("foreign type")
        answers = [self._enqueue_one(new, {other.id for other in news}) for new in news]
        self.trim(self.rejected, self.bounds.rejected_max_count, 0)
        return answers

    def _enqueue_one(self, new: NewJob, batch: set[str]) -> Enqueued:
        due_ms = self.now_ms
        if new.delay_ms is not None:
            due_ms += new.delay_ms
        elif new.run_at_ms is not None:
            due_ms = new.run_at_ms
        state = "scheduled" if due_ms > self.now_ms else "ready"
        job = Job(new.id, new.queue, new.payload, new.lock, self.now_ms, state)
        holder = self.holder_of(new.lock.key) if new.lock else None
        if holder and new.lock:
            self.totals["refused"] += 1
            twin = " (twin)" if holder in batch else f" ({self.locks[new.lock.key].mode})"
            if new.lock.on_conflict != "reject":
                self.note("enqueue: duplicate" + twin)
                return Enqueued("duplicate", holder, self.place_of(holder), holder, b"", self.now_ms)
        self.jobs[job.id] = job
        self.queues.add(job.queue)
        self.totals["enqueued"] += 1
        if holder:
            self.note("enqueue: rejected" + twin)
            self.bury(job, "duplicate", f"duplicate of {holder}", shelf=self.rejected)
            return Enqueued("rejected", job.id, "dead", holder, b"", self.now_ms)
        if job.lock:
            self.take_lock(job)
        if state == "scheduled":
            self.note("enqueue: scheduled")
            job.state = ""
            self.put_off(job, due_ms)
        else:
            self.note("enqueue: ready")
            self.line_up(job)
        return Enqueued("enqueued", job.id, state, "", b"", self.now_ms)

    def cancel(self, ids: Sequence[str]) -> list[str]:
        answers = [self._cancel_one(id) for id in ids]
        while len(self.left) > self.bounds.done_max_count:
            self.note("gone: over the count")
            del self.gone[self.left.pop()]
        return answers

    def _cancel_one(self, id: str) -> str:
        state = self.place_of(id)
        if state in ("ready", "scheduled"):
            self.note(f"cancel: {state}")
            self._remove(self.jobs[id], "cancelled")
            self.gone[id] = "cancelled"
            self.left.insert(0, id)
            return "cancelled"
        self.note(f"cancel: refused, {state}")
        return "gone" if state == "cancelled" else state

    def _remove(self, job: Job, counter: str) -> None:
        if job.state in ("ready", "scheduled"):
            self.take_out(job)
        self.free_lock(job)
        del self.jobs[job.id]
        self.totals[counter] += 1

    def delete(self, ids: Sequence[str]) -> list[str]:
        return [self._delete_one(id) for id in ids]

    def _delete_one(self, id: str) -> str:
        state = self.place_of(id)
        if state in ("running", "cancelled", "unknown"):
            self.note(f"delete: refused, {state}")
            return state
        self.note(f"delete: {state}")
        if state == "done":  # it counts as done already
            self.done.remove(id)
            del self.jobs[id]
            return "deleted"
        if state == "dead":
            (self.dead if id in self.dead else self.rejected).remove(id)
        self._remove(self.jobs[id], "deleted")
        return "deleted"

    def bury_waiting(self, ids: Sequence[str], reason: str) -> list[str]:
        answers = [self._bury_one(id, reason) for id in ids]
        self.trim_dead()
        return answers

    def _bury_one(self, id: str, reason: str) -> str:
        state = self.place_of(id)
        if state not in ("ready", "scheduled"):
            self.note(f"bury: refused, {state}")
            return state
        self.note(f"bury: {state}")
        self.take_out(self.jobs[id])
        self.bury(self.jobs[id], "buried", reason)
        return "buried"

    def revive(self, ids: Sequence[str]) -> list[tuple[str, str]]:
        return [self._revive_one(id) for id in ids]

    def _revive_one(self, id: str) -> tuple[str, str]:
        state = self.place_of(id)
        if state != "dead":
            self.note(f"revive: refused, {state}")
            return state, ""
        job = self.jobs[id]
        if job.queue in self.foreign:
            self.note("revive: refused, a foreign key")
            return "unsound", ""
        if job.lock:
            holder = self.holder_of(job.lock.key)
            if holder and holder != id:
                self.note("revive: refused, another holds its lock")
                return "duplicate", holder
            if not holder:
                self.note("revive: takes its lock again")
                self.take_lock(job)
            else:
                self.note("revive: has its lock still")
        (self.dead if id in self.dead else self.rejected).remove(id)
        job.trouble = job.traceback = None
        if id in self.tombs.get(job.queue, ()):
            self.note("revive: its old entry lives again")
            self.tombs[job.queue].remove(id)
            job.state = "ready"
            self.wake(job.queue)
        else:
            self.note("revive: behind the others")
            self.line_up(job)
        return "revived", ""

    def purge(self, queue: str, limit: int) -> tuple[int, int, int]:
        if queue in self.foreign:
            self.note("purge: refused, a foreign key")
            raise Refused("foreign type")
        line, tombs = self.ready.get(queue, []), self.tombs.get(queue, set())
        popped, line[:] = line[:limit], line[limit:]
        alive = [id for id in popped if id not in tombs]
        if len(alive) < len(popped):
            self.note("purge: tombs")
        tombs.difference_update(popped)
        due = [job.id for job in self.scheduled(queue)][: limit - len(popped)]
        for id in alive + due:
            job = self.jobs.pop(id)
            self.free_lock(job)
        self.totals["deleted"] += len(alive) + len(due)
        if tombs and len(tombs) >= len(line):
            self.note("purge: nothing but tombs left")
            line.clear()
            tombs.clear()
        left = self.ready_count(queue) + len(self.scheduled(queue))
        self.note("purge: something left" if left else "purge: all")
        return len(alive), len(due), left
