"""What workers ask between their turns, and what becomes of those that ask no more."""

from collections.abc import Sequence

from rqlite_jobs.answers import Beat
from tests.model.ends import Ends


class Workers(Ends):
    """Leases: taken, renewed, run out, given up."""

    def _were_here(self, lease_ms: int) -> bool:
        """Is some lease still running? If there are workers but none whose lease is, the server was away."""
        if not self.workers or any(end > self.now_ms for end in self.workers.values()):
            return True
        self.note("workers: the server was away")
        for worker in self.workers:
            own_ms = int(self.facts.get(worker, {}).get("lease_ms", lease_ms))
            self.workers[worker] = self.now_ms + own_ms
        return False

    def register(self, worker: str, lease_ms: int, facts: dict[str, str]) -> tuple[int, tuple[str, ...]]:
        self._were_here(lease_ms)
        self.facts[worker] = {"lease_ms": str(lease_ms), "started_ms": str(self.now_ms), **facts}
        self.workers[worker] = self.now_ms + lease_ms
        return self.now_ms, tuple(sorted(self.queues))

    def heartbeat(self, worker: str, lease_ms: int, held: Sequence[str]) -> Beat:
        if worker not in self.workers:
            self.note("heartbeat: lost")
            return Beat(True, self.now_ms, 0, 0, ())
        were_here = self._were_here(lease_ms)
        self.workers[worker] = self.now_ms + lease_ms
        for job in self.running(worker):
            if job.id not in held and job.fence + lease_ms * 1000 < self.now_ms * 1000:
                self.note("heartbeat: a claim whose answer never arrived")
                self.give_back(job, crashed=False)
        recovered = self.sweep() if were_here else 0
        self.trim_dead()
        self.trim(self.rejected, self.bounds.rejected_max_count, self.bounds.dead_max_age_ms)
        self.sweep_locks()
        self.drop_kept(self.bounds.sweep_max, "by a beat")
        others = [end for other, end in self.workers.items() if other != worker]
        return Beat(False, self.now_ms, min(others, default=0), recovered, tuple(sorted(self.queues)))

    def recover(self, workers: Sequence[str]) -> tuple[int, int]:
        for worker in workers:
            if worker in self.workers:
                self.note("recover: by name, alive or not")
                self.fell(worker)
        recovered = 0
        if workers:
            for worker in workers:
                room = self.bounds.recover_max - recovered
                recovered += self.give_back_all(worker, room, crashed=True)
        else:
            recovered = self.sweep()
        return recovered, len(self.fallen)

    def leave(self, worker: str, queues: Sequence[str]) -> tuple[int, int]:
        count = self.give_back_all(worker, self.bounds.recover_max, crashed=False)
        left = len(self.running(worker))
        if not left:
            self.workers.pop(worker, None)
        for queue in queues:
            if self.ready.get(queue) or self.scheduled(queue) or queue in self.foreign:
                self.note("leave: a token for the others")
                self.wake(queue)
        return count, left

    def take_token(self, queue: str) -> bool:
        """A waiter takes the wake-up token of a queue, if one lies there."""
        found = queue in self.tokens
        self.tokens.discard(queue)
        return found
