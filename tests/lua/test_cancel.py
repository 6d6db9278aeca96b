"""cancel: waiting jobs never start; every other one is answered with what it is."""

import pytest

from rqlite_jobs.errors import RqjError
from tests.lua.stage import Stage, job, locked, once, tries


def test_a_ready_job_gets_a_tomb(stage: Stage) -> None:
    stage.enqueue(locked("a", payload="x" * 3000), job("b"))
    stage.client.hset(stage.key("tries"), "a", tries(attempts=1))
    stage.client.hset(stage.key("errors"), "a", "tb")
    record = stage.world()["jobs"]["a"]
    answer, changed = stage.did(stage.ops.cancel(["a"]))
    assert answer == ["cancelled"]
    assert changed == {
        "jobs": {"a": (record, None)},
        "bodies": {"a": ("x" * 3000, None)},
        "tries": {"a": (tries(attempts=1), None)},
        "errors": {"a": ("tb", None)},
        "lock:k": ("d 0 a", None),
        "locks": {"k": (float("inf"), None)},
        "tombs:sales": {"a": (None, "1")},
        "gone": {"a": (None, "cancelled")},
        "left": (None, ["a"]),
        "totals": {"cancelled": (None, "1")},
    }
    assert (stage.state("a"), [one.id for one in stage.claim(5)]) == ("cancelled", ["b"])
    assert "tombs:sales" not in stage.world()


def test_a_list_of_nothing_but_tombs_goes_at_once(stage: Stage) -> None:
    stage.enqueue(job("a"), job("b"))
    stage.run(stage.ops.cancel(["b"]))
    _, changed = stage.did(stage.ops.cancel(["a"]))
    assert changed["ready:sales:0"] == (["b", "a"], None)
    assert changed["tombs:sales"] == {"b": ("1", None)}


def test_a_scheduled_job_leaves_its_place(stage: Stage) -> None:
    stage.enqueue(once("a", delay_ms=5000))
    answer, changed = stage.did(stage.ops.cancel(["a"]))
    assert answer == ["cancelled"]
    assert changed["scheduled:sales"] == {"a": (6000, None)}
    assert "tombs:sales" not in changed
    assert "lock:k" not in changed  # its time alone ends it


def test_what_is_not_waiting_is_told(stage: Stage) -> None:
    stage.finish(job("done"))
    stage.bury(job("dead"))
    stage.enqueue(job("running"), job("locked"))
    stage.claim(2)
    stage.enqueue(job("odd"))
    stage.client.hset(stage.key("jobs"), "odd", "mine")
    ids = ["done", "dead", "running", "locked", "odd", "nobody"]
    answer, changed = stage.did(stage.ops.cancel(ids))
    assert (answer, changed) == (["done", "dead", "running", "running", "malformed", "unknown"], {})


def test_twice_in_one_call_and_again_later(stage: Stage) -> None:
    stage.enqueue(job("a"), job("b"))
    assert stage.run(stage.ops.cancel(["a", "a", "b"])) == ["cancelled", "gone", "cancelled"]
    assert stage.did(stage.ops.cancel(["a"])) == (["gone"], {})


def test_words_about_the_gone_are_capped(stage: Stage) -> None:
    stage.set(done_max_count=2)
    stage.enqueue(job("a"), job("b"), job("c"))
    stage.run(stage.ops.cancel(["a", "b", "c"]))
    assert (stage.world()["left"], stage.world()["gone"]) == (
        ["c", "b"],
        {"b": "cancelled", "c": "cancelled"},
    )
    assert stage.state("a") == "unknown"


def test_the_lock_of_another_stays(stage: Stage) -> None:
    stage.enqueue(locked("a"))
    stage.client.set(stage.key("lock:k"), "d 0 z")
    assert "lock:k" not in stage.did(stage.ops.cancel(["a"]))[1]


def test_asked_again_in_its_lane(stage: Stage) -> None:
    stage.enqueue(job("a"), job("b"))
    call = stage.ops.cancel(["a", "nobody"])
    first = stage.sent(call)
    before = stage.world()
    assert stage.sent(call) == first == [b"cancelled", b"unknown"]
    assert stage.world() == before
    assert stage.sent(call, nonce="m" * 11) == [b"gone", b"unknown"]


def test_a_thousand(stage: Stage) -> None:
    ids = [f"{n:04}" for n in range(1000)]
    stage.enqueue(*map(job, ids))
    assert stage.run(stage.ops.cancel(ids)) == ["cancelled"] * 1000
    assert stage.world().keys() >= {"gone", "left"}
    assert {"jobs", "ready:sales:0", "tombs:sales"}.isdisjoint(stage.world())


@pytest.mark.parametrize("key", ["ready:bad:0", "tombs:bad"])
def test_a_queue_of_a_foreign_type_spoils_nothing(stage: Stage, key: str) -> None:
    stage.enqueue(job("a", "bad"), job("b"), job("c", delay_ms=5))
    stage.client.delete(stage.key(key))
    stage.client.set(stage.key(key), "mine")
    assert stage.run(stage.ops.cancel(["b", "a", "c"])) == ["cancelled", "unsound", "cancelled"]
    assert list(stage.world()["jobs"]) == ["a"]


def test_a_schedule_of_a_foreign_type_spoils_nothing(stage: Stage) -> None:
    stage.enqueue(job("a", "bad", delay_ms=5), job("b"))
    stage.client.set(stage.key("scheduled:bad"), "mine")
    assert stage.run(stage.ops.cancel(["b", "a"]))[0] == "cancelled"
    assert stage.world()["scheduled:bad"] == "mine"


@pytest.mark.parametrize("key", ["gone", "left"])
def test_a_foreign_key_where_its_word_goes_stops_it_before_its_first_write(stage: Stage, key: str) -> None:
    stage.enqueue(job("a"), job("b"))
    stage.client.set(stage.key(key), "mine")
    before = stage.world()
    with pytest.raises(RqjError):
        stage.run(stage.ops.cancel(["a", "nobody's"]))
    assert stage.world() == before
