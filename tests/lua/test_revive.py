"""revive: dead jobs come back with attempts beginning at 0, unless another job holds their lock by now."""

import pytest

from tests.lua.stage import Stage, job, locked, once, record, tries


def test_a_dead_job(stage: Stage) -> None:
    stage.bury(locked("a"))
    stage.enqueue(job("b"))
    stage.client.delete(stage.key("wake:sales"))
    answer, changed = stage.did(stage.ops.revive(["a"]))
    assert answer == [("revived", "")]
    died = tries(attempts=1, died_ms=1000, started_ms=1000, reason="failed", error="ValueError('bad')")
    assert changed == {
        "dead": (["a"], None),
        "jobs": {"a": (record(locked("a")), record(locked("a"), since_ms=1000))},
        "tries": {"a": (died, None)},
        "errors": {"a": ("at x", None)},
        "ready:sales:0": (["b"], ["a", "b"]),  # behind the others
        "lock:k": (None, "d 0 a"),
        "locks": {"k": (None, float("inf"))},
        "wake:sales": (None, ["1"]),
    }
    assert [(one.id, one.attempts) for one in stage.claim(5)] == [("b", 0), ("a", 0)]


def test_its_lock_is_held_by_another_now(stage: Stage) -> None:
    stage.bury(locked("a"))
    stage.enqueue(locked("b"))
    assert stage.did(stage.ops.revive(["a"])) == ([("duplicate", "b")], {})
    assert stage.state("a") == "dead"


def test_of_two_with_one_lock_the_first_wins(stage: Stage) -> None:
    stage.bury(locked("a"), locked("b"))
    assert stage.run(stage.ops.revive(["b", "a"])) == [("revived", ""), ("duplicate", "b")]
    assert (stage.world()["dead"], stage.world()["lock:k"]) == (["a"], "d 0 b")


def test_a_rejected_one(stage: Stage) -> None:
    stage.enqueue(locked("a"))
    stage.enqueue(locked("b", on_conflict="reject"))
    assert stage.run(stage.ops.revive(["b"])) == [("duplicate", "a")]
    stage.settle("done", stage.claim()[0])
    answer, changed = stage.did(stage.ops.revive(["b"]))
    assert (answer, changed["rejected"], changed["lock:k"]) == (
        [("revived", "")],
        (["b"], None),
        (None, "d 0 b"),
    )


def test_its_own_until_expired_is_kept_as_it_is(stage: Stage) -> None:
    stage.bury(once("a"))
    stage.now_ms = 2000
    answer, changed = stage.did(stage.ops.revive(["a"]))
    assert answer == [("revived", "")]
    assert {"lock:k", "locks"}.isdisjoint(changed)


def test_an_until_expired_that_is_over_is_taken_anew(stage: Stage) -> None:
    stage.bury(once("a", ttl_ms=500))
    stage.now_ms = 2000
    _, changed = stage.did(stage.ops.revive(["a"]))
    assert changed["lock:k"] == ("e 1500 a", "e 2500 a")


def test_a_lock_with_a_ttl_gets_all_of_it_again(stage: Stage) -> None:
    stage.bury(locked("a", ttl_ms=500))
    stage.now_ms = 9000
    assert stage.did(stage.ops.revive(["a"]))[1]["lock:k"] == (None, "d 9500 a")


def test_what_is_not_dead_is_told(stage: Stage) -> None:
    stage.finish(job("done"))
    stage.enqueue(job("running"), job("gone"))
    stage.claim()
    stage.run(stage.ops.cancel(["gone"]))
    stage.enqueue(job("ready"), job("scheduled", delay_ms=5))
    ids = ["done", "running", "gone", "ready", "scheduled", "nobody"]
    answer, changed = stage.did(stage.ops.revive(ids))
    assert [word for word, _ in answer] == ["done", "running", "cancelled", "ready", "scheduled", "unknown"]
    assert changed == {}


def test_named_twice_it_is_ready_the_second_time(stage: Stage) -> None:
    stage.bury(job("a"))
    assert stage.run(stage.ops.revive(["a", "a"])) == [("revived", ""), ("ready", "")]
    assert stage.world()["ready:sales:0"] == ["a"]


def test_a_malformed_one_stays_dead(stage: Stage) -> None:
    stage.bury(job("a"))
    stage.client.hset(stage.key("jobs"), "a", "mine")
    assert stage.did(stage.ops.revive(["a"])) == ([("malformed", "")], {})


@pytest.mark.parametrize("key", ["ready:bad:0", "scheduled:bad"])
def test_a_queue_of_a_foreign_type_spoils_nothing(stage: Stage, key: str) -> None:
    stage.bury(job("a", "bad"), job("b"))
    stage.client.set(stage.key(key), "mine")
    assert stage.run(stage.ops.revive(["b", "a"])) == [("revived", ""), ("unsound", "")]
    assert (stage.state("a"), stage.state("b")) == ("dead", "ready")


def test_a_lock_of_a_foreign_type_is_taken(stage: Stage) -> None:
    stage.bury(job("b"), locked("a"))
    stage.client.rpush(stage.key("lock:k"), "mine")
    assert stage.run(stage.ops.revive(["b", "a"])) == [("revived", ""), ("revived", "")]
    assert stage.world()["lock:k"] == "d 0 a"


def test_asked_again_in_its_lane(stage: Stage) -> None:
    stage.bury(locked("a"))
    call = stage.ops.revive(["a", "nobody"])
    first = stage.sent(call)
    before = stage.world()
    assert stage.sent(call) == first == [[b"revived", b""], [b"unknown", b""]]
    assert stage.world() == before


def test_one_buried_by_hand_gets_its_place_in_the_list_back(stage: Stage) -> None:
    stage.enqueue(job("a"), job("b"))
    stage.run(stage.ops.bury(["a"], "why"))
    stage.client.delete(stage.key("wake:sales"))
    answer, changed = stage.did(stage.ops.revive(["a"]))
    assert answer == [("revived", "")]
    assert set(changed) == {"dead", "jobs", "tries", "tombs:sales", "wake:sales"}
    assert [one.id for one in stage.claim(5)] == ["a", "b"]


def test_one_buried_by_hand_whose_tomb_is_gone_goes_behind_the_others(stage: Stage) -> None:
    stage.enqueue(job("a"), job("b"))
    stage.run(stage.ops.bury(["a"], "why"))
    stage.settle("back", stage.claim()[0])  # the claim dropped tomb and entry
    stage.run(stage.ops.revive(["a"]))
    assert [one.id for one in stage.claim(5)] == ["b", "a"]


def test_tombs_of_a_foreign_type_spoil_nothing(stage: Stage) -> None:
    stage.bury(job("a"))
    stage.client.set(stage.key("tombs:sales"), "mine")
    assert stage.did(stage.ops.revive(["a"])) == ([("unsound", "")], {})
