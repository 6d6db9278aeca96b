"""How jobs end, and how those that did not go back."""

from dataclasses import replace

from rqlite_jobs.operations import Settlement
from tests.model.facts import Job, Trouble
from tests.model.state import State


class Ends(State):
    """What a job can come to."""

    def remove(self, job: Job, counter: str) -> None:
        """Take a job away that is in no place any more."""
        self.free_lock(job)
        del self.jobs[job.id]
        self.totals[counter] += 1

    def expire(self, job: Job) -> None:
        """End a waiting job whose time is over."""
        self.take_out(job)
        self.remove(job, "expired")
        self.tell(job.id, "expired")

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

    def finish(self, finished: list[tuple[Job, Settlement]]) -> None:
        kept_count = 0
        for job, one in finished:
            job.state, job.ended = "done", (job.started_ms, self.now_ms)
            self.free_lock(job)
            if one.ttl_ms:
                self.kept[job.id] = self.now_ms + one.ttl_ms if one.ttl_ms > 0 else float("inf")
                kept_count += 1
            else:
                self.done.insert(0, job.id)
            job.forgets = one.ttl_ms == 0
            job.result = "" if job.forgets else one.result.decode()
        self.totals["done"] += len(finished)
        while len(self.done) > self.bounds.done_max_count:
            self.note("done: over the count")
            del self.jobs[self.done.pop()]
        self.drop_kept(2 * kept_count, "by one that comes")

    def drop_kept(self, limit: int, why: str) -> None:
        """Forget some of the finished whose time is over."""
        over = sorted((until_ms, id) for id, until_ms in self.kept.items() if until_ms <= self.now_ms)
        for _, id in over[:limit]:
            self.note(f"kept: dropped {why}")
            del self.kept[id], self.jobs[id]

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
            if crashed:
                job.since_ms = self.now_ms
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
