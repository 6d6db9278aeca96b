"""Leases that are lost, and answers that come late: what is run then, by whom, and when a burst is over."""

import random
import threading
from collections import Counter
from typing import Any

import pytest

from rqlite_jobs import App
from rqlite_jobs.worker import Worker
from rqlite_jobs.worker.executor import Executor
from rqlite_jobs.worker.heart import Heart
from rqlite_jobs.worker.holdings import Holdings
from rqlite_jobs.worker.outage import Outage
from rqlite_jobs.worker.slot import Slot
from rqlite_jobs.worker.turn import Turn
from tests.conftest import app_on
from tests.servers import Server
from tests.simulation.fleet import LEASE_MS, SimClock
from tests.worker.inside import KINDS, of_kind
from tests.worker.parts import Clock, Wire, beat, claim, done, heart, nonces, operations, turned
from tests.worker.silent import SILENT
from tests.worker.site import until

A, B, C = (claim(name) for name in "abc")


def test_a_claim_whose_answer_took_longer_than_a_lease_is_not_run(real_server: Server) -> None:
    """The interpreter stands still between the server's answer and its receipt, and the heart is the first to go on."""
    clock = SimClock()
    app = app_on(real_server, clock=clock, lease=LEASE_MS / 1000)
    ran: Counter[int] = Counter()

    @app.job
    def note(number: int) -> None:
        ran[number] += 1

    holdings, rng = Holdings(clock.seconds), random.Random(1)
    outage = Outage(rng, clock.seconds)
    its_heart = Heart(
        app.operations,
        holdings,
        app.settings,
        ["default"],
        True,
        ["note"],
        app.run,
        outage,
        clock=clock.seconds,
    )
    stood_still = []

    def call(asked: Any) -> Any:
        answer = app.run(asked)
        if asked.verb == "turn" and answer.claims and not stood_still:
            stood_still.append(True)
            clock.ms += LEASE_MS + 1
            its_heart.tick()
        return answer

    turn = Turn(app.operations, holdings, its_heart, app.caller.nonce)
    slot = Slot(
        turn, holdings, its_heart, Executor(app, rng, SILENT).execute, call, outage,
        lambda: True, lambda: False, clock.seconds,
    )  # fmt: skip
    its_heart.register()
    note.enqueue_many([(number,) for number in range(3)])
    until(lambda: slot.step() and slot.idle, "nothing is left")
    assert stood_still
    assert ran == {0: 1, 1: 1, 2: 1}
    assert app.inspect.stats().done == 3


@pytest.mark.parametrize("kind", KINDS)
def test_a_burst_that_lost_its_lease_goes_on_under_a_new_one(real_app: App, kind: str) -> None:
    app = of_kind(real_app, kind)
    ran: list[int] = []
    gate = threading.Event()

    @app.job
    def note(number: int) -> None:
        ran.append(number)
        if number == 3:
            assert gate.wait(10)

    note.enqueue_many([(number,) for number in range(40)])
    worker = Worker(app, burst=True, concurrency=1, lease="60s", beat="50ms")
    thread = threading.Thread(target=worker.run)
    thread.start()
    until(lambda: 3 in ran, "it works")
    (first,) = app.inspect.workers()
    # Another worker is left, or the new one would think that the server was away.
    app.run(app.operations.register("other", 60_000, {}))
    app.run(app.operations.recover(3, [first.id]))
    until(lambda: first.id not in [one.id for one in app.inspect.workers()], "its lease is lost")
    gate.set()
    thread.join(30)
    assert not thread.is_alive()
    stats = app.inspect.stats()
    assert (stats.ready, stats.running, stats.done) == (0, 0, 40)


# Two threads of a child at once, one step of each at a time.


@pytest.fixture
def wire() -> Wire:
    made = Wire()
    made.answers = {"register": (1000, ()), "heartbeat": beat(), "turn": turned()}
    return made


class Losing(Holdings):
    """Holdings whose child loses its lease, and gets another, at the moment that a turn is made up."""

    heart: Heart | None = None

    def begin_turn(self) -> Any:
        its_heart, self.heart = self.heart, None
        if its_heart is not None:
            its_heart.lose(its_heart.worker)
            its_heart.register()
        return super().begin_turn()


def test_a_turn_made_up_while_the_lease_is_lost_costs_not_the_new_one(wire: Wire) -> None:
    holdings = Losing()
    its_heart = heart(wire, holdings, Clock())
    its_heart.register()
    holdings.heart = its_heart
    turn = Turn(operations(), holdings, its_heart, nonces())
    turn.ask(1)
    assert turn.answered(turned(registered=False)) == ([], False)
    assert its_heart.worker, "it was the old one that is not registered"


def test_jobs_of_an_earlier_lease_are_not_received_under_a_new_one() -> None:
    holdings = Holdings()
    era = holdings.era
    holdings.drop()
    assert holdings.receive([A, B], 1, era) == []
    holdings.refuse([C], era)
    assert holdings.ids() == []
    assert not holdings.waiting
    assert holdings.receive([A, B], 1, holdings.era) == [A]


def test_a_beat_of_the_lease_before_makes_no_lease_sure(wire: Wire) -> None:
    """A turn is told that there is no lease while a beat is under way that was answered before."""
    holdings, clock = Holdings(), Clock()
    its_heart = heart(wire, holdings, clock)
    its_heart.register()

    def lost_meanwhile(_: Any) -> Any:
        its_heart.lose(its_heart.worker)
        return beat()

    wire.answers["heartbeat"] = lost_meanwhile
    clock.now_s += 6
    its_heart.tick()
    assert its_heart.worker == ""
    assert not its_heart.sure
    assert its_heart.tick() > 1, "it registers at once"
    assert its_heart.sure


def test_what_comes_too_late_goes_back_in_its_order_and_at_once(wire: Wire) -> None:
    holdings, clock = Holdings(), Clock()
    its_heart = heart(wire, holdings, clock)
    its_heart.register()
    turn = Turn(operations(), holdings, its_heart, nonces())
    turn.ask(1, 2)
    clock.now_s += 15
    assert turn.answered(turned(A, B, C)) == ([], True)
    assert [(one.word, one.id) for one in holdings.begin_turn()[1]] == [
        ("back", "c"),
        ("back", "b"),
        ("back", "a"),
    ]
    assert holdings.ids() == ["a", "b", "c"], "they are held until they are back"


def test_a_worker_that_has_no_lease_cannot_lose_it(wire: Wire, caplog: pytest.LogCaptureFixture) -> None:
    its_heart = heart(wire, Holdings(), Clock())
    its_heart.lose("")
    assert caplog.messages == []


def test_a_slot_is_not_idle_while_something_is_to_be_told(wire: Wire) -> None:
    holdings, clock = Holdings(), Clock()
    its_heart = heart(wire, holdings, clock)
    its_heart.register()
    outage = Outage(random.Random(1), clock)

    def ended_meanwhile(_: Any) -> Any:
        holdings.end(A, done(A))
        return turned()

    wire.answers["turn"] = ended_meanwhile
    holdings.receive([A], 1)
    slot = Slot(
        Turn(operations(), holdings, its_heart, nonces()), holdings, its_heart, done, wire, outage,
        lambda: False, lambda: False, clock,
    )  # fmt: skip
    assert slot.step() == 0.0
    assert not slot.idle
    wire.answers["turn"] = turned()
    assert slot.step() == float("inf")
    assert slot.idle


def test_without_a_sure_lease_a_slot_is_not_idle(wire: Wire) -> None:
    """It has not found out that there is nothing to do: a burst is not over."""
    holdings, clock = Holdings(), Clock()
    its_heart = heart(wire, holdings, clock)
    its_heart.register()
    slot = Slot(
        Turn(operations(), holdings, its_heart, nonces()), holdings, its_heart, done, wire,
        Outage(random.Random(1), clock), lambda: True, lambda: False, clock,
    )  # fmt: skip
    clock.now_s += 15
    assert 0 < slot.step() < 1
    assert not slot.idle


def test_a_lease_that_is_lost_and_a_new_one_come_one_after_the_other(wire: Wire) -> None:
    """A slot that is told of the loss is held up before it has dropped what it held; the heart goes on meanwhile."""
    in_drop, go_on = threading.Event(), threading.Event()

    class Slow(Holdings):
        def drop(self) -> Any:
            in_drop.set()
            assert go_on.wait(10)
            return super().drop()

    holdings = Slow()
    its_heart = heart(wire, holdings, Clock())
    its_heart.register()
    loser = threading.Thread(target=its_heart.lose, args=(its_heart.worker,))
    loser.start()
    assert in_drop.wait(10)
    registered = threading.Event()

    def register() -> None:
        its_heart.register()
        registered.set()
        holdings.receive([A], 1, holdings.era)

    newcomer = threading.Thread(target=register)
    newcomer.start()
    assert not registered.wait(0.1)
    go_on.set()
    loser.join(10)
    newcomer.join(10)
    assert holdings.ids() == ["a"], "it is held under the new lease"
    assert its_heart.sure
