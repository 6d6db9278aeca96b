"""heartbeat: the lease is renewed, the dead are recovered, what nobody heard of goes back, old things are swept."""

import pytest

from rqlite_jobs.answers import Beat
from tests.lua.stage import (
    FOREIGN_QUEUE,
    LEASE_MS,
    NONCE,
    UNREADABLE,
    Stage,
    job,
    locked,
    once,
    record,
    tries,
)

DAY_MS = 86_400_000


def beat(stage: Stage, *held: str, worker: str = "w1", max_crashes: int = 3):  # type: ignore[no-untyped-def]
    return stage.did(stage.ops.heartbeat(worker, LEASE_MS, max_crashes, held))


def test_a_lone_worker(stage: Stage) -> None:
    stage.enqueue(job("a"))
    stage.worker()
    stage.now_ms = 6000
    answer, changed = beat(stage)
    assert answer == Beat(False, 6000, 0, 0, ("sales",))
    assert changed == {"workers": {"w1": (16_000, 21_000)}}


def test_a_worker_without_a_lease_is_lost(stage: Stage) -> None:
    stage.worker("w2")
    stage.now_ms = 50_000
    answer, changed = beat(stage)
    assert (answer, changed) == (Beat(True, 50_000, 0, 0, ()), {})


def test_it_tells_when_the_earliest_other_lease_ends(stage: Stage) -> None:
    for at_ms, worker in ((1000, "w1"), (3000, "w2"), (2000, "w3")):
        stage.now_ms = at_ms
        stage.worker(worker)
    stage.now_ms = 4000
    assert beat(stage)[0].next_end_ms == 17_000
    assert beat(stage, worker="w3")[0].next_end_ms == 18_000


def test_a_dead_worker_is_recovered(stage: Stage) -> None:
    stage.enqueue(locked("a"), job("b"), job("c"), job("d"))
    stage.claim(2, worker="w2")
    stage.client.delete(stage.key("wake:sales"))
    stage.now_ms = 10_000
    stage.worker("w1")
    stage.now_ms = 16_000
    answer, changed = beat(stage)
    assert (answer.recovered, answer.next_end_ms) == (2, 0)
    why = "the worker w2 died while it ran this job"
    once_crashed = tries(attempts=1, crashes=1, started_ms=1000, error=why)
    assert changed == {
        "workers": {"w1": (25_000, 31_000), "w2": (16_000, None)},
        "worker:w2": {"lease_ms": ("15000", None), "started_ms": ("1000", None)},
        "running:w2": {"a": (f"S1000000-{NONCE}", None), "b": (f"s1000001-{NONCE}", None)},
        "where": {"a": ("w2", None)},
        "jobs": {
            "a": (record(locked("a")), record(locked("a"), since_ms=16_000)),
            "b": (record(job("b")), record(job("b"), since_ms=16_000)),
        },
        "ready:sales:0": (["d", "c"], ["d", "c", "b", "a"]),  # to the head, in the order they were claimed
        "tries": {"a": (None, once_crashed), "b": (None, once_crashed)},
        "totals": {"crashed": (None, "2")},
        "wake:sales": (None, ["1"]),
    }
    assert stage.world()["lock:k"] == "d 0 a"


def test_what_lay_in_the_hand_counts_no_crash(stage: Stage) -> None:
    stage.enqueue(job("a"), locked("b"))
    stage.claim(1, hand=1, worker="w2")
    stage.now_ms = 10_000
    stage.worker("w1")
    stage.now_ms = 16_000
    _, changed = beat(stage)
    assert set(changed["tries"]) == {"a"}
    assert changed["ready:sales:0"] == (None, ["b", "a"])
    assert "where" in changed


def test_a_server_that_was_away_recovers_nothing(stage: Stage) -> None:
    stage.enqueue(job("a"))
    stage.claim(worker="w2")
    stage.worker("w1")
    stage.now_ms = 60_000
    answer, changed = beat(stage)
    assert answer.recovered == 0
    assert changed == {"workers": {"w1": (16_000, 75_000), "w2": (16_000, 75_000)}}
    stage.now_ms = 74_999
    assert beat(stage)[0].recovered == 0
    stage.now_ms = 75_000
    assert beat(stage)[0].recovered == 1


def test_after_too_many_crashes_it_is_buried(stage: Stage) -> None:
    stage.enqueue(locked("a"))
    stage.client.hset(stage.key("tries"), "a", tries(attempts=3, crashes=2, error="old"))
    stage.claim(worker="w2")
    stage.now_ms = 10_000
    stage.worker("w1")
    stage.now_ms = 16_000
    answer, changed = beat(stage)
    assert answer.recovered == 1
    assert changed["dead"] == (None, ["a"])
    assert changed["lock:k"] == ("d 0 a", None)
    why = "crashed 3 times, the last time with the worker w2"
    found = tries(attempts=4, crashes=3, died_ms=16_000, started_ms=1000, reason="crashed", error=why)
    assert changed["tries"]["a"][1] == found
    assert changed["totals"] == {"crashed": (None, "1"), "died": (None, "1")}
    assert "ready:sales:0" not in changed


def test_at_most_500_jobs_a_beat(stage: Stage) -> None:
    stage.enqueue(*(job(f"{n:03}") for n in range(700)))
    stage.claim(400, worker="w2")
    stage.claim(300, worker="w3", nonce="m" * 11)
    stage.now_ms = 10_000
    stage.worker("w1")
    stage.now_ms = 16_000
    assert beat(stage)[0].recovered == 500
    after = stage.world()
    assert list(after["fallen"]) == ["w3"]
    assert len(after["running:w3"]) == 200
    assert beat(stage)[0].recovered == 200
    assert {"fallen", "running:w3", "worker:w3"}.isdisjoint(stage.world())
    assert [one.id for one in stage.claim(400)] == [f"{n:03}" for n in (*range(400, 700), *range(100))]


def test_a_claim_that_nobody_heard_of_goes_back_uncounted_after_a_lease(stage: Stage) -> None:
    stage.enqueue(locked("a"), job("b"), job("c"))
    stage.claim(2)
    stage.now_ms = 16_000
    stage.worker()  # its lease is running
    assert set(beat(stage, "b")[1]) <= {"workers"}
    stage.now_ms = 16_001
    answer, changed = beat(stage, "b")
    assert answer.recovered == 0
    assert changed == {
        "workers": {"w1": (31_000, 31_001)},
        "running:w1": {"a": (f"S1000000-{NONCE}", None)},
        "where": {"a": ("w1", None)},
        "ready:sales:0": (["c"], ["c", "a"]),
    }


def test_old_dead_and_rejected_jobs_are_swept(stage: Stage) -> None:
    stage.bury(job("a"), locked("b"))
    stage.enqueue(locked("c"))
    stage.enqueue(locked("d", on_conflict="reject"))
    stage.now_ms = 1000 + 180 * DAY_MS - 1
    stage.worker("w1")
    stage.run(stage.ops.heartbeat("w1", LEASE_MS, 3, ["c"]))
    assert (stage.world()["dead"], stage.world()["rejected"]) == (["b", "a"], ["d"])
    stage.now_ms += 1
    _, changed = beat(stage, "c")
    assert (changed["dead"], changed["rejected"]) == ((["b", "a"], None), (["d"], None))
    assert changed["totals"] == {"deleted": (None, "3"), "minute": (None, str(180 * 1440))}
    assert set(stage.world()["jobs"]) == {"c"}


def test_more_dead_than_are_kept(stage: Stage) -> None:
    stage.bury(*(job(f"{n:03}") for n in range(40)))
    stage.set(dead_max_count=5)
    _, changed = beat(stage)
    assert changed["dead"][1] == [f"{n:03}" for n in range(39, 34, -1)]
    assert len(stage.world()["jobs"]) == len(stage.world()["tries"]) == 5


def test_at_most_a_hundred_old_ones_a_beat(stage: Stage) -> None:
    stage.enqueue(*(job(f"{n:03}") for n in range(150)))
    stage.run(stage.ops.bury([f"{n:03}" for n in range(150)], "why"))
    stage.now_ms = 1000 + 180 * DAY_MS
    stage.worker()
    beat(stage)
    assert len(stage.world()["dead"]) == 50


def test_locks_whose_time_is_over_are_swept(stage: Stage) -> None:
    stage.enqueue(*(once(f"{n:03}", f"k{n:03}", ttl_ms=500 + n) for n in range(150)))
    stage.enqueue(locked("z"))
    stage.now_ms = 1000 + 500 + 119
    stage.worker()
    beat(stage)
    assert len(stage.world()["locks"]) == 51
    beat(stage)
    after = stage.world()
    assert sorted(after["locks"]) == ["k", *(f"k{n:03}" for n in range(120, 150))]
    assert len([key for key in after if key.startswith("lock:")]) == 31


def test_a_lost_record_and_a_malformed_one(stage: Stage) -> None:
    stage.enqueue(job("a"), job("b"))
    stage.claim(2, worker="w2")
    stage.client.hdel(stage.key("jobs"), "a")
    stage.client.hset(stage.key("jobs"), "b", "mine")
    stage.now_ms = 10_000
    stage.worker("w1")
    stage.now_ms = 16_000
    answer, changed = beat(stage)
    assert answer.recovered == 2
    assert changed["dead"] == (None, ["a", "b"])
    found = tries(
        attempts=1, crashes=1, died_ms=16_000, started_ms=1000, reason="malformed", error=UNREADABLE
    )
    assert changed["tries"] == {"a": (None, found), "b": (None, found)}


@pytest.mark.parametrize("key", ["ready:sales:0", "scheduled:sales"])
def test_a_queue_of_a_foreign_type(stage: Stage, key: str) -> None:
    stage.enqueue(job("a"))
    stage.claim(worker="w2")
    stage.client.set(stage.key(key), "mine")
    stage.now_ms = 10_000
    stage.worker("w1")
    stage.now_ms = 16_000
    assert beat(stage)[0].recovered == 1
    assert (stage.state("a"), stage.looked("a").tries.error) == ("dead", FOREIGN_QUEUE)


def test_other_foreign_types(stage: Stage) -> None:
    stage.now_ms = -1
    stage.enqueue(locked("a"))
    stage.claim(worker="w2")
    stage.client.delete(stage.key("lock:k"), stage.key("worker:w2"))
    stage.client.rpush(stage.key("lock:k"), "mine")
    stage.client.set(stage.key("worker:w2"), "mine")
    stage.client.set(stage.key("running:w3"), "mine")
    stage.client.zadd(stage.key("workers"), {"w2": 1, "w3": 1})
    stage.worker("w1")
    stage.client.zadd(stage.key("workers"), {"w2": 1, "w3": 1})
    answer, _ = beat(stage)
    assert answer.recovered == 1
    assert stage.state("a") == "ready"
    after = stage.world()
    assert set(after["workers"]) == {"w1"}
    assert (after["lock:k"], after["running:w3"]) == (["mine"], "mine")
    assert "fallen" not in after
