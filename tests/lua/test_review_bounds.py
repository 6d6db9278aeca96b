"""Bounds that were lowered, a foreign fence, an id twice: no script is endless, and none loses or doubles a job."""

import pytest

from rqlite_jobs.errors import RqjError, ScriptFailed
from rqlite_jobs.operations import Settlement
from tests.lua.stage import LEASE_MS, NONCE, Stage, job, locked


def test_a_lowered_bound_of_the_done_is_reached_in_steps(stage: Stage) -> None:
    """Else the first turn after a change of the setting would drop them all in one script."""
    ids = [f"{n:04}" for n in range(1500)]
    stage.enqueue(*map(job, ids))
    stage.set(done_max_count=2000)
    for claim in stage.claim(1500):
        stage.client.hset(stage.key("ends"), claim.id, "1000 1000")
        stage.client.lpush(stage.key("done"), claim.id)
        stage.client.hdel(stage.key("running:w1"), claim.id)
    stage.set(done_max_count=10)
    left = []
    for name in ("x", "y"):
        stage.finish(job(name))
        left.append(stage.client.llen(stage.key("done")))
        assert stage.client.hlen(stage.key("ends")) == stage.client.hlen(stage.key("jobs")) == left[-1]
    assert left == [500, 10]


def test_a_lowered_bound_of_the_gone_is_reached_in_steps(stage: Stage) -> None:
    stage.set(done_max_count=2000)
    for first in (0, 750):
        ids = [f"{n:04}" for n in range(first, first + 750)]
        stage.enqueue(*map(job, ids))
        stage.run(stage.ops.cancel(ids))
    stage.set(done_max_count=10)
    left = []
    for name in ("x", "y"):
        stage.enqueue(job(name))
        stage.run(stage.ops.cancel([name]))
        left.append(stage.client.llen(stage.key("left")))
        assert stage.client.hlen(stage.key("gone")) == left[-1]
    assert left == [500, 10]


def test_a_fence_of_a_foreign_type_loses_no_job(stage: Stage) -> None:
    stage.enqueue(job("a"), job("b"))
    stage.client.lpush(stage.key("fence"), "mine")
    assert [one.id for one in stage.claim(2)] == ["a", "b"]
    assert stage.client.type(stage.key("fence")) == b"string"


def test_one_id_twice_in_a_request_is_refused_whole(stage: Stage) -> None:
    """It would have one record and two places, and run twice."""
    stage.enqueue(job("x"))
    before = stage.world()
    with pytest.raises(RqjError, match="two jobs have the id a"):
        stage.enqueue(job("a"), locked("b"), job("a"))
    assert stage.world() == before


@pytest.mark.parametrize("name", ["running:w1", "where"])
def test_a_claim_stops_before_a_key_of_a_foreign_type(stage: Stage, name: str) -> None:
    """It came to that when the jobs were out of their list, and nobody had them."""
    stage.enqueue(job("a"), locked("b"))
    stage.worker()
    stage.client.lpush(stage.key(name), "mine")
    before = stage.world()
    with pytest.raises(ScriptFailed):
        stage.claim(2)
    assert stage.world() == before
    stage.client.delete(stage.key(name))
    assert [one.id for one in stage.claim(2)] == ["a", "b"]


@pytest.mark.parametrize("name", ["done", "ends"])
def test_a_settlement_stops_before_a_key_of_a_foreign_type(stage: Stage, name: str) -> None:
    stage.enqueue(locked("a"))
    (claim,) = stage.claim()
    stage.client.set(stage.key(name), "mine")
    before = stage.world()
    with pytest.raises(ScriptFailed):
        stage.settle("done", claim)
    assert stage.world() == before
    stage.client.delete(stage.key(name))
    assert stage.settle("done", claim) == {}
    assert stage.state("a") == "done"


@pytest.mark.parametrize("ttl_ms", [None, 0, 2000])
@pytest.mark.parametrize("name", ["done", "ends", "kept", "results"])
def test_a_settlement_with_a_result_stops_there_too(stage: Stage, name: str, ttl_ms: int | None) -> None:
    """Before the first write for all of the turn: what is done without a result is not settled either."""
    stage.enqueue(locked("a"), job("b"), job("c"))
    a, b, _ = stage.claim(3)
    settlements = [
        Settlement("done", b.id, b.token),
        Settlement("returned", a.id, a.token, result=b"7", ttl_ms=ttl_ms),
    ]
    stage.client.set(stage.key(name), "mine")
    before = stage.world()
    with pytest.raises(ScriptFailed):
        stage.run(stage.ops.turn("w1", NONCE, [], settlements, 0))
    assert stage.world() == before
    stage.client.delete(stage.key(name))
    assert stage.run(stage.ops.turn("w1", NONCE, [], settlements, 0)).refused == {}
    assert (stage.state("a"), stage.state("b")) == ("done", "done")


@pytest.mark.parametrize("name", ["waiters", "answers:p"])
def test_a_key_of_a_foreign_type_in_the_way_of_an_answer_stops_no_end(stage: Stage, name: str) -> None:
    stage.enqueue(job("a"), locked("b"), job("c"), locked("d"))
    for id in "abcd":
        stage.run(stage.ops.wait("p", 1, id))
    stage.client.delete(stage.key(name))
    stage.client.set(stage.key(name), "mine")
    a, b = stage.claim(2)
    assert stage.settle("returned", a, result=b"7") == {}
    assert stage.settle("bury", b, reason="failed") == {}
    assert stage.run(stage.ops.cancel(["c"])) == ["cancelled"]
    stage.run(stage.ops.purge("sales"))
    assert [stage.state(id) for id in "abcd"] == ["done", "dead", "cancelled", "unknown"]
    assert stage.client.get(stage.key(name)) == b"mine"


def test_a_beat_drops_results_whose_time_is_over_a_hundred_a_call(stage: Stage) -> None:
    """Else what was kept by the last job with a result_ttl stayed for ever."""
    for number in range(105):
        stage.enqueue(job(f"j{number:03}"))
        (claim,) = stage.claim()
        stage.settle("returned", claim, result=b"7", ttl_ms=5000)
    stage.enqueue(job("ever"))
    stage.settle("returned", *stage.claim(), result=b"7", ttl_ms=-1)
    stage.now_ms += 5000
    counts = []
    for _ in range(3):
        stage.run(stage.ops.heartbeat("w1", LEASE_MS, 1, []))
        counts.append([stage.client.hlen(stage.key(name)) for name in ("jobs", "ends", "results")])
    assert counts == [[6] * 3, [1] * 3, [1] * 3]
    assert stage.world()["kept"] == {"ever": float("inf")}


def test_a_beat_goes_on_where_a_foreign_key_stands_for_what_is_kept(stage: Stage) -> None:
    stage.worker()
    stage.client.set(stage.key("kept"), "mine")
    assert not stage.run(stage.ops.heartbeat("w1", LEASE_MS, 1, [])).lost


def test_delete_stops_before_it_takes_a_finished_job_out(stage: Stage) -> None:
    stage.finish(job("a"))
    stage.client.set(stage.key("results"), "mine")
    before = stage.world()
    with pytest.raises(ScriptFailed):
        stage.run(stage.ops.delete(["a"]))
    assert stage.world() == before
    stage.client.delete(stage.key("results"))
    assert stage.run(stage.ops.delete(["a"])) == ["deleted"]
