"""recover: by hand, or for a worker that is known to be dead, whether its lease is over or not."""

from tests.lua.stage import NONCE, Stage, job, locked, record, tries


def test_nothing_to_recover(stage: Stage) -> None:
    assert stage.did(stage.ops.recover(3)) == ((0, 0), {})
    stage.worker()
    assert stage.did(stage.ops.recover(3)) == ((0, 0), {})


def test_all_whose_lease_is_over_even_if_that_is_everybody(stage: Stage) -> None:
    stage.enqueue(job("a"), job("b"))
    stage.claim(worker="w1")
    stage.claim(worker="w2", nonce="m" * 11)
    stage.now_ms = 16_000
    answer, changed = stage.did(stage.ops.recover(3))
    assert answer == (2, 0)
    assert changed["workers"] == {"w1": (16_000, None), "w2": (16_000, None)}
    assert changed["ready:sales:0"] == (None, ["a", "b"])
    assert {"running:w1", "running:w2", "fallen", "worker:w1", "worker:w2"}.isdisjoint(stage.world())


def test_a_named_worker_whose_lease_is_running(stage: Stage) -> None:
    stage.enqueue(locked("a"), job("b"), job("c"))
    stage.claim(1, hand=1, worker="w1")
    stage.claim(worker="w2", nonce="m" * 11)
    answer, changed = stage.did(stage.ops.recover(3, ["w1"]))
    assert answer == (2, 0)
    why = "the worker w1 died while it ran this job"
    assert changed == {
        "workers": {"w1": (16_000, None)},
        "worker:w1": {"lease_ms": ("15000", None), "started_ms": ("1000", None)},
        "running:w1": {"a": (f"S1000000-{NONCE}", None), "b": (f"h1000001-{NONCE}", None)},
        "where": {"a": ("w1", None)},
        "jobs": {"a": (record(locked("a")), record(locked("a"), since_ms=1000))},
        "ready:sales:0": (None, ["b", "a"]),
        "tries": {"a": (None, tries(attempts=1, crashes=1, started_ms=1000, error=why))},
        "totals": {"crashed": (None, "1")},
    }


def test_a_worker_that_nobody_knows(stage: Stage) -> None:
    stage.worker("w1")
    assert stage.did(stage.ops.recover(3, ["nobody"])) == ((0, 0), {})


def test_a_thousand_jobs_take_more_than_one_call(stage: Stage) -> None:
    stage.enqueue(*(job(f"{n:04}") for n in range(1000)))
    stage.claim(1000)
    assert stage.run(stage.ops.recover(3, ["w1"])) == (500, 1)
    assert stage.run(stage.ops.turn("w1", NONCE, ["sales"], [], 9)).registered is False
    assert stage.run(stage.ops.recover(3, ["w1"])) == (500, 0)
    assert [one.id for one in stage.claim(1000, worker="w2")] == [f"{n:04}" for n in range(1000)]


def test_what_was_left_is_taken_up_without_a_name(stage: Stage) -> None:
    stage.enqueue(*(job(f"{n:04}") for n in range(600)))
    stage.claim(600)
    assert stage.run(stage.ops.recover(3, ["w1"])) == (500, 1)
    assert stage.run(stage.ops.recover(3)) == (100, 0)


def test_the_poison_is_buried(stage: Stage) -> None:
    stage.enqueue(job("a"))
    for number in range(1, 4):
        stage.claim(worker=f"w{number}")
        stage.run(stage.ops.recover(3, [f"w{number}"]))
    looked = stage.looked("a")
    assert (looked.state, looked.tries.reason, looked.tries.attempts, looked.tries.crashes) == (
        "dead",
        "crashed",
        3,
        3,
    )


def test_a_beat_after_it_is_told_lost_and_its_tokens_are_stale(stage: Stage) -> None:
    stage.enqueue(job("a"))
    claim = stage.claim()[0]
    stage.run(stage.ops.recover(3, ["w1"]))
    assert stage.run(stage.ops.heartbeat("w1", 15_000, 3, ["a"])).lost
    assert stage.settle("done", claim) == {"a": "stale"}


def test_a_malformed_record(stage: Stage) -> None:
    stage.enqueue(job("a"))
    stage.claim()
    stage.client.hset(stage.key("jobs"), "a", "mine")
    assert stage.run(stage.ops.recover(3, ["w1"])) == (1, 0)
    assert (stage.state("a"), stage.looked("a").tries.reason) == ("dead", "malformed")


def test_a_running_hash_of_a_foreign_type(stage: Stage) -> None:
    stage.worker()
    stage.client.set(stage.key("running:w1"), "mine")
    answer, changed = stage.did(stage.ops.recover(3, ["w1"]))
    assert (answer, changed["workers"]) == ((0, 0), {"w1": (16_000, None)})
    assert stage.world().keys() == {"running:w1", "changelog"}
