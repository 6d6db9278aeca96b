"""purge: what waits in a queue goes, with its locks; what runs, is dead or done stays."""

import pytest

from rqlite_jobs.errors import RqjError
from tests.lua.stage import Stage, job, locked, record


def test_a_queue(stage: Stage) -> None:
    stage.finish(job("done"))
    stage.bury(job("dead"))
    stage.enqueue(job("running"))
    stage.claim()
    stage.enqueue(locked("a"), job("b", payload="x" * 3000), job("c", delay_ms=5), job("other", "mail"))
    answer, changed = stage.did(stage.ops.purge("sales"))
    assert answer == (2, 1, 0)
    assert changed == {
        "jobs": {
            "a": (record(locked("a")), None),
            "b": (record(job("b"), payload=""), None),
            "c": (record(job("c", delay_ms=5)), None),
        },
        "bodies": {"b": ("x" * 3000, None)},
        "ready:sales:0": (["b", "a"], None),
        "scheduled:sales": {"c": (1005, None)},
        "lock:k": ("d 0 a", None),
        "locks": {"k": (float("inf"), None)},
        "totals": {"deleted": (None, "3")},
    }


def test_a_portion_at_a_time_the_next_ones_first(stage: Stage) -> None:
    stage.enqueue(*(job(name) for name in "abcde"), job("s", delay_ms=5), job("t", delay_ms=9))
    assert stage.run(stage.ops.purge("sales", 3)) == (3, 0, 4)
    assert stage.world()["ready:sales:0"] == ["e", "d"]
    assert stage.run(stage.ops.purge("sales", 3)) == (2, 1, 1)
    assert stage.run(stage.ops.purge("sales", 3)) == (0, 1, 0)
    assert stage.run(stage.ops.purge("sales", 3)) == (0, 0, 0)
    assert "jobs" not in stage.world()


def test_tombs_go_too_and_do_not_count(stage: Stage) -> None:
    stage.enqueue(job("a"), job("b"), job("c"))
    stage.run(stage.ops.cancel(["b"]))
    answer, changed = stage.did(stage.ops.purge("sales"))
    assert answer == (2, 0, 0)
    assert changed["tombs:sales"] == {"b": ("1", None)}
    assert "gone" not in changed


def test_malformed_records_go_and_ids_without_one_do_not_count(stage: Stage) -> None:
    stage.enqueue(job("a"), job("b"))
    stage.client.hset(stage.key("jobs"), "a", "mine")
    stage.client.hdel(stage.key("jobs"), "b")
    assert stage.run(stage.ops.purge("sales")) == (1, 0, 0)
    assert "jobs" not in stage.world()


def test_a_queue_that_nobody_knows(stage: Stage) -> None:
    assert stage.did(stage.ops.purge("nowhere")) == ((0, 0, 0), {})


def test_a_thousand(stage: Stage) -> None:
    stage.enqueue(*(job(f"{n:04}") for n in range(1000)))
    stage.enqueue(*(job(f"x{n:03}", delay_ms=5) for n in range(500)))
    assert stage.run(stage.ops.purge("sales")) == (1000, 0, 500)
    assert stage.run(stage.ops.purge("sales")) == (0, 500, 0)


def test_asked_again_in_its_lane(stage: Stage) -> None:
    stage.enqueue(job("a"), job("b"))
    call = stage.ops.purge("sales", 1)
    assert stage.sent(call) == [1, 0, 1]
    before = stage.world()
    assert stage.sent(call) == [1, 0, 1]
    assert stage.world() == before


@pytest.mark.parametrize("key", ["ready:sales:0", "scheduled:sales", "tombs:sales"])
def test_a_key_of_a_foreign_type_refuses_all(stage: Stage, key: str) -> None:
    stage.enqueue(job("a"), job("b", delay_ms=5))
    stage.client.delete(stage.key(key))
    stage.client.set(stage.key(key), "mine")
    before = stage.world()
    with pytest.raises(RqjError, match="a key of the queue sales has a foreign type"):
        stage.run(stage.ops.purge("sales"))
    assert stage.world() == before


def test_tombs_are_not_left(stage: Stage) -> None:
    """What is left is jobs: whoever purges step by step goes on till none waits."""
    stage.enqueue(*(job(name) for name in "abcdef"))
    stage.run(stage.ops.cancel(["a", "b", "c", "e"]))
    assert stage.run(stage.ops.purge("sales", 1)) == (0, 0, 2)
    assert stage.run(stage.ops.purge("sales", 1)) == (0, 0, 2)
    assert stage.run(stage.ops.purge("sales", 2)) == (1, 0, 1)
    assert stage.run(stage.ops.purge("sales", 3)) == (1, 0, 0)
    assert {"ready:sales:0", "tombs:sales"}.isdisjoint(stage.world())


def test_where_only_tombs_are_left_the_list_goes(stage: Stage) -> None:
    stage.enqueue(*(job(name) for name in "abc"))
    stage.run(stage.ops.cancel(["b", "c"]))
    answer, changed = stage.did(stage.ops.purge("sales", 1))
    assert answer == (1, 0, 0)
    assert {"ready:sales:0", "tombs:sales"} <= set(changed)
    assert {"ready:sales:0", "tombs:sales"}.isdisjoint(stage.world())
