"""pause: no job of a paused queue is started, it takes new ones, and the end of the pause is a due time."""

import pytest

from rqlite_jobs.answers import Pause
from tests.lua.stage import NONCE, Stage, job

WAKE = {"wake:sales": (None, ["1"])}


def turned(stage: Stage, *queues: str, nonce: str = NONCE) -> tuple[list[str], int, bool]:
    """A turn of a worker: the ids it was given, the next due time, and whether more is left."""
    answer = stage.run(stage.ops.turn("w1", nonce, queues or ("sales",), [], 9))
    return [claim.id for claim in answer.claims], answer.next_due_ms, answer.left


def awake(stage: Stage) -> None:
    """Take the wake-up token away, as a waiter does."""
    stage.client.delete(stage.key("wake:sales"))


def test_it_is_written_down_with_until_when_since_when_and_by_whom(stage: Stage) -> None:
    stage.enqueue(job("a"))
    awake(stage)
    answer, changed = stage.did(stage.ops.pause("sales", 5000, "ann at night"))
    assert (answer, changed) == ("paused", {"queues": {"sales": ("0", "0 6000 1000 ann at night")}, **WAKE})
    (found,) = stage.run(stage.ops.survey()).queues
    assert (found.ready, found.pause) == (1, Pause(6000, 1000, "ann at night"))


def test_without_an_end_till_it_is_resumed(stage: Stage) -> None:
    stage.enqueue(job("a"))
    awake(stage)
    _, changed = stage.did(stage.ops.pause("sales", 0, "ann"))
    assert changed == {"queues": {"sales": ("0", "0 0 1000 ann")}, **WAKE}
    stage.worker()
    stage.now_ms = 10**13
    stage.worker()
    assert turned(stage) == ([], 0, False)
    awake(stage)
    answer, changed = stage.did(stage.ops.pause("sales", None, "bob"))
    assert (answer, changed) == ("resumed", {"queues": {"sales": ("0 0 1000 ann", "0")}, **WAKE})
    assert turned(stage)[0] == ["a"]


def test_one_that_is_not_paused_is_told(stage: Stage) -> None:
    stage.enqueue(job("a"))
    assert stage.did(stage.ops.pause("sales", None, "ann")) == ("running", {})
    assert stage.did(stage.ops.pause("nothing", None, "ann")) == ("unknown", {})
    assert stage.did(stage.ops.pause("nothing", 5, "ann")) == ("unknown", {})


def test_a_pause_that_is_over_is_none(stage: Stage) -> None:
    stage.enqueue(job("a"))
    stage.run(stage.ops.pause("sales", 5, "ann"))
    stage.now_ms = 1005
    assert stage.run(stage.ops.survey()).queues[0].pause is None
    assert stage.run(stage.ops.pause("sales", None, "ann")) == "running"


def test_paused_again_the_last_word_counts(stage: Stage) -> None:
    stage.enqueue(job("a"))
    stage.run(stage.ops.pause("sales", 5, "ann"))
    stage.run(stage.ops.pause("sales", 50, "bob"))
    assert stage.run(stage.ops.survey()).queues[0].pause == Pause(1050, 1000, "bob")


def test_nothing_of_it_starts_and_it_takes_new_ones(stage: Stage) -> None:
    stage.enqueue(job("a"), job("late", delay_ms=2), job("m", "mail"))
    stage.run(stage.ops.pause("sales", 5, "ann"))
    stage.worker()
    stage.now_ms = 1003
    assert turned(stage, "sales", "mail") == (["m"], 1005, False)
    assert stage.enqueue(job("b"))[0].state == "ready"
    before = stage.world()
    assert turned(stage, nonce="m" * 11) == ([], 1005, False)
    assert stage.world() == before  # what is due stays where it is, and no token is left for nothing to do
    stage.now_ms = 1005
    assert turned(stage, nonce="o" * 11) == (["a", "b", "late"], 0, False)


def test_the_end_of_a_pause_is_the_next_due_time_if_nothing_comes_before(stage: Stage) -> None:
    stage.enqueue(job("a"), job("m", "mail", delay_ms=3), job("x", "x", delay_ms=9))
    stage.run(stage.ops.pause("sales", 5, "ann"))
    stage.worker()
    assert turned(stage, "sales", "x") == ([], 1005, False)
    assert turned(stage, "sales", "mail") == ([], 1003, False)


def test_an_enqueue_leaves_a_token_that_one_turn_takes_away(stage: Stage) -> None:
    stage.enqueue(job("a"))
    stage.run(stage.ops.pause("sales", 0, "ann"))
    stage.worker()
    awake(stage)
    for at in range(3):
        turned(stage, nonce=f"{at:011}")
        assert "wake:sales" not in stage.world()


def test_whoever_goes_to_work_passes_the_end_of_a_pause_on(stage: Stage) -> None:
    """Nobody of its worker waits any more: another one's waiter must come, or the end would pass unseen."""
    stage.enqueue(job("a"), job("m", "mail"))
    stage.run(stage.ops.pause("sales", 50, "ann"))
    awake(stage)
    stage.worker()
    stage.run(stage.ops.turn("w1", NONCE, ["sales", "mail"], [], 1, last_idle=True))
    assert stage.world()["wake:sales"] == ["1"]


def test_what_runs_goes_on(stage: Stage) -> None:
    stage.enqueue(job("a"), job("b"))
    (claim,) = stage.claim(1)
    stage.run(stage.ops.pause("sales", 0, "ann"))
    assert stage.settle("done", claim) == {}
    assert stage.run(stage.ops.cancel(["b"])) == ["cancelled"]


def test_a_name_may_hold_anything(stage: Stage) -> None:
    stage.enqueue(job("a"))
    stage.run(stage.ops.pause("sales", 0, "größe 1 2 3\0x"))
    assert stage.run(stage.ops.survey()).queues[0].pause == Pause(0, 1000, "größe 1 2 3\0x")


def test_asked_again_in_its_lane(stage: Stage) -> None:
    stage.enqueue(job("a"))
    stage.run(stage.ops.pause("sales", 0, "ann"))
    call = stage.ops.pause("sales", None, "ann")
    assert stage.sent(call) == b"resumed"
    before = stage.world()
    assert stage.sent(call) == b"resumed"
    assert stage.world() == before
    assert stage.sent(call, nonce="m" * 11) == b"running"


@pytest.mark.parametrize("entry", ["", "0", "0 x 1 me", "mine", "0 5"])
def test_an_entry_that_tells_of_no_pause(stage: Stage, entry: str) -> None:
    stage.enqueue(job("a"))
    stage.client.hset(stage.key("queues"), "sales", entry)
    assert stage.run(stage.ops.survey()).queues[0].pause is None
    assert [claim.id for claim in stage.claim(1)] == ["a"]


def test_a_worker_of_very_many_queues(stage: Stage) -> None:
    """Lua's stack takes 8,000 values at once."""
    stage.enqueue(job("a", "q8999"), job("b", "q7"))
    stage.run(stage.ops.pause("q8999", 5, "ann"))
    stage.worker()
    assert turned(stage, *(f"q{at}" for at in range(9000))) == (["b"], 1005, False)
