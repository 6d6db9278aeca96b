"""Bounds that were lowered, a foreign fence, an id twice: no script is endless, and none loses or doubles a job."""

import pytest

from rqlite_jobs.errors import RqjError, ScriptFailed
from tests.lua.stage import Stage, job, locked


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
