"""One asker's turns: kept until answered, and what the answer changes."""

import pytest

from rqlite_jobs.worker import outcome
from rqlite_jobs.worker.heart import Heart
from rqlite_jobs.worker.holdings import Holdings
from rqlite_jobs.worker.turn import Turn
from tests.worker.parts import Clock, Wire, claim, done, heart, nonces, operations, turned

A, B, C = (claim(name) for name in "abc")


@pytest.fixture
def holdings() -> Holdings:
    return Holdings()


@pytest.fixture
def alive(holdings: Holdings) -> Heart:
    wire = Wire()
    wire.answers = {"register": (1000, ())}
    made = heart(wire, holdings, Clock())
    made.register()
    return made


@pytest.fixture
def turn(holdings: Holdings, alive: Heart) -> Turn:
    return Turn(operations(), holdings, alive, nonces())


def test_it_asks_for_jobs_and_takes_outcomes_along(turn: Turn, holdings: Holdings, alive: Heart) -> None:
    holdings.receive([A])
    holdings.end(A, done(A))
    call = turn.ask(1, 5, last_idle=True)
    assert list(call.args[:2]) == ["nonce-00000", "0"]
    assert list(call.args[3:7]) == [alive.worker, 1, 5, "1"]
    assert call.args[-3:] == ["a", "1-nonce", 0]
    assert turn.answered(turned(B, C, left=True)) == ([B], True)
    assert holdings.ids() == ["b", "c"]
    assert holdings.next_in_hand() == C
    assert turn.ask(0).args[0] == "nonce-00001"


def test_unanswered_it_asks_the_very_same_again_and_says_so(turn: Turn, holdings: Holdings) -> None:
    holdings.receive([A, B])
    holdings.end(A, done(A))
    first = turn.ask(1)
    turn.unanswered()
    holdings.end(B, done(B))
    second = turn.ask(1)
    assert second.args[1] == "1"
    assert [*second.args[:1], *second.args[2:]] == [*first.args[:1], *first.args[2:]]
    assert holdings.waiting, "what ended meanwhile waits for the next one"
    turn.answered(turned())
    assert holdings.ids() == ["b"]
    assert not holdings.idle


def test_how_long_the_next_due_job_takes(turn: Turn) -> None:
    for next_due_ms, wait_ms in [(0, -1), (1500, 500), (1000, 0), (10, 0)]:
        turn.ask(1)
        turn.answered(turned(next_due_ms=next_due_ms))
        assert turn.next_due_ms == wait_ms


def test_one_without_a_lease_is_given_nothing_and_the_heart_is_told(
    turn: Turn, holdings: Holdings, alive: Heart
) -> None:
    holdings.receive([A])
    turn.ask(1)
    assert turn.answered(turned(registered=False)) == ([], False)
    assert alive.worker == ""
    assert holdings.ids() == []


def test_an_answer_to_who_it_was_before_brings_nothing(turn: Turn, holdings: Holdings, alive: Heart) -> None:
    turn.ask(1)
    alive.lose(alive.worker)
    alive.register()
    assert turn.answered(turned(A, B)) == ([], False)
    assert holdings.ids() == []
    assert not holdings.idle, "nor does it say that there is nothing"


def test_a_question_of_who_it_was_before_is_not_asked_again(
    turn: Turn, holdings: Holdings, alive: Heart
) -> None:
    holdings.receive([A])
    holdings.end(A, outcome.handed_back(A))
    turn.ask(1)
    turn.unanswered()
    alive.lose(alive.worker)
    alive.register()
    call = turn.ask(1)
    assert call.args[1] == "0"
    assert "a" not in call.args, "its outcome went with its lease"
    turn.answered(turned())
    assert holdings.idle


def test_stale_outcomes_are_told_and_gone_ones_are_not(
    turn: Turn, holdings: Holdings, caplog: pytest.LogCaptureFixture
) -> None:
    holdings.receive([A, B])
    holdings.end(A, done(A))
    holdings.end(B, done(B))
    turn.ask(0)
    turn.answered(turned(refused={"a": "stale", "b": "gone"}))
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith("job a ended here, but its lease was lost")
    assert holdings.ids() == [], "neither is asked again"
