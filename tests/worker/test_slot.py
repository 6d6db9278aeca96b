"""One slot, step by step."""

import logging
from dataclasses import dataclass, field
from typing import Any

import pytest

from rqlite_jobs.answers import Claim
from rqlite_jobs.operations import Settlement
from rqlite_jobs.worker import outcome
from rqlite_jobs.worker.heart import Heart
from rqlite_jobs.worker.holdings import Holdings
from rqlite_jobs.worker.outage import Outage
from rqlite_jobs.worker.slot import Slot
from rqlite_jobs.worker.turn import Turn
from tests.worker.parts import AWAY, Clock, Wire, beat, claim, done, heart, nonces, operations, turned

A, B, C = (claim(name) for name in "abc")


@dataclass
class Bench:
    """A slot, and everything around it."""

    clock: Clock = field(default_factory=Clock)
    wire: Wire = field(default_factory=Wire)
    ran: list[str] = field(default_factory=list)
    open: bool = True
    last_idle: bool = False
    took_s: float = 0.01
    holdings: Holdings = field(init=False)
    heart: Heart = field(init=False)
    slot: Slot = field(init=False)

    def __post_init__(self) -> None:
        self.wire.answers = {"register": (1000, ()), "heartbeat": beat(), "turn": turned()}
        self.holdings = Holdings(self.clock)
        self.heart = heart(self.wire, self.holdings, self.clock)
        self.heart.register()
        turn = Turn(operations(), self.holdings, self.heart, nonces())
        outage = Outage(self.heart._rng, self.clock)
        self.slot = Slot(
            turn, self.holdings, self.heart, self.execute, self.wire, outage,
            lambda: self.open, lambda: self.last_idle, self.clock,
        )  # fmt: skip
        self.wire.sent = []

    def execute(self, one: Claim) -> Settlement:
        self.ran.append(one.id)
        self.clock.now_s += self.took_s
        return done(one)

    def asked(self) -> tuple[Any, ...]:
        """How many to start, how many for the hand, and whether nobody else waits: of the last turn."""
        return tuple(self.wire.sent[-1].args[4:7])


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_it_takes_a_turn_runs_what_it_got_and_settles_with_the_next(bench: Bench) -> None:
    bench.wire.answers["turn"] = turned(A)
    assert bench.slot.step() == 0.0
    assert not bench.slot.idle
    assert bench.ran == []
    assert bench.slot.step() == 0.0
    assert bench.ran == ["a"]
    bench.wire.answers["turn"] = turned()
    assert bench.slot.step() == float("inf")
    assert bench.slot.idle
    assert bench.wire.sent[-1].args[-3:] == ["a", "1-nonce", 0]


def test_with_nothing_to_do_it_knows_when_something_is_due(bench: Bench) -> None:
    for next_due_ms, wait_s in [(3500, 2.5), (0, float("inf")), (900, 0.001)]:
        bench.wire.answers["turn"] = turned(next_due_ms=next_due_ms)
        assert bench.slot.step() == wait_s
        assert bench.slot.idle
    bench.wire.answers["turn"] = turned(left=True)
    assert bench.slot.step() == 0.0
    assert not bench.slot.idle, "more could be claimed"


def test_it_takes_from_the_hand_before_it_asks(bench: Bench) -> None:
    bench.holdings.receive([A, B], to_start=0)
    bench.slot.step()
    bench.slot.step()
    assert bench.ran == ["a", "b"]
    assert bench.wire.verbs == []


def test_it_asks_for_a_hand_once_jobs_are_short(bench: Bench) -> None:
    bench.took_s = 0.000_01
    for _ in range(200):
        bench.wire.answers["turn"] = turned(A)
        bench.slot.step()
        bench.slot.step()
    bench.slot.step()
    assert bench.asked() == (1, 96, "0")
    bench.last_idle = True
    bench.slot.step()
    bench.slot.step()
    assert bench.asked() == (1, 96, "1")


def test_a_job_is_started_only_while_the_lease_is_sure(bench: Bench) -> None:
    bench.wire.answers["turn"] = turned(A)
    bench.slot.step()
    bench.clock.now_s += 15
    assert bench.slot.step() == 0.0
    assert bench.ran == []
    assert bench.holdings.begin_turn()[1] == [outcome.handed_back(A)]


def test_without_a_sure_lease_it_claims_nothing_and_keeps_its_outcomes(bench: Bench) -> None:
    bench.holdings.receive([A], to_start=0)
    bench.slot.step()
    bench.clock.now_s += 15
    for _ in range(20):
        assert 0 < bench.slot.step() <= 2.0
        assert not bench.slot.idle
    assert bench.wire.verbs == []
    assert bench.holdings.waiting
    bench.heart.tick()
    bench.slot.step()
    assert not bench.holdings.waiting


def test_a_claim_whose_lease_was_lost_on_the_way_is_not_run(bench: Bench) -> None:
    bench.wire.answers["turn"] = turned(A)
    bench.slot.step()
    bench.heart.lose(bench.heart.worker)
    bench.heart.register()
    bench.slot.step()
    assert bench.ran == [], "it is somebody else's by now, however sure the new lease is"
    assert not bench.holdings.waiting


def test_a_job_that_ends_after_its_lease_was_lost_is_told_of(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.holdings.receive([A], to_start=0)
    bench.took_s = 0

    def execute(one: Claim) -> Settlement:
        bench.heart.lose(bench.heart.worker)
        return done(one)

    bench.slot._execute = execute
    bench.slot.step()
    assert any("job a ended here, but its lease was lost" in line for line in caplog.messages)
    assert not bench.holdings.waiting


def test_one_that_may_not_claim_any_more_hands_back_and_settles(bench: Bench) -> None:
    bench.wire.answers["turn"] = turned(A)
    bench.slot.step()
    bench.holdings.receive([B], to_start=0)
    bench.open = False
    bench.wire.answers["turn"] = turned(next_due_ms=1)
    bench.slot.step()
    assert bench.ran == []
    assert bench.slot.step() == float("inf"), "what is overdue is for others"
    assert bench.asked() == (0, 0, "0")
    assert list(bench.wire.sent[-1].args[-14:]) == [
        "back", "b", "1-nonce", 0, "", "", "", "back", "a", "1-nonce", 0, "", "", ""
    ]  # fmt: skip


def test_a_failed_turn_is_asked_again_with_growing_pauses(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "rqlite_jobs")
    bench.holdings.receive([A], to_start=0)
    bench.slot.step()
    bench.wire.answers["turn"] = AWAY
    pauses = [bench.slot.step() for _ in range(8)]
    assert all(0.025 <= pause <= 2.0 for pause in pauses)
    assert max(pauses[5:]) > 4 * pauses[0]
    assert len({call.args[0] for call in bench.wire.sent}) == 1
    assert [call.args[1] for call in bench.wire.sent] == ["0"] + ["1"] * 7
    assert len(caplog.records) == 1
    bench.wire.answers["turn"] = turned(B)
    assert bench.slot.step() == 0.0
    assert len(caplog.records) == 2
    bench.slot.step()
    assert bench.ran == ["a", "b"]
