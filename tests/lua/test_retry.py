"""retry: a job that waits for its next attempt goes now; every other one is answered with what it is."""

import pytest

from tests.lua.stage import Stage, job, locked, record, tries


def failed(stage: Stage, *jobs: object, word: str = "retry") -> None:
    """Let jobs fail once, so that they wait for 9 s."""
    stage.enqueue(*jobs)  # type: ignore[arg-type]
    for claim in stage.claim(len(jobs)):
        stage.settle(word, claim, delay_ms=9000, error="e", traceback="t")


def test_it_goes_now_and_its_attempts_go_on(stage: Stage) -> None:
    failed(stage, locked("a"), job("b"))
    stage.enqueue(job("c"))
    stage.client.delete(stage.key("wake:sales"))
    answer, changed = stage.did(stage.ops.retry(["a"]))
    assert answer == ["retried"]
    assert changed == {
        "scheduled:sales": {"a": (10_000, None)},
        "jobs": {"a": (record(locked("a"), since_ms=10_000), record(locked("a"), since_ms=1000))},
        "ready:sales:0": (["c"], ["a", "c"]),
        "wake:sales": (None, ["1"]),
    }
    assert [(claim.id, claim.attempts) for claim in stage.claim(9)] == [("c", 0), ("a", 1)]
    assert stage.state("b") == "scheduled"


def test_one_that_was_put_off_as_unknown_goes_too(stage: Stage) -> None:
    failed(stage, job("a"), word="putoff")
    assert stage.run(stage.ops.retry(["a"])) == ["retried"]


@pytest.mark.parametrize("how", ["delayed", "snoozed"])
def test_one_that_has_not_failed_keeps_its_time(stage: Stage, how: str) -> None:
    if how == "delayed":
        stage.enqueue(job("a", delay_ms=9000))
    else:
        failed(stage, job("a"), word="snooze")
    assert stage.did(stage.ops.retry(["a"])) == (["delayed"], {})


def test_what_does_not_wait_is_told(stage: Stage) -> None:
    stage.finish(job("done"))
    stage.bury(job("dead"))
    stage.enqueue(job("running"))
    stage.claim(1)
    stage.enqueue(job("ready"), job("gone"), job("odd"))
    stage.run(stage.ops.cancel(["gone"]))
    stage.client.hset(stage.key("jobs"), "odd", "mine")
    answer, changed = stage.did(
        stage.ops.retry(["done", "dead", "running", "ready", "gone", "odd", "nobody"])
    )
    assert answer == ["done", "dead", "running", "ready", "cancelled", "malformed", "unknown"]
    assert changed == {}


def test_named_twice_it_is_ready_the_second_time(stage: Stage) -> None:
    failed(stage, job("a"))
    assert stage.run(stage.ops.retry(["a", "a"])) == ["retried", "ready"]
    assert stage.world()["ready:sales:0"] == ["a"]


def test_a_queue_of_a_foreign_type_spoils_nothing(stage: Stage) -> None:
    stage.enqueue(job("a", "bad", delay_ms=9000), job("b", delay_ms=9000))
    for name in "ab":
        stage.client.hset(stage.key("tries"), name, tries(attempts=1))
    stage.client.set(stage.key("ready:bad:0"), "mine")
    assert stage.run(stage.ops.retry(["a", "b"])) == ["unsound", "retried"]
    assert stage.world()["scheduled:bad"] == {"a": 10_000}


def test_asked_again_in_its_lane(stage: Stage) -> None:
    failed(stage, job("a"))
    call = stage.ops.retry(["a", "nobody"])
    first = stage.sent(call)
    before = stage.world()
    assert stage.sent(call) == first == [b"retried", b"unknown"]
    assert stage.world() == before
    assert stage.sent(call, nonce="m" * 11) == [b"ready", b"unknown"]
