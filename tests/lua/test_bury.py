"""bury: waiting jobs are put among the dead by hand."""

import pytest

from tests.lua.stage import Stage, job, locked, once, tries


def test_ready_and_scheduled(stage: Stage) -> None:
    stage.enqueue(locked("a"), job("b", delay_ms=5000), job("c"))
    stage.now_ms = 2000
    answer, changed = stage.did(stage.ops.bury(["a", "b"], "out of print"))
    assert answer == ["buried", "buried"]
    found = tries(died_ms=2000, reason="buried", error="out of print")
    assert changed == {
        "tombs:sales": {"a": (None, "1")},
        "scheduled:sales": {"b": (6000, None)},
        "lock:k": ("d 0 a", None),
        "locks": {"k": (float("inf"), None)},
        "dead": (None, ["b", "a"]),
        "tries": {"a": (None, found), "b": (None, found)},
        "totals": {"died": (None, "2")},
    }
    assert [one.id for one in stage.claim(5)] == ["c"]


def test_what_went_wrong_before_is_kept(stage: Stage) -> None:
    stage.enqueue(job("a"))
    stage.settle("retry", stage.claim()[0], error="E", traceback="tb", delay_ms=5000)
    stage.run(stage.ops.bury(["a"], "enough"))
    found = tries(attempts=1, died_ms=1000, started_ms=1000, reason="buried", error="enough")
    assert (stage.world()["tries"]["a"], stage.world()["errors"]["a"]) == (found, "tb")


def test_what_is_not_waiting_is_told(stage: Stage) -> None:
    stage.finish(job("done"))
    stage.bury(job("dead"))
    stage.enqueue(job("gone"), job("running"))
    stage.run(stage.ops.cancel(["gone"]))
    stage.claim()
    stage.enqueue(job("odd"))
    stage.client.hset(stage.key("jobs"), "odd", "mine")
    answer, changed = stage.did(stage.ops.bury(["done", "dead", "gone", "running", "odd", "nobody"], "why"))
    assert answer == ["done", "dead", "cancelled", "running", "malformed", "unknown"]
    assert changed == {}


def test_named_twice_it_is_dead_the_second_time(stage: Stage) -> None:
    stage.enqueue(job("a"))
    assert stage.run(stage.ops.bury(["a", "a"], "why")) == ["buried", "dead"]
    assert stage.world()["dead"] == ["a"]


def test_until_expired_is_kept(stage: Stage) -> None:
    stage.enqueue(once("a"))
    stage.run(stage.ops.bury(["a"], "why"))
    assert stage.world()["lock:k"] == "e 61000 a"


def test_the_dead_stay_capped_however_many_come(stage: Stage) -> None:
    stage.set(dead_max_count=3)
    ids = [f"{n:03}" for n in range(500)]
    stage.enqueue(*map(job, ids))
    assert stage.run(stage.ops.bury(ids, "why")) == ["buried"] * 500
    after = stage.world()
    assert after["dead"] == ["499", "498", "497"]
    assert sorted(after["jobs"]) == ["497", "498", "499"]
    assert after["totals"] == {"enqueued": "500", "died": "500", "deleted": "497"}


def test_asked_again_in_its_lane(stage: Stage) -> None:
    stage.enqueue(job("a"))
    call = stage.ops.bury(["a"], "why")
    assert stage.sent(call) == [b"buried"]
    before = stage.world()
    assert stage.sent(call) == [b"buried"]
    assert stage.world() == before


@pytest.mark.parametrize("key", ["ready:bad:0", "tombs:bad"])
def test_a_queue_of_a_foreign_type_spoils_nothing(stage: Stage, key: str) -> None:
    stage.enqueue(job("a", "bad"), job("b"))
    stage.client.delete(stage.key(key))
    stage.client.set(stage.key(key), "mine")
    assert stage.run(stage.ops.bury(["b", "a"], "why")) == ["buried", "unsound"]
    assert stage.world()["dead"] == ["b"]
