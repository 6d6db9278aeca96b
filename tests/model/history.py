"""One history of a namespace: who is in it, what may be chosen, and how each thing is done on both sides."""

from collections import Counter
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant

from rqlite_jobs.job import NewJob
from rqlite_jobs.lock import Lock
from rqlite_jobs.operations import Settlement
from tests.model import choices
from tests.model.facts import Bounds, Job
from tests.model.stage import Stage
from tests.model.state import WAITING


class History(RuleBasedStateMachine):
    """What the rules of `machine` are made of.

    Args:
        client, url, bounds, taken: see `Stage`; the names of the rules taken are counted too.
    """

    def __init__(self, client: Any, url: str, bounds: Bounds, taken: Counter[str]) -> None:
        super().__init__()
        self.stage = Stage(client, url, bounds, taken)
        self.model, self.ops = self.stage.model, self.stage.ops
        self.known: list[str] = []
        self.old_tokens: list[tuple[str, str]] = []
        self.lease_ms: dict[str, int] = {}
        self.ended: set[str] = set()
        self.workers = 0
        self.turns = 0

    @invariant()
    def agree(self) -> None:
        self.stage.check()

    # What the rules choose from.

    @property
    def alive(self) -> list[str]:
        """Workers whose process runs, whether or not they still have a lease."""
        return sorted(set(self.lease_ms) - self.ended)

    @property
    def registered(self) -> list[str]:
        """Those of them that have a lease, or had one a moment ago."""
        return [worker for worker in self.alive if worker in self.model.workers]

    def some_ids(self, data: st.DataObject) -> list[str]:
        """Up to four ids: mostly of jobs that are there, some that are gone or never were, some twice."""
        there = sorted(self.model.jobs)
        of = st.sampled_from(there)
        left = st.sampled_from([*self.model.done, *self.model.gone, "nobody's", self.known[0]])
        return data.draw(st.lists(st.one_of(of, of, left), min_size=1, max_size=4))

    @property
    def tried(self) -> list[Job]:
        """Those that wait, and something was wrong with them."""
        return [job for job in self.model.jobs.values() if job.trouble and job.state == "scheduled"]

    def instants(self) -> list[list[int]]:
        """The moments ahead at which something changes by itself, kind by kind."""
        model = self.model
        troubles = [model.jobs[id].trouble for id in (*model.dead, *model.rejected)]
        held = [job for job in model.jobs.values() if job.state == "running"]
        kinds = (
            [job.due_ms for job in model.jobs.values() if job.state == "scheduled"],
            model.workers.values(),
            [lock.until_ms for lock in model.locks.values()],
            [job.expires_ms for job in model.jobs.values() if job.state in WAITING],
            [pause.until_ms for pause in model.pauses.values()],
            [trouble.died_ms + model.bounds.dead_max_age_ms for trouble in troubles if trouble],
            [job.started_ms + self.lease_ms[job.worker] for job in held],
        )
        ahead = [sorted({instant for instant in kind if instant > model.now_ms}) for kind in kinds]
        return [kind for kind in ahead if kind]

    # What they do.

    def pass_time(self, to_ms: int) -> None:
        """Go on to a later moment in the middle of a step: what came before it is looked at now."""
        self.agree()
        self.model.now_ms = max(self.model.now_ms, to_ms)

    def do_enqueue(self, jobs: list[NewJob], way: str = "answered") -> None:
        self.known = [*self.known, *(job.id for job in jobs)][-40:]
        self.stage.ask(lambda: self.ops.enqueue(jobs), lambda again: self.model.enqueue(jobs), way)

    def new_job(
        self,
        queue: str,
        due: Any = None,
        lock: Lock | None = None,
        size: int = 0,
        own_id: str | None = None,
        expires_ms: int | None = None,
    ) -> NewJob:
        id = self.stage.new_id()
        payload = b'["f",["%b"]]' % (b"x" * 2_100 if size == 9 else id.encode())
        return NewJob(
            id=own_id or id,
            queue=queue,
            payload=payload,
            delay_ms=due[1] if due and due[0] == "in" else None,
            run_at_ms=self.model.now_ms + due[1] if due and due[0] == "at" else None,
            lock=lock,
            own_id=own_id is not None,
            expires_ms=expires_ms,
        )

    def do_operate(self, verb: str, ids: list[str], way: str) -> None:
        self.model.note(f"rule: operate, {verb}")
        make, perform = {
            "cancel": (lambda: self.ops.cancel(ids), lambda again: self.model.cancel(ids)),
            "delete": (lambda: self.ops.delete(ids), lambda again: self.model.delete(ids)),
            "bury": (
                lambda: self.ops.bury(ids, "by hand"),
                lambda again: self.model.bury_waiting(ids, "by hand"),
            ),
            "revive": (lambda: self.ops.revive(ids), lambda again: self.model.revive(ids)),
            "retry": (lambda: self.ops.retry(ids), lambda again: self.model.retry(ids)),
        }[verb]
        self.stage.ask(make, perform, way)

    def do_recover(self, named: list[str], way: str = "answered") -> None:
        self.stage.ask(
            lambda: self.ops.recover(self.model.bounds.max_crashes, named),
            lambda again: self.model.recover(named),
            way,
        )

    def do_register(self, lease_ms: int, way: str = "answered") -> None:
        self.workers += 1
        worker = f"w{self.workers}"
        self.lease_ms[worker] = lease_ms
        facts = {"host": "here", "pid": str(self.workers)}
        self.stage.ask(
            lambda: self.ops.register(worker, lease_ms, facts),
            lambda again: self.model.register(worker, lease_ms, facts),
            way,
        )

    def do_beat(self, worker: str, named: str, way: str = "answered") -> None:
        held = [job.id for job in self.model.running(worker)]
        held = {"all": held, "some": held[::2], "none": []}[named]
        lease_ms, max_crashes = self.lease_ms[worker], self.model.bounds.max_crashes
        self.stage.ask(
            lambda: self.ops.heartbeat(worker, lease_ms, max_crashes, held),
            lambda again: self.model.heartbeat(worker, lease_ms, held),
            way,
        )

    def do_turn(self, *asked: Any) -> None:
        self.turns += 1
        worker, *about, way = asked
        nonce = f"turn{self.turns:012d}"
        answer = self.stage.ask(
            lambda: self.ops.turn(worker, nonce, *about),
            lambda again: self.model.turn(worker, nonce, *about, again=again),
            way,
        )
        self.stage.waiters.turned(worker, about[0], answer)

    def do_end(self, worker: str, *, politely: bool = False) -> None:
        """The process of a worker ends, or goes on under another id."""
        self.ended.add(worker)
        self.stage.waiters.ended(worker, politely=politely)

    def do_pause(self, queue: str, for_ms: int | None, way: str) -> None:
        self.stage.ask(
            lambda: self.ops.pause(queue, for_ms, "Änn 1"),
            lambda again: self.model.pause(queue, for_ms, "Änn 1"),
            way,
        )

    def do_purge(self, queue: str, limit: int, way: str) -> None:
        self.stage.ask(
            lambda: self.ops.purge(queue, limit), lambda again: self.model.purge(queue, limit), way
        )

    def do_release(self, keys: list[str], force: bool, way: str) -> None:
        self.stage.ask(
            lambda: self.ops.release(keys, force), lambda again: self.model.release(keys, force), way
        )

    def settlements(self, data: st.DataObject, worker: str, least: int = 0) -> list[Settlement]:
        """Ends of some jobs that it holds, and some that are not true any more."""
        held = [(job.id, job.token) for job in self.model.running(worker)]
        pairs = data.draw(st.lists(st.sampled_from(held), min_size=least, max_size=4)) if held else []
        self.old_tokens = [*self.old_tokens, *pairs][-12:]
        anew = [pair for pair in self.old_tokens if pair not in held and pair[0] in dict(held)]
        untrue = anew or [*self.old_tokens, ("nobody's", "1-nnnnnnnnnnn")]
        if data.draw(st.integers(0, 3)) == 0:
            pairs += pairs[:1]
            pairs += data.draw(st.lists(st.sampled_from(untrue), min_size=1, max_size=2))
        return [self.settlement(data, *pair) for pair in pairs]

    def settlement(self, data: st.DataObject, id: str, token: str) -> Settlement:
        word = data.draw(choices.words)
        if word == "done":
            return Settlement(word, id, token)
        if word == "returned":
            ttl_ms = data.draw(choices.ttls_ms)
            return Settlement(word, id, token, result=data.draw(choices.results), ttl_ms=ttl_ms)
        trace = data.draw(st.sampled_from(("", "Traceback: ...")))
        return Settlement(word, id, token, data.draw(choices.delays_ms), "failed", f"Error('{id}\0')", trace)
