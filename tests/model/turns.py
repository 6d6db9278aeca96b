"""A worker's turn: settle what has ended, then claim what is free."""

from collections.abc import Sequence

from rqlite_jobs.answers import Claim, Turned
from rqlite_jobs.operations import Settlement
from tests.model.ends import Ends
from tests.model.facts import Job, Trouble
from tests.model.picture import record

SOON_MS = 5000


class Turns(Ends):
    """Claims and what ends them."""

    def turn(
        self,
        worker: str,
        nonce: str,
        queues: Sequence[str],
        settlements: Sequence[Settlement],
        start_max: int,
        hand_max: int,
        last_idle: bool,
        again: bool,
    ) -> Turned:
        refused = self._settle(worker, settlements, again)
        if worker not in self.workers:
            self.note("turn: unregistered")
            return Turned(False, self.now_ms, 0, False, refused, [])
        if again:
            held = [job for job in self.running(worker)[::-1] if job.token.endswith(nonce)]
            if held:
                self.note("turn: asked again, and still held")
                return Turned(True, self.now_ms, 0, True, refused, [self._claim(job) for job in held])
            self.note("turn: asked again, and nothing held")
        claimed, next_due_ms, room_due = [], 0, self.bounds.due_max
        for queue in queues:
            if pause := self.pause_of(queue):
                self.note("turn: passes a paused queue by")
                if pause.until_ms and (next_due_ms == 0 or pause.until_ms < next_due_ms):
                    self.note("turn: the end of a pause is due")
                    next_due_ms = pause.until_ms
                continue
            due = [job for job in self.scheduled(queue) if job.due_ms <= self.now_ms][:room_due]
            if due and queue in self.foreign:
                self.note("promote: passes a foreign key by")
            else:
                self._promote(queue, due)
                room_due -= len(due)
                waiting = self.scheduled(queue)
                if waiting and (next_due_ms == 0 or waiting[0].due_ms < next_due_ms):
                    next_due_ms = waiting[0].due_ms
            self._pick(queue, claimed, start_max, hand_max)
        for at, job in enumerate(claimed):
            self.fence = max(self.fence + 1, self.now_ms * 1000)
            job.state, job.worker, job.to_start = "running", worker, at < start_max
            job.token = f"{self.fence}-{nonce}"
        left = self._pass_on(queues, last_idle and bool(claimed), next_due_ms)
        return Turned(True, self.now_ms, next_due_ms, left, refused, [self._claim(job) for job in claimed])

    def _claim(self, job: Job) -> Claim:
        trouble = job.trouble or Trouble()
        body = job.payload if len(job.payload) > 2048 else b""
        return Claim(
            job.id, job.token, record(job), body, trouble.attempts, trouble.crashes, trouble.putoffs
        )  # fmt: skip

    def _settle(self, worker: str, settlements: Sequence[Settlement], again: bool) -> dict[str, str]:
        refused: dict[str, str] = {}
        finished: list[tuple[Job, Settlement]] = []
        order = {"done": 0, "returned": 1}
        for one in sorted(settlements, key=lambda one: order.get(one.word, 2)):
            if finished and finished[0][1].word != one.word:
                self.finish(finished)
                finished = []
            job = self.jobs.get(one.id)
            if job and (job.state != "running" or job.worker != worker or one.id in _ids(finished)):
                job = None
            if not job or job.token != one.token:
                word = "gone" if again and not job else "stale"
                about = ", ".join(["held anew"] * bool(job) + ["asked again"] * again)
                self.note(f"settle: {word}" + (f" ({about})" if about else ""))
                refused[one.id] = word
            elif one.word in order:
                kept = {None: "", 0: ", not kept"}.get(one.ttl_ms, ", kept")
                self.note(f"settle: {one.word}{kept}")
                finished.append((job, one))
            else:
                self.note(f"settle: {one.word}")
                self._settle_other(job, one)
        self.finish(finished)
        return refused

    def _settle_other(self, job: Job, one: Settlement) -> None:
        trouble = job.trouble or Trouble()
        if one.word in ("retry", "bury"):
            self.totals["failed"] += 1
            failed = {"attempts": trouble.attempts + 1, "started_ms": job.started_ms, "error": one.error}
            self.change(job, **failed)
        if one.word == "bury":
            self.bury(job, one.reason, one.error, one.traceback)
            self.trim_dead()
            return
        if job.queue in self.foreign:
            self.note("settle: a foreign key, so it is dead")
            self.bury_unsound(job)
            return
        if one.word == "back":
            self.put_first(job)
            return
        if one.word == "retry":
            job.traceback = one.traceback
        elif one.word == "putoff":
            self.change(job, putoffs=trouble.putoffs + 1)
        self.put_off(job, self.now_ms + one.delay_ms)

    def _promote(self, queue: str, due: list[Job]) -> None:
        for job in due:
            self.note("promote: due")
            if self.unbury(job):
                self.note("promote: its old entry lives again")
            else:
                job.state = "ready"
                self.ready.setdefault(queue, []).append(job.id)
        if any(job.due_ms <= self.now_ms for job in self.scheduled(queue)):
            self.note("promote: more due than a call takes")

    def _pick(self, queue: str, claimed: list[Job], start_max: int, hand_max: int) -> None:
        """Take the next jobs of a queue; peeks at no more than fit, a bounded number of times."""
        line, tombs = self.ready.get(queue, []), self.tombs.get(queue, set())
        if queue in self.foreign:
            self.note("pick: passes a foreign key by")
        for _ in range(self.bounds.rounds_max):
            room = start_max + hand_max - len(claimed)
            peeked = line[: max(room, 0)]
            for id in peeked:
                job = self.jobs.get(id)
                if id in tombs:
                    self.note("pick: drops a tomb")
                    tombs.discard(id)
                elif self.lapsed(job):
                    assert job
                    self.note("pick: its time is over")
                    self.remove(job, "expired")
                    self.tell(id, "expired")
                else:
                    assert job
                    if (job.trouble or Trouble()).crashes and len(claimed) >= start_max:
                        self.note("pick: not into a hand, it has crashed before")
                        return
                    claimed.append(job)
                line.pop(0)
            if not peeked:
                return
        self.note("pick: no more peeks")

    def _pass_on(self, queues: Sequence[str], last_idle: bool, next_due_ms: int) -> bool:
        more = False
        for queue in queues:
            paused = self.pause_of(queue)
            if self.ready.get(queue) and not paused:
                more = True
                self.wake(queue)
            elif last_idle and 0 < next_due_ms <= self.now_ms + SOON_MS and (paused or self.scheduled(queue)):
                self.note("pass on: a pause" if paused else "pass on: something is due soon")
                self.wake(queue)
        return more


def _ids(finished: Sequence[tuple[Job, Settlement]]) -> set[str]:
    return {job.id for job, _ in finished}
