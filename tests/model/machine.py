"""The state machine that hypothesis drives: rules of producers, workers and operators, and of what goes wrong.

After each rule the whole keyspace is compared with the model and held to the laws; see `stage`.
"""

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition

from rqlite_jobs.lock import Lock
from tests.model import readers
from tests.model.choices import (
    JOBS_MAX,
    QUEUES,
    answered_ways,
    expiries_ms,
    few,
    keys,
    leases_ms,
    locks,
    mishaps,
    offs_ms,
    own_wishes,
    pauses_ms,
    queues,
    served,
    thens,
    ways,
    wishes,
)
from tests.model.controls import CONTROLS, Controls
from tests.model.rules import act
from tests.model.stories import Stories


class Machine(Stories):
    """The rules; see `stories` for those of several steps, `History` for what they do, and with what."""

    # Producers.

    @initialize(wishes=wishes, lease_ms=leases_ms)
    def begin(self, wishes: list[Any], lease_ms: int) -> None:
        self.do_enqueue([self.new_job(*wish) for wish in wishes])
        self.do_register(lease_ms)

    @precondition(lambda self: len(self.model.jobs) < JOBS_MAX)
    @act(wishes=wishes, way=ways)
    def enqueue(self, wishes: list[Any], way: str) -> None:
        self.do_enqueue([self.new_job(*wish) for wish in wishes], way)

    @precondition(lambda self: len(self.model.jobs) < JOBS_MAX)
    @act(queue=queues, count=st.integers(1, 5), way=ways)
    def enqueue_plain(self, queue: str, count: int, way: str) -> None:
        self.do_enqueue([self.new_job(queue) for _ in range(count)], way)

    @precondition(lambda self: len(self.model.jobs) < JOBS_MAX)
    @act(queue=queues, locks=st.lists(locks, min_size=1, max_size=3), expires_ms=expiries_ms, way=ways)
    def enqueue_locked(self, queue: str, locks: list[Lock], expires_ms: int | None, way: str) -> None:
        self.do_enqueue([self.new_job(queue, None, lock, expires_ms=expires_ms) for lock in locks], way)

    @precondition(lambda self: len(self.model.jobs) < JOBS_MAX)
    @act(wishes=own_wishes, way=ways)
    def enqueue_own(self, wishes: list[Any], way: str) -> None:
        self.do_enqueue([self.new_job(*wish) for wish in wishes], way)

    # Operators.

    @precondition(lambda self: self.model.jobs)
    @act(
        verb=st.sampled_from(("cancel", "cancel", "delete", "bury", "revive", "retry")),
        data=st.data(),
        way=ways,
    )
    def operate(self, verb: str, data: st.DataObject, way: str) -> None:
        self.do_operate(verb, self.some_ids(data), way)

    @precondition(lambda self: self.model.dead or self.model.rejected)
    @act(data=st.data(), way=ways)
    def revive(self, data: st.DataObject, way: str) -> None:
        model = self.model
        under_tombs = [id for id in model.dead if id in model.tombs.get(model.jobs[id].queue, ())]
        holding = [id for id in model.dead if any(lock.holder == id for lock in model.locks.values())]
        shelves = [shelf for shelf in (model.dead, model.rejected, under_tombs, holding) if shelf]
        lying = data.draw(st.sampled_from(shelves))
        self.do_operate("revive", data.draw(st.lists(st.sampled_from(lying), min_size=1, max_size=4)), way)

    @precondition(lambda self: self.tried)
    @act(data=st.data(), way=ways)
    def retry(self, data: st.DataObject, way: str) -> None:
        put_off = [job for job in self.tried if job.trouble and not job.trouble.attempts]
        stuck = [job for job in self.tried if job.queue in self.model.foreign]
        some = data.draw(st.sampled_from([self.tried, put_off or self.tried, stuck or self.tried]))
        ids = st.sampled_from([job.id for job in some])
        self.do_operate("retry", data.draw(st.lists(ids, min_size=1, max_size=3)), way)

    @precondition(lambda self: self.model.locks)
    @act(named=st.lists(keys, min_size=1, max_size=3), force=st.booleans(), way=ways)
    def release(self, named: list[str], force: bool, way: str) -> None:
        self.do_release(named, force, way)

    @act(queue=queues, for_ms=pauses_ms, way=ways)
    def pause(self, queue: str, for_ms: int | None, way: str) -> None:
        """For a while, for good, or no more."""
        self.do_pause(queue, for_ms, way)

    @act(data=st.data(), verb=st.sampled_from(CONTROLS))
    def control(self, data: st.DataObject, verb: str) -> None:
        """The same by `app.control`, which names each thing once."""
        self.model.note(f"rule: control, {verb}")
        controls = Controls(self.stage)
        if verb in ("purge", "pause", "resume"):
            if self.model.queues:
                getattr(controls, verb)(data.draw(st.sampled_from(sorted(self.model.queues))))
        elif verb == "release":
            controls.release(data.draw(st.lists(keys, min_size=1, max_size=3)))
        elif self.model.jobs:
            controls.on_jobs(verb, self.some_ids(data))

    @precondition(lambda self: len(self.model.jobs) > 5)
    @act(queue=queues, data=st.data(), way=ways)
    def purge(self, queue: str, data: st.DataObject, way: str) -> None:
        line, tombs = self.model.ready.get(queue, []), self.model.tombs.get(queue, ())
        alive = [at for at, id in enumerate(line, 1) if id not in tombs]
        limit = data.draw(st.integers(1, 6) | st.sampled_from(alive[-1:] or [1]))
        self.do_purge(queue, limit, way)

    @act(data=st.data(), way=ways)
    def recover(self, data: st.DataObject, way: str) -> None:
        """By hand: those whose lease is over, or those named."""
        self.do_recover(
            data.draw(st.lists(st.sampled_from(["nobody", *sorted(self.lease_ms)]), max_size=2)), way
        )

    # Workers.

    @precondition(lambda self: len(self.registered) < 3)
    @act(lease_ms=leases_ms, way=answered_ways)
    def register(self, lease_ms: int, way: str) -> None:
        # Never cut off: a copy that arrives when the worker has left would bring it back, till its lease is over.
        self.do_register(lease_ms, way)

    @precondition(lambda self: self.alive)
    @act(data=st.data(), start_max=few, hand_max=few, last_idle=st.booleans(), served=served, way=ways)
    def turn(
        self, data: st.DataObject, start_max: int, hand_max: int, last_idle: bool, served: Any, way: str
    ) -> None:
        worker = data.draw(st.sampled_from(self.alive))
        self.do_turn(worker, served, self.settlements(data, worker), start_max, hand_max, last_idle, way)

    @precondition(lambda self: self.registered and any(self.model.ready.values()))
    @act(data=st.data(), start_max=few, hand_max=few, served=served, way=ways)
    def claim(self, data: st.DataObject, start_max: int, hand_max: int, served: Any, way: str) -> None:
        self.do_turn(data.draw(st.sampled_from(self.registered)), served, [], start_max, hand_max, False, way)

    @precondition(lambda self: any(self.model.running(worker) for worker in self.alive))
    @act(data=st.data(), last_idle=st.booleans(), way=ways)
    def settle(self, data: st.DataObject, last_idle: bool, way: str) -> None:
        busy = [worker for worker in self.alive if self.model.running(worker)]
        worker = data.draw(st.sampled_from(busy))
        self.do_turn(worker, QUEUES, self.settlements(data, worker, least=1), 0, 0, last_idle, way)

    @precondition(lambda self: self.alive)
    @act(data=st.data(), named=st.sampled_from(("all", "all", "some", "none")), way=ways)
    def heartbeat(self, data: st.DataObject, named: str, way: str) -> None:
        worker = data.draw(st.sampled_from(self.alive))
        self.do_beat(worker, named, way)
        if worker not in self.model.workers and data.draw(st.booleans()):
            self.do_end(worker)  # it was told `lost`: it drops all, and goes on under another id

    @precondition(lambda self: len(self.alive) > 1)
    @act(data=st.data(), way=ways)
    def leave(self, data: st.DataObject, way: str) -> None:
        """A worker that was told to stop; its process ends when nothing is left to hand back."""
        worker = data.draw(st.sampled_from(self.alive))
        answer = self.stage.ask(
            lambda: self.ops.leave(worker, QUEUES), lambda again: self.model.leave(worker, QUEUES), way
        )
        if not self.model.running(worker):
            self.do_end(worker, politely=answer is not None)

    # What goes wrong, and time.

    @precondition(lambda self: self.stage.unanswered)
    @act(data=st.data(), again=st.booleans())
    def resend(self, data: st.DataObject, again: bool) -> None:
        """One more copy of a request that was never answered arrives."""
        self.stage.resend(data.draw(st.sampled_from(self.stage.unanswered)), again=again)

    @act(what=mishaps, data=st.data())
    def mishap(self, what: str, data: st.DataObject) -> None:
        self.model.note(f"rule: mishap, {what}")
        getattr(self, what)(data)

    @act(data=st.data(), ms=st.sampled_from((1, 500, 6_000)), off_ms=offs_ms, then=thens)
    def wait(self, data: st.DataObject, ms: int, off_ms: int, then: str) -> None:
        """A while, or to the moment at which something is due or over, or just before or after it."""
        now_ms = self.model.now_ms
        kind = data.draw(st.sampled_from([[now_ms], *self.instants()]))
        chosen_ms = data.draw(st.sampled_from(kind))
        self.model.now_ms = now_ms + ms if chosen_ms == now_ms else max(now_ms, chosen_ms + off_ms)
        if then == "recover":
            self.do_recover([])
        elif then and self.registered:
            worker = data.draw(st.sampled_from(self.registered))
            if then == "beat":
                self.do_beat(worker, "all")
            else:
                self.do_turn(worker, QUEUES, [], 2, 2, False, "answered")

    # Readers.

    @act(data=st.data(), offset=few, limit=st.integers(1, 3))
    def read(self, data: st.DataObject, offset: int, limit: int) -> None:
        stage, model, ops = self.stage, self.model, self.ops
        ids = [*self.known, *sorted(model.jobs)]
        stage.read(ops.look(ids), [readers.look(model, id) for id in ids])
        stage.read(ops.crew(), readers.crew(model))
        position = readers.lock_position(model, offset)
        stage.read(
            ops.holders((), position, limit), readers.holders(model, [], offset if position else 0, limit)
        )
        named = ["book:1", "book:2", "nobody's"]
        stage.read(ops.holders(named), readers.holders(model, named, 0, 100))
        queue = data.draw(st.sampled_from(("sales", "mail")))
        for place in ("ready", "scheduled", "dead", "rejected", "done", "kept"):
            position = readers.position(model, place, queue, offset)
            said = readers.page(model, place, queue, offset if position else 0, limit)
            stage.read(ops.page(place, queue, position, limit), said)
