"""leave: a worker goes in good order."""

import pytest

from tests.lua.stage import NONCE, Stage, job, locked


def test_a_worker_that_holds_nothing(stage: Stage) -> None:
    stage.worker()
    answer, changed = stage.did(stage.ops.leave("w1", ["sales"]))
    assert (answer, stage.world()) == ((0, 0), {})
    assert set(changed) == {"workers", "worker:w1"}


def test_what_it_holds_goes_back_uncounted(stage: Stage) -> None:
    stage.enqueue(locked("a"), job("b"), job("c"))
    stage.claim(2)
    answer, changed = stage.did(stage.ops.leave("w1", []))
    assert answer == (2, 0)
    assert changed == {
        "workers": {"w1": (16_000, None)},
        "worker:w1": {"lease_ms": ("15000", None), "started_ms": ("1000", None)},
        "running:w1": {"a": (f"S1000000-{NONCE}", None), "b": (f"s1000001-{NONCE}", None)},
        "where": {"a": ("w1", None)},
        "ready:sales:0": (["c"], ["c", "b", "a"]),
    }


def test_a_token_it_may_have_taken_along_is_left_where_there_is_work(stage: Stage) -> None:
    stage.enqueue(job("a"), job("b", "mail", delay_ms=5000), job("c", "other"))
    stage.worker()
    stage.client.delete(*(stage.key(f"wake:{queue}") for queue in ("sales", "mail", "other")))
    _, changed = stage.did(stage.ops.leave("w1", ["sales", "mail", "empty"]))
    assert {key for key in changed if key.startswith("wake:")} == {"wake:sales", "wake:mail"}


def test_a_thousand_jobs_take_more_than_one_call(stage: Stage) -> None:
    stage.enqueue(*(job(f"{n:03}") for n in range(700)))
    stage.claim(700)
    assert stage.run(stage.ops.leave("w1", [])) == (500, 200)
    assert "fallen" not in stage.world(), "whoever beats now must not count the rest as crashes"
    assert list(stage.world()["workers"]) == ["w1"]
    assert stage.run(stage.ops.leave("w1", [])) == (200, 0)
    assert {"fallen", "running:w1", "worker:w1", "workers", "tries"}.isdisjoint(stage.world())


def test_one_that_is_gone_already(stage: Stage) -> None:
    assert stage.did(stage.ops.leave("nobody", ["sales"])) == ((0, 0), {})


@pytest.mark.parametrize("key", ["ready:sales:0", "scheduled:sales", "wake:sales"])
def test_a_queue_of_a_foreign_type(stage: Stage, key: str) -> None:
    stage.worker()
    stage.client.set(stage.key(key), "mine")
    stage.run(stage.ops.leave("w1", ["sales"]))
    assert stage.world()[key] == "mine"


def test_a_malformed_record(stage: Stage) -> None:
    stage.enqueue(job("a"))
    stage.claim()
    stage.client.hset(stage.key("jobs"), "a", "mine")
    assert stage.run(stage.ops.leave("w1", [])) == (1, 0)
    assert (stage.state("a"), stage.looked("a").tries.attempts) == ("dead", 0)
