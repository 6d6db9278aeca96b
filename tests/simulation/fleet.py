"""A fleet of workers in simulated time: the very slots, turns and hearts that ship, driven by one seed.

Nothing here waits. One random source decides who moves next, how far the clock goes, which answers are lost on
the way, which requests never arrive, and which child dies in the middle of a job, or while an answer is under way.
"""

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from rqlite_jobs import App, Retry, until_executed
from rqlite_jobs.answers import Claim
from rqlite_jobs.errors import Unreachable
from rqlite_jobs.operations import Call, Settlement
from rqlite_jobs.worker.executor import Executor
from rqlite_jobs.worker.heart import Heart
from rqlite_jobs.worker.holdings import Holdings
from rqlite_jobs.worker.outage import Outage
from rqlite_jobs.worker.slot import Slot
from rqlite_jobs.worker.turn import Turn
from tests.worker.silent import SILENT

SLOTS = 3
LEASE_MS = 15_000


class Killed(BaseException):
    """The process of a child ends here."""


@dataclass
class SimClock:
    """Simulated time, for the scripts and for the workers."""

    ms: int = 1_000_000

    def now_ms(self) -> int:
        return self.ms

    def seconds(self) -> float:
        return self.ms / 1000


@dataclass
class Faults:
    """How often, out of 1, things go wrong."""

    lost_answer: float = 0.0
    lost_request: float = 0.0
    killed_in_job: float = 0.0
    killed: float = 0.0
    stopped: float = 0.0
    flushed: float = 0.0


@dataclass
class Child:
    """One worker process."""

    heart: Heart
    holdings: Holdings
    slots: list[Slot]
    leave: Any
    not_before_s: dict[int, float] = field(default_factory=dict)
    open: bool = True


class Fleet:
    """Producers and workers over one namespace.

    Args:
        app: an App whose clock is `clock`.
        clock: simulated time.
        seed: of everything that is random.
        faults: how often things go wrong.
    """

    def __init__(self, app: App, clock: SimClock, seed: int, faults: Faults) -> None:
        self.app = app
        self.clock = clock
        self.rng = random.Random(seed)
        self.faults = faults
        self.runs: Counter[int] = Counter()
        self.running: set[tuple[int, int]] = set()
        self.accepted: dict[str, int] = {}
        self.took: Counter[str] = Counter()
        self.children: list[Child] = []
        self._numbers = 0
        fleet = self

        @app.job(retry=Retry(max_attempts=4, jitter=False))
        def plain(number: int) -> None:
            fleet._run(number)

        @app.job(retry=Retry(max_attempts=3, delay="1s", jitter=False), lock=until_executed(key="{group}"))
        def locked(number: int, group: int) -> None:
            fleet._run(number)

        self.plain, self.locked = plain, locked

    def call(self, call: Call[Any]) -> Any:
        """Send a call over a network that loses things."""
        if self.rng.random() < self.faults.lost_request:
            self.took["lost request"] += 1
            raise Unreachable("simulated: the request did not arrive.")
        answer = self.app.run(call)
        if self.rng.random() < self.faults.lost_answer:
            self.took["lost answer"] += 1
            raise Unreachable("simulated: the answer was lost.")
        return answer

    def hire(self) -> None:
        """Start a child."""
        app, clock = self.app, self.clock
        holdings = Holdings(clock.seconds)
        outage = Outage(self.rng, clock.seconds)
        heart = Heart(
            app.operations, holdings, app.settings, ["default"], True, list(app.handlers), self.call, outage,
            clock=clock.seconds, rng=self.rng,
        )  # fmt: skip
        executor = Executor(app, self.rng, SILENT)
        slots: list[Slot] = []
        child = Child(heart, holdings, slots, lambda: None)

        def execute(claim: Claim) -> Settlement:
            if self.rng.random() < self.faults.killed_in_job:
                raise Killed
            return executor.execute(claim)

        for _ in range(SLOTS):
            turn = Turn(app.operations, holdings, heart, app.caller.nonce)
            slots.append(
                Slot(
                    turn,
                    holdings,
                    heart,
                    execute,
                    self.call,
                    outage,
                    lambda: child.open,
                    lambda: self.rng.random() < 0.5,
                    clock.seconds,
                )
            )
        flush_turn = Turn(app.operations, holdings, heart, app.caller.nonce)

        def flush() -> bool:
            try:
                flush_turn.answered(self.call(flush_turn.ask(0)))
            except Unreachable:
                flush_turn.unanswered()
                return False
            return True

        heart.flush = flush
        self.children.append(child)

    def produce(self) -> None:
        """Enqueue something."""
        number = self._numbers
        self._numbers += 1
        kind = self.rng.randrange(4)
        if kind == 0:
            job = self.locked.enqueue(number, self.rng.randrange(3))
        elif kind == 1:
            job = self.plain.options(delay=self.rng.randrange(1, 20)).enqueue(number)
        elif kind == 2:
            answers = self.app.enqueue_many([self.plain.s(number), self.locked.s(number, 7)])
            self.accepted.update({one.id: number for one in answers if one.outcome == "enqueued"})
            return
        else:
            job = self.plain.enqueue(number)
        if job.outcome == "enqueued":
            self.accepted[job.id] = number

    def move(self) -> None:
        """Let one actor do one thing."""
        chance = self.rng.random()
        if chance < 0.15:
            self.produce()
        elif chance < 0.25:
            self.clock.ms += self.rng.choice((1, 10, 300, 2_000, 6_000))
        elif chance < 0.25 + self.faults.flushed:
            self.took["script flush"] += 1
            self.app.caller.command("SCRIPT", "FLUSH")
        elif len(self.children) < 2:
            self.hire()
        else:
            self.live(self.rng.choice(self.children))

    def live(self, child: Child) -> None:
        """Let a child beat or step; it may die of it."""
        if self.rng.random() < self.faults.killed:
            self.took["killed"] += 1
            self.children.remove(child)
        elif self.rng.random() < self.faults.stopped:
            self.took["frozen"] += 1
            self.clock.ms += LEASE_MS + 1_000
        elif self.rng.random() < 0.3:
            child.heart.tick()
        else:
            number = self.rng.randrange(SLOTS)
            if child.not_before_s.get(number, 0.0) > self.clock.seconds():
                return
            try:
                wait_s = child.slots[number].step()
            except Killed:
                self.took["killed in a job"] += 1
                self.children.remove(child)
                return
            if wait_s and not child.slots[number].idle:
                child.not_before_s[number] = self.clock.seconds() + wait_s

    def settle_down(self) -> None:
        """No more faults, no more work: let everything come to its end."""
        self.faults = Faults()
        if not self.children:
            self.hire()
        for _ in range(400):
            for child in self.children:
                child.heart.tick()
                for slot in child.slots:
                    for _ in range(60):
                        if slot.step():
                            break
            self.clock.ms += 1_000

    def _run(self, number: int) -> None:
        self.runs[number] += 1
        if number % 5 == 0 and self.runs[number] <= 2:
            raise ConnectionError("provider timeout")
        if number % 17 == 3:
            raise ValueError("bad data")
