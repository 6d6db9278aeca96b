"""The lease, the beat that keeps it, and what the beat brings back."""

import json
import logging

import pytest

from rqlite_jobs.errors import ScriptFailed, ServerReadOnly
from rqlite_jobs.operations import Call
from rqlite_jobs.worker.heart import LOOK_S, Heart
from rqlite_jobs.worker.holdings import Holdings
from tests.worker.parts import AWAY, Clock, Wire, beat, claim, done, heart


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def wire() -> Wire:
    wire = Wire()
    wire.answers = {"register": (1000, ("default", "mail")), "heartbeat": beat()}
    return wire


@pytest.fixture
def holdings(clock: Clock) -> Holdings:
    return Holdings(clock)


def registered(wire: Wire, holdings: Holdings, clock: Clock, **given: object) -> Heart:
    made = heart(wire, holdings, clock, **given)  # type: ignore[arg-type]
    made.register()
    wire.sent = []
    return made


def test_registering_gives_an_id_a_lease_and_the_queues(wire: Wire, holdings: Holdings, clock: Clock) -> None:
    made = heart(wire, holdings, clock)
    assert not made.sure
    made.register()
    assert made.sure
    assert made.queues == ["default", "mail"]
    (call,) = wire.sent
    args = list(call.args)
    assert args[1:3] == [made.worker, 15_000]
    facts = dict(zip(args[3::2], args[4::2], strict=True))
    assert json.loads(str(facts["queues"])) == ["default"]
    assert json.loads(str(facts["names"])) == ["a", "b"]
    assert facts["all_queues"] == "1"


def test_one_that_serves_named_queues_learns_of_no_others(
    wire: Wire, holdings: Holdings, clock: Clock
) -> None:
    made = registered(wire, holdings, clock, all_queues=False)
    wire.answers["heartbeat"] = beat(queues=("other",))
    clock.now_s += 5
    made.tick()
    assert made.queues == ["default"]


def test_it_beats_when_it_is_time_and_names_what_is_held(
    wire: Wire, holdings: Holdings, clock: Clock
) -> None:
    made = registered(wire, holdings, clock)
    assert made.tick() == pytest.approx(5.0)
    assert wire.verbs == []
    clock.now_s += 4.5
    assert made.tick() == pytest.approx(0.5)
    holdings.receive([claim("x"), claim("y")])
    holdings.end(claim("x"), done(claim("x")))
    clock.now_s += 0.5
    wire.answers["heartbeat"] = beat(queues=("mail", "zoo"))
    made.tick()
    assert list(wire.sent[0].args[-2:]) == ["x", "y"]
    assert made.queues == ["default", "mail", "zoo"]


def test_a_lease_is_sure_from_the_sending_of_the_last_confirmed_beat(
    wire: Wire, holdings: Holdings, clock: Clock
) -> None:
    made = registered(wire, holdings, clock)

    def slow(call: Call[object]) -> object:
        clock.now_s += 3
        return beat()

    wire.answers["heartbeat"] = slow
    clock.now_s += 5
    made.tick()
    clock.now_s += 11.9
    assert made.sure
    clock.now_s += 0.1
    assert not made.sure


def test_the_next_beat_comes_when_another_lease_ends_but_not_sooner_than_a_sweep(
    wire: Wire, holdings: Holdings, clock: Clock
) -> None:
    made = registered(wire, holdings, clock)
    for left_ms, wait_s in [(2999, 3.0), (300, 1.0), (-50, 1.0), (60_000, 5.0)]:
        clock.now_s = made._next_beat_s
        wire.answers["heartbeat"] = beat(now_ms=1000, next_end_ms=1000 + left_ms)
        assert made.tick() == pytest.approx(wait_s)


def test_a_lost_lease_drops_everything_and_gets_a_new_one(
    wire: Wire, holdings: Holdings, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    made = registered(wire, holdings, clock)
    first = made.worker
    holdings.receive([claim("x"), claim("y")])
    wire.answers["heartbeat"] = beat(lost=True)
    clock.now_s += 5
    made.tick()
    assert wire.verbs == ["heartbeat", "register"]
    assert made.worker not in ("", first)
    assert made.sure
    assert holdings.ids() == []
    assert [one.getMessage() for one in caplog.records] == [
        f"the lease of worker {first} is lost; jobs that run elsewhere now: 2"
    ]


def test_one_told_by_a_turn_registers_at_the_next_tick(wire: Wire, holdings: Holdings, clock: Clock) -> None:
    made = registered(wire, holdings, clock)
    made.lose("somebody else")
    assert made.sure
    made.lose(made.worker)
    assert not made.sure
    made.tick()
    assert wire.verbs == ["register"]
    assert made.sure


@pytest.mark.parametrize(
    "error", [AWAY, ServerReadOnly(), ScriptFailed("x"), ValueError("a reply of another version"), OSError()]
)
def test_no_error_stops_it_and_one_line_tells_of_many(
    wire: Wire, holdings: Holdings, clock: Clock, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    caplog.set_level(logging.INFO, "rqlite_jobs")
    made = registered(wire, holdings, clock)
    wire.answers["heartbeat"] = error
    clock.now_s += 5
    for _ in range(30):
        wait_s = made.tick()
        assert 0 < wait_s <= 2.0
        clock.now_s += wait_s
    assert wire.verbs == ["heartbeat"] * 30
    assert not made.sure
    assert len(caplog.records) == 1
    wire.answers["heartbeat"] = beat()
    assert made.tick() == pytest.approx(5.0)
    assert made.sure
    assert len(caplog.records) == 2
    assert "answers again" in caplog.messages[1]


def test_when_the_server_is_away_at_registration_the_caller_hears_of_it(
    wire: Wire, holdings: Holdings, clock: Clock
) -> None:
    made = heart(wire, holdings, clock)
    wire.answers["register"] = AWAY
    with pytest.raises(ConnectionError):
        made.register()
    assert not made.worker
    assert not made.sure


def test_a_hand_behind_a_slow_job_is_given_back_and_settled_even_if_that_fails_at_first(
    wire: Wire, holdings: Holdings, clock: Clock
) -> None:
    flushed: list[bool] = [False, False, True]

    def flush() -> bool:
        return flushed.pop(0)

    made = registered(wire, holdings, clock, flush=flush)
    holdings.receive([claim("slow"), claim("next")])
    assert made.tick() == LOOK_S, "while something lies in hand it looks often"
    clock.now_s += LOOK_S
    for left in (2, 1, 0):
        made.tick()
        assert len(flushed) == left
        clock.now_s += LOOK_S
    made.tick()
    assert flushed == []
    assert made.tick() > LOOK_S


def test_what_was_recovered_is_told(
    wire: Wire, holdings: Holdings, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    changes: list[int] = []
    made = registered(wire, holdings, clock)
    made._changed = lambda: changes.append(1)
    wire.answers["heartbeat"] = beat(recovered=3, queues=("mail",))
    clock.now_s += 5
    made.tick()
    assert caplog.messages == ["jobs of workers that died, back in their queues: 3"]
    assert changes == [1], "its own slots look at once"
    wire.answers["heartbeat"] = beat(queues=("mail",))
    clock.now_s += 5
    made.tick()
    assert changes == [1]


def test_it_tells_of_what_the_slots_must_know_at_once(wire: Wire, holdings: Holdings, clock: Clock) -> None:
    told: list[tuple[bool, list[str]]] = []
    made = heart(wire, holdings, clock)
    made._changed = lambda: told.append((bool(made.worker), made.queues))
    made.register()
    assert told[-1] == (True, ["default", "mail"])
    clock.now_s += 5
    wire.answers["heartbeat"] = beat(queues=("mail", "zoo"))
    made.tick()
    assert told[-1] == (True, ["default", "mail", "zoo"])
    made.lose(made.worker)
    assert told[-1] == (False, ["default", "mail", "zoo"])
