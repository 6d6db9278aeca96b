"""The laws notice by themselves what they are there for: worlds with one thing wrong in each."""

from dataclasses import replace
from typing import Any

import pytest

from rqlite_jobs.answers import Claim, QueueSurvey, Survey, Turned
from tests.model.laws import broken, unbalanced, unfair
from tests.model.waiters import Waiters, pauses
from tests.world import World

pytestmark = pytest.mark.model

SOUND: World = {
    "jobs": {"a": "1\0sales\0000\0001000\0\0p", "b": "1\0sales\0000\0001000\0\0p"},
    "ready:sales:0": ["a"],
    "scheduled:sales": {"b": 5000},
    "queues": {"sales": "0"},
    "totals": {"enqueued": "3", "cancelled": "1"},
    "gone": {"c": "cancelled"},
    "left": ["c"],
}
SURVEY = Survey(
    2000, 0, 0, 0, 0, 0, 0, 0, 2, {"enqueued": 3, "cancelled": 1}, [QueueSurvey("sales", 1, 1, 0, 0)]
)


def turned(next_due_ms: int = 0, *, left: bool = False, record: bytes = b"") -> Turned:
    claims = [Claim("a", "1-n", record, b"", 0, 0, 0)] if record else []
    return Turned(True, 2000, next_due_ms, left, {}, claims)


@pytest.mark.parametrize(
    "wrong",
    [
        {"ready:sales:0": ["a", "a"]},
        {"ready:sales:0": ["a", "b"]},
        {"ready:sales:0": []},
        {"dead": ["a"]},
        {"gone": {"a": "cancelled"}, "left": ["a"]},
        {"left": ["c", "c"]},
        {"left": []},
        {"tombs:sales": {"c": "1"}},
        {"totals": {"enqueued": "4", "cancelled": "1"}},
    ],
)
def test_where_jobs_are(wrong: World) -> None:
    assert broken(SOUND) == []
    assert broken(SOUND | wrong) != []


@pytest.mark.parametrize(
    "wrong",
    [
        {"running": 1},
        {"running": -1, "dead": 1},
        {"totals": {"enqueued": 3, "cancelled": 1, "expired": 1}},
        {"totals": {"enqueued": 3, "superseded": 2, "deleted": -1}},
    ],
)
def test_numbers_that_do_not_add_up(wrong: dict[str, Any]) -> None:
    assert unbalanced(SURVEY) == []
    assert unbalanced(replace(SURVEY, **wrong)) != []


def test_what_may_not_be_started() -> None:
    record = b"1\0sales\0000\0001000\0x%d\0\0p"
    assert unfair(turned(record=record % 2001), ["mail"]) == []
    assert unfair(turned(record=record % 2000), []) == ["a was started at 2000, after 2000"]
    assert unfair(turned(record=record % 2001), ["sales"]) == ["a was started, and its queue sales is paused"]


def test_whose_wake_up_is_swallowed() -> None:
    waiters = Waiters()
    assert waiters.faults(SOUND | {"wake:sales": ["1"]}, 2000) == []
    assert waiters.faults(SOUND, 2000) != []
    waiters.owes("sales")
    assert waiters.faults(SOUND, 2000) == []
    waiters.turned("w1", ["sales"], turned(5000))  # a ready job, and the worker sleeps until 5000
    assert waiters.faults(SOUND, 2000) != []
    waiters.turned("w1", ["sales"], turned(left=True))
    assert waiters.faults(SOUND, 2000) == []


def test_due_times_that_somebody_must_know() -> None:
    waiters, later = Waiters(), {**SOUND, "ready:sales:0": []}
    for told_ms, fine in ((5000, True), (5001, False), (0, False)):
        waiters.turned("w1", ["sales"], turned(told_ms))
        assert (waiters.faults(later, 2000) == []) is fine
    waiters.turned("w2", ["sales"], turned(4000))
    assert waiters.faults(later, 2000) == []
    waiters.ended("w2", politely=True)
    assert waiters.faults(later, 2000) != []


@pytest.mark.parametrize(("entry", "told_ms", "fine"), [
    ("0 3000 1000 ann", 3000, True),
    ("0 3000 1000 ann", 3001, False),
    ("0 3000 1000 ann", 0, False),
    ("0 0 1000 ann", 0, True),
    ("0 2000 1000 ann", 0, False),
])  # fmt: skip
def test_the_end_of_a_pause(entry: str, told_ms: int, fine: bool) -> None:
    waiters = Waiters()
    waiters.turned("w1", ["sales"], turned(told_ms))
    assert (waiters.faults(SOUND | {"queues": {"sales": entry}}, 2000) == []) is fine


def test_which_queues_are_paused() -> None:
    entries = {"a": "0", "b": "0 0 1000 ann", "c": "0 2001 1000 ann", "d": "0 2000 1000 ann"}
    assert pauses({"queues": entries}, 2000) == {"b": 0, "c": 2001}


def test_one_that_ended_without_a_word_is_owed_for() -> None:
    waiters = Waiters()
    waiters.turned("w1", ["sales"], turned(2000))
    waiters.ended("w1", politely=False)
    assert waiters.faults(SOUND, 2000) == []
    waiters.turned("w2", ["sales"], None)  # its answer was lost: it asks again
    assert waiters.faults(SOUND, 2000) == []
    waiters.turned("w2", ["sales"], turned())
    assert waiters.faults(SOUND, 2000) != []
