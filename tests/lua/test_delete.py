"""delete: a job goes with all that is known of it, wherever it is; a running one stays."""

import pytest

from tests.lua.stage import Stage, job, locked, once, record, tries

TRACES = ("jobs", "bodies", "tries", "errors", "ends", "dead", "rejected", "done", "lock:k", "locks")


def test_a_ready_job(stage: Stage) -> None:
    stage.enqueue(locked("a"), job("b"))
    answer, changed = stage.did(stage.ops.delete(["a"]))
    assert answer == ["deleted"]
    assert changed == {
        "jobs": {"a": (record(locked("a")), None)},
        "tombs:sales": {"a": (None, "1")},
        "lock:k": ("d 0 a", None),
        "locks": {"k": (float("inf"), None)},
        "totals": {"deleted": (None, "1")},
    }


def test_a_scheduled_job(stage: Stage) -> None:
    stage.enqueue(job("a", delay_ms=5, payload="x" * 3000))
    _, changed = stage.did(stage.ops.delete(["a"]))
    assert set(changed) == {"jobs", "bodies", "scheduled:sales", "totals"}


def test_a_dead_job(stage: Stage) -> None:
    stage.bury(locked("a"), locked("b"), locked("c"))
    answer, changed = stage.did(stage.ops.delete(["b"]))
    assert answer == ["deleted"]
    assert set(changed) == {"jobs", "tries", "errors", "dead", "totals"}
    assert changed["dead"] == (["c", "b", "a"], ["c", "a"])


def test_a_rejected_job(stage: Stage) -> None:
    stage.enqueue(locked("a"))
    stage.enqueue(locked("b", on_conflict="reject"))
    answer, changed = stage.did(stage.ops.delete(["b"]))
    assert answer == ["deleted"]
    assert changed["rejected"] == (["b"], None)
    assert "lock:k" not in changed


def test_a_done_job_is_not_counted_as_deleted(stage: Stage) -> None:
    stage.finish(job("a"), job("b"))
    answer, changed = stage.did(stage.ops.delete(["a"]))
    assert answer == ["deleted"]
    assert changed == {
        "jobs": {"a": (record(job("a")), None)},
        "done": (["b", "a"], ["b"]),
        "ends": {"a": ("1000 1000", None)},
    }


@pytest.mark.parametrize("state", ["ready", "scheduled", "dead", "done"])
def test_nothing_is_left_of_it(stage: Stage, state: str) -> None:
    new = locked("a", payload="x" * 3000, delay_ms=5 if state == "scheduled" else None)
    {"dead": stage.bury, "done": stage.finish}.get(state, stage.enqueue)(new)
    assert stage.state("a") == state
    stage.run(stage.ops.delete(["a"]))
    assert set(TRACES).isdisjoint(stage.world())
    assert stage.state("a") == "unknown"


def test_until_expired_is_kept(stage: Stage) -> None:
    stage.finish(once("a"))
    stage.run(stage.ops.delete(["a"]))
    assert stage.world()["lock:k"] == "e 61000 a"


def test_what_it_leaves_alone(stage: Stage) -> None:
    stage.enqueue(job("gone"), locked("running"), job("bare"))
    stage.run(stage.ops.cancel(["gone"]))
    stage.claim(2)
    answer, changed = stage.did(stage.ops.delete(["gone", "running", "bare", "nobody"]))
    assert (answer, changed) == (["cancelled", "running", "running", "unknown"], {})


def test_named_twice_it_is_unknown_the_second_time(stage: Stage) -> None:
    stage.bury(job("a"))
    stage.enqueue(job("b"))
    assert stage.run(stage.ops.delete(["a", "b", "b", "a"])) == ["deleted", "deleted", "unknown", "unknown"]
    assert stage.world()["totals"]["deleted"] == "2"


def test_a_malformed_one_goes_too(stage: Stage) -> None:
    stage.enqueue(job("waits"), job("dead"))
    stage.client.hset(stage.key("jobs"), "dead", "mine")
    stage.client.hset(stage.key("tries"), "dead", tries(died_ms=5, reason="malformed"))
    stage.client.lpush(stage.key("dead"), "dead")
    stage.client.hset(stage.key("jobs"), "waits", "mine")
    assert stage.run(stage.ops.delete(["waits", "dead"])) == ["deleted", "deleted"]
    assert {"jobs", "tries", "dead"}.isdisjoint(stage.world())
    assert stage.claim(5) == []


def test_asked_again_in_its_lane(stage: Stage) -> None:
    stage.enqueue(job("a"))
    assert stage.sent(stage.ops.delete(["a"])) == [b"deleted"]
    before = stage.world()
    assert stage.sent(stage.ops.delete(["a"])) == [b"deleted"]
    assert stage.world() == before
    assert stage.sent(stage.ops.delete(["a"]), nonce="m" * 11) == [b"unknown"]


@pytest.mark.parametrize("key", ["ready:bad:0", "tombs:bad"])
def test_a_queue_of_a_foreign_type_spoils_nothing(stage: Stage, key: str) -> None:
    stage.enqueue(job("a", "bad"), job("b"))
    stage.client.delete(stage.key(key))
    stage.client.set(stage.key(key), "mine")
    assert stage.run(stage.ops.delete(["b", "a"])) == ["deleted", "unsound"]
    assert list(stage.world()["jobs"]) == ["a"]
