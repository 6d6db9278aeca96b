"""Somebody else's key where one of ours should be: a script of many writes does all of them, or none."""

from collections.abc import Callable
from typing import Any

import pytest

from rqlite_jobs.errors import RqjError
from rqlite_jobs.operations import Call, Operations
from rqlite_jobs.script import script
from tests.lua.stage import Stage, job, locked, own

ACTS: dict[str, Callable[[Operations], Call[Any]]] = {
    "cancel": lambda ops: ops.cancel(["l", "a", "nobody", "s", "c"]),
    "delete": lambda ops: ops.delete(["l", "a", "nobody", "s", "dead", "done", "c"]),
    "bury": lambda ops: ops.bury(["l", "a", "nobody", "s", "c"], "why"),
    "revive": lambda ops: ops.revive(["deadk", "dead", "nobody", "a"]),
    "retry": lambda ops: ops.retry(["failed", "nobody", "a"]),
    "release": lambda ops: ops.release(["k", "kk", "nobody"], force=True),
    "purge": lambda ops: ops.purge("sales"),
    "pause": lambda ops: ops.pause("sales", 5, "ann"),
    "enqueue": lambda ops: ops.enqueue(
        [job("d", delay_ms=9), locked("m", "new"), own("c"), own("e"), locked("n", on_conflict="reject")]
    ),
}
KEYS = [
    (verb, binding.removesuffix("_key"))
    for verb in ACTS
    for binding in script(verb).bindings
    if binding.endswith("_key")
]


@pytest.mark.parametrize(("verb", "key"), KEYS, ids=[f"{verb}-{key}" for verb, key in KEYS])
def test_all_or_nothing(stage: Stage, verb: str, key: str) -> None:
    stage.bury(job("dead"))
    stage.bury(locked("deadk", "kk"))
    stage.finish(job("done"))
    stage.enqueue(job("failed", "mail"))
    (claim,) = stage.claim(1, queue="mail")
    stage.settle("retry", claim, delay_ms=5000, error="e")
    stage.enqueue(
        own("a"), locked("l"), job("b"), job("s", delay_ms=5), own("e", expires_ms=1), own("c"), job("z")
    )
    stage.run(stage.ops.cancel(["c"]))
    stage.now_ms += 2
    stage.client.delete(stage.key(key))
    stage.client.set(stage.key(key), "mine")
    before = stage.world()
    try:
        stage.run(ACTS[verb](stage.ops))
    except RqjError:
        assert stage.world() == before
    else:
        assert stage.world() != before


WRITTEN = ("dead", "tries", "errors", "where", "bodies", "totals", "locks")


def plant(stage: Stage, key: str) -> None:
    """Put somebody else's key in the place of one of ours."""
    stage.client.delete(stage.key(key))
    stage.client.set(stage.key(key), "mine")


@pytest.mark.parametrize("key", WRITTEN)
@pytest.mark.parametrize("word", ["done", "retry", "bury", "snooze", "putoff", "back"])
def test_a_settlement_leaves_no_job_in_no_place(stage: Stage, word: str, key: str) -> None:
    stage.enqueue(locked("a"))
    (claim,) = stage.claim()
    plant(stage, key)
    before = stage.world()
    with pytest.raises(RqjError):
        stage.settle(word, claim, delay_ms=5, error="e", traceback="t")
    assert stage.world() == before


@pytest.mark.parametrize("key", WRITTEN)
def test_a_claim_that_meets_an_expired_job_leaves_its_neighbours_where_they_are(
    stage: Stage, key: str
) -> None:
    stage.enqueue(job("b"), locked("e", expires_ms=1), job("c"))
    stage.worker()
    stage.now_ms += 1
    plant(stage, key)
    before = stage.world()
    with pytest.raises(RqjError):
        stage.run(stage.ops.turn("w1", "n" * 11, ["sales"], [], 9))
    assert stage.world() == before


@pytest.mark.parametrize("key", WRITTEN)
def test_what_a_dead_worker_held_is_not_lost(stage: Stage, key: str) -> None:
    stage.enqueue(locked("a"), job("b"))
    stage.claim(2)
    plant(stage, key)
    before = stage.world()["running:w1"]
    with pytest.raises(RqjError):
        stage.run(stage.ops.recover(3, ["w1"]))
    assert stage.world()["running:w1"] == before
