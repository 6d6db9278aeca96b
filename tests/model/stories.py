"""Rules of several steps: what chance alone would seldom put together, and the usual course of things."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition

from rqlite_jobs.lock import Lock
from rqlite_jobs.operations import Settlement
from tests.model.choices import JOBS_MAX, QUEUES, dues, few, locks, own_ids, queues, served, ways
from tests.model.mishaps import Mishaps
from tests.model.rules import act


class Stories(Mishaps):
    """A rule a story."""

    @precondition(lambda self: len(self.model.jobs) < JOBS_MAX)
    @act(queue=queues, own_id=own_ids, verb=st.sampled_from(("cancel", "bury", "delete")), due=dues, way=ways)
    def come_again(self, queue: str, own_id: str, verb: str, due: Any, way: str) -> None:
        """An id of one's own leaves while it is ready and another job waits behind it, and comes again."""
        self.do_enqueue([self.new_job(queue, own_id=own_id), self.new_job(queue)])
        self.do_operate(verb, [own_id], "answered")
        self.do_enqueue([self.new_job(queue, due, own_id=own_id)], way)
        job = self.model.jobs.get(own_id)
        if job and job.state == "scheduled" and way == "answered" and self.registered:
            self.pass_time(job.due_ms)
            self.do_turn(self.registered[0], QUEUES, [], 0, 0, False, way)

    @precondition(lambda self: len(self.model.jobs) < JOBS_MAX)
    @act(
        queue=queues,
        lock=locks,
        own_id=st.none() | own_ids,
        due=dues,
        then=st.sampled_from(("enqueue", "revive", "turn")),
    )
    def expire(self, queue: str, lock: Lock, own_id: str | None, due: Any, then: str) -> None:
        """A job waits with its lock till its time is over; a dead one had that lock before.

        Or it waits without it, and only an earlier job of its id had the lock.
        """
        dead = self.new_job(queue, lock=Lock("until_executed", lock.key, 0, "return"))
        self.do_enqueue([dead])
        self.do_operate("bury", [dead.id], "answered")
        if own_id:
            self.do_enqueue([self.new_job(queue, None, lock, own_id=own_id)])
            self.do_operate("cancel", [own_id], "answered")
        asked = None if own_id else lock
        self.do_enqueue([self.new_job(queue, due, asked, own_id=own_id, expires_ms=1)])
        self.pass_time(self.model.now_ms + 1)
        if then == "enqueue":
            self.do_enqueue([self.new_job(queue, lock=lock)])
        elif then == "revive":
            self.do_operate("revive", [dead.id], "answered")
        elif self.registered:
            self.do_turn(self.registered[0], QUEUES, [], 2, 0, False, "answered")

    @precondition(lambda self: self.registered and len(self.model.jobs) < JOBS_MAX)
    @act(data=st.data(), queue=queues, for_ms=st.sampled_from((0, 2_000, 20_000)))
    def pause_and_work(self, data: st.DataObject, queue: str, for_ms: int) -> None:
        """A waiter hears of the pause, and goes to work in another queue: nobody of its worker waits any more."""
        other = data.draw(st.sampled_from([one for one in QUEUES if one != queue]))
        self.do_enqueue([self.new_job(queue)])
        self.do_pause(queue, for_ms, "answered")
        self.steal_token(data)
        self.do_enqueue([self.new_job(other)])
        self.do_turn(data.draw(st.sampled_from(self.registered)), QUEUES, [], 1, 0, True, "answered")

    @precondition(lambda self: len(self.registered) > 1 and any(map(self.model.running, self.registered)))
    @act(data=st.data(), start_max=few, hand_max=few)
    def take_over(self, data: st.DataObject, start_max: int, hand_max: int) -> None:
        """A worker falls while it holds jobs, somebody says so, and another one looks for work."""
        fallen = data.draw(st.sampled_from([one for one in self.registered if self.model.running(one)]))
        self.do_recover([fallen])
        other = data.draw(st.sampled_from([one for one in self.registered if one != fallen]))
        self.do_turn(other, QUEUES, [], start_max, hand_max, True, "answered")

    @precondition(lambda self: self.registered and any(self.model.ready.values()))
    @act(data=st.data(), order=served)
    def work(self, data: st.DataObject, order: Any) -> None:
        """What happens nearly always: jobs are claimed, run and settled, and nothing goes wrong."""
        worker = data.draw(st.sampled_from(self.registered))
        self.do_turn(worker, order, [], 3, 0, False, "answered")
        held = [(job.id, job.token) for job in self.model.running(worker)]
        self.old_tokens = [*self.old_tokens, *held][-12:]
        self.do_turn(worker, order, [self.settlement(data, *pair) for pair in held], 0, 0, True, "answered")

    @precondition(lambda self: self.registered and "odd" not in self.model.foreign)
    @act(data=st.data(), verb=st.sampled_from(("retry", "purge", "turn")))
    def stand_in_the_way(self, data: st.DataObject, verb: str) -> None:
        """Somebody's key stands where a queue was whose job waits for its next attempt."""
        worker = data.draw(st.sampled_from(self.registered))
        self.do_enqueue([self.new_job("odd")])
        self.do_turn(worker, ["odd"], [], JOBS_MAX, 0, False, "answered")
        held = [job for job in self.model.running(worker) if job.queue == "odd"]
        ends = [Settlement("retry", job.id, job.token, 500, "failed", "Error()", "") for job in held]
        self.do_turn(worker, ["mail"], ends, 0, 0, False, "answered")
        self.plant_or_mend(data)
        if verb == "retry":
            self.do_operate("retry", [job.id for job in held] or ["nobody's"], "answered")
        elif verb == "purge":
            self.do_purge("odd", 1, "answered")
        else:
            self.pass_time(self.model.now_ms + 500)
            self.do_turn(worker, QUEUES, [], 1, 0, False, "answered")
