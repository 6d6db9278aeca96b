"""What operators ask, each verb in plain Python with the answer that it must give."""

from collections.abc import Sequence

from rqlite_jobs.answers import Pause
from tests.model.ends import Ends
from tests.model.state import HOLDING, Refused


class Operators(Ends):
    """Acts on jobs, locks and queues."""

    def cancel(self, ids: Sequence[str]) -> list[str]:
        out: list[str] = []
        answers = [self._cancel_one(id, out) for id in ids]
        for id in out:
            self.tell(id, "cancelled")
        return answers

    def _cancel_one(self, id: str, out: list[str]) -> str:
        state = "cancelled" if id in out else self.place_of(id)
        if state in ("ready", "scheduled"):
            self.note(f"cancel: {state}")
            self.take_out(self.jobs[id])
            self.remove(self.jobs[id], "cancelled")
            out.append(id)
            return "cancelled"
        self.note(f"cancel: refused, {state}")
        return "gone" if state == "cancelled" else state

    def delete(self, ids: Sequence[str]) -> list[str]:
        return [self._delete_one(id) for id in ids]

    def _delete_one(self, id: str) -> str:
        state = self.place_of(id)
        if state in ("running", "cancelled", "expired", "unknown"):
            self.note(f"delete: refused, {state}")
            return state
        self.note(f"delete: {state}")
        if state == "done":  # it counts as done already
            if self.kept.pop(id, None) is None:
                self.done.remove(id)
            del self.jobs[id]
            return "deleted"
        if state == "dead":
            (self.dead if id in self.dead else self.rejected).remove(id)
        else:
            self.take_out(self.jobs[id])
        self.remove(self.jobs[id], "deleted")
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
            if holder and holder != id and self.lapsed(self.jobs.get(holder)):
                mode = self.locks[job.lock.key].mode
                self.note(f"expiry: a revive meets the holder ({mode})")
                self.expire(self.jobs[holder])
                if mode != "until_expired":
                    holder = None
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
        job.since_ms = self.now_ms
        if job.expires_ms:
            self.note("revive: expires no more")
            job.expires_ms = 0
        if self.unbury(job):
            self.note("revive: its old entry lives again")
            self.wake(job.queue)
        else:
            self.note("revive: behind the others")
            self.line_up(job)
        return "revived", ""

    def retry(self, ids: Sequence[str]) -> list[str]:
        return [self._retry_one(id) for id in ids]

    def _retry_one(self, id: str) -> str:
        state = self.place_of(id)
        if state != "scheduled":
            self.note(f"retry: refused, {state}")
            return state
        job = self.jobs[id]
        if job.trouble is None or job.trouble.attempts + job.trouble.putoffs == 0:
            self.note("retry: refused, it has not failed")
            return "delayed"
        if job.queue in self.foreign:
            self.note("retry: refused, a foreign key")
            return "unsound"
        self.note("retry: scheduled")
        # It ran from this very queue: no entry of it can lie there still.
        assert id not in self.tombs.get(job.queue, ())
        job.since_ms = self.now_ms
        self.line_up(job)
        return "retried"

    def release(self, keys: Sequence[str], force: bool) -> list[tuple[str, str]]:
        return [self._release_one(key, force) for key in keys]

    def _release_one(self, key: str, force: bool) -> tuple[str, str]:
        if key not in self.locks:
            self.note("release: free")
            return "free", ""
        holder = self.holder_of(key)
        state = self.place_of(holder) if holder else ""
        if state in HOLDING and not force:
            self.note("release: refused, its job is alive")
            return "held", holder or ""
        pointer = self.locks.pop(key)
        if not holder:
            self.note("release: its time was over")
            return "free", ""
        alive = "by force" if state in HOLDING else f"its job has left ({pointer.mode})"
        self.note(f"release: {alive}")
        return "released", holder

    def pause(self, queue: str, for_ms: int | None, by: str) -> str:
        if queue not in self.queues:
            self.note("pause: refused, nobody knows the queue")
            return "unknown"
        word = "paused"
        if for_ms is not None:
            self.note("pause: for a while" if for_ms else "pause: for good")
            self.pauses[queue] = Pause(self.now_ms + for_ms if for_ms else 0, self.now_ms, by)
        else:
            word = "resumed" if self.pause_of(queue) else "running"
            self.note(f"pause: {word}")
            self.pauses.pop(queue, None)
        self.wake(queue)
        return word

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
            self.remove(self.jobs[id], "deleted")
        if tombs and len(tombs) >= len(line):
            self.note("purge: nothing but tombs left")
            line.clear()
            tombs.clear()
        left = self.ready_count(queue) + len(self.scheduled(queue))
        self.note("purge: something left" if left else "purge: all")
        return len(alive), len(due), left
