"""page: the jobs in one place, a portion at a time."""

import pytest

from rqlite_jobs.errors import RqjError, ScriptFailed
from tests.lua.stage import Stage, job, locked


def ids(
    stage: Stage, state: str, queue: str = "", offset: int = 0, limit: int = 10
) -> tuple[list[str], bool]:
    found, changed = stage.did(stage.ops.page(state, queue, offset, limit))
    assert changed == {}
    assert {one.state for one in found.jobs} <= {"dead" if state == "rejected" else state}
    return [one.id for one in found.jobs], found.more


@pytest.mark.parametrize("state", ["ready", "scheduled"])
def test_what_waits_the_next_one_first(stage: Stage, state: str) -> None:
    delays = {name: 10 + n if state == "scheduled" else None for n, name in enumerate("abcde")}
    stage.enqueue(*(job(name, delay_ms=delay) for name, delay in delays.items()), job("m", "mail"))
    assert ids(stage, state, "sales") == (list("abcde"), False)
    assert ids(stage, state, "sales", 0, 5) == (list("abcde"), False)
    assert ids(stage, state, "sales", 0, 2) == (list("ab"), True)
    assert ids(stage, state, "sales", 2, 2) == (list("cd"), True)
    assert ids(stage, state, "sales", 4, 2) == (list("e"), False)
    assert ids(stage, state, "sales", 6, 2) == ([], False)
    assert ids(stage, state, "nowhere") == ([], False)


@pytest.mark.parametrize("state", ["dead", "done", "rejected"])
def test_what_ended_the_newest_first(stage: Stage, state: str) -> None:
    if state == "rejected":
        stage.enqueue(locked("a"))
        stage.enqueue(*(locked(name, on_conflict="reject") for name in "bcde"))
    else:
        {"dead": stage.bury, "done": stage.finish}[state](*(job(name) for name in "bcde"))
    assert ids(stage, state) == (list("edcb"), False)
    assert ids(stage, state, "", 1, 2) == (list("dc"), True)
    assert ids(stage, state, "", 3, 2) == (list("b"), False)


def test_what_runs(stage: Stage) -> None:
    stage.enqueue(*(job(name) for name in "abcde"))
    stage.claim(2, worker="w1")
    stage.claim(2, worker="w2", nonce="m" * 11)
    stage.client.zrem(stage.key("workers"), "w2")
    stage.client.zadd(stage.key("fallen"), {"w2": 1})
    everything, more = ids(stage, "running")
    assert (sorted(everything), more) == (list("abcd"), False)
    assert ids(stage, "running", "", 0, 3) == (everything[:3], True)
    assert ids(stage, "running", "", 3, 3) == (everything[3:], False)


def test_tombs_are_left_out(stage: Stage) -> None:
    stage.enqueue(*(job(name) for name in "abcde"))
    stage.run(stage.ops.cancel(["b", "d"]))
    assert ids(stage, "ready", "sales", 0, 3) == (["a", "c"], True)
    assert ids(stage, "ready", "sales", 3, 3) == (["e"], False)


def test_neither_bodies_nor_tracebacks(stage: Stage) -> None:
    stage.bury(job("a", payload="x" * 3000))
    (only,) = stage.run(stage.ops.page("dead", "", 0, 5)).jobs
    assert (only.body, only.traceback, only.tries.error) == (b"", "", "ValueError('bad')")


def test_a_place_that_is_none(stage: Stage) -> None:
    with pytest.raises(RqjError, match="no jobs are listed by the state parked"):
        stage.run(stage.ops.page("parked", "", 0, 5))


def test_malformed_ones_are_listed_too(stage: Stage) -> None:
    stage.enqueue(job("a"))
    stage.client.hset(stage.key("jobs"), "a", "mine")
    (only,) = stage.run(stage.ops.page("ready", "sales", 0, 5)).jobs
    assert (only.id, only.state) == ("a", "malformed")


def test_a_list_of_a_foreign_type_is_told_with_its_line(stage: Stage) -> None:
    stage.client.set(stage.key("ready:sales:0"), "mine")
    with pytest.raises(ScriptFailed, match="wrong kind"):
        stage.run(stage.ops.page("ready", "sales", 0, 5))
