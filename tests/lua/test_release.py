"""release: a lock is freed by hand; one whose job waits or runs only by force."""

import pytest

from tests.lua.stage import Stage, job, locked, once

INF = float("inf")


@pytest.mark.parametrize("state", ["ready", "scheduled", "running"])
def test_a_living_one_is_freed_by_force_only(stage: Stage, state: str) -> None:
    stage.enqueue(locked("a", delay_ms=5 if state == "scheduled" else None))
    claims = stage.claim(1) if state == "running" else []
    assert stage.did(stage.ops.release(["k"])) == ([("held", "a")], {})
    answer, changed = stage.did(stage.ops.release(["k"], force=True))
    assert answer == [("released", "a")]
    assert changed == {"lock:k": ("d 0 a", None), "locks": {"k": (INF, None)}}
    assert stage.state("a") == state
    assert stage.enqueue(locked("b"))[0].outcome == "enqueued"
    for claim in claims:  # the first one ends, and the lock of the second stays
        stage.settle("done", claim)
        assert stage.world()["lock:k"] == "d 0 b"


@pytest.mark.parametrize("end", ["done", "dead", "cancelled"])
def test_one_that_outlived_its_job_is_freed(stage: Stage, end: str) -> None:
    if end == "cancelled":
        stage.enqueue(once("a"))
        stage.run(stage.ops.cancel(["a"]))
    else:
        {"done": stage.finish, "dead": stage.bury}[end](once("a"))
    answer, changed = stage.did(stage.ops.release(["k"]))
    assert answer == [("released", "a")]
    assert changed == {"lock:k": ("e 61000 a", None), "locks": {"k": (61_000, None)}}


def test_nobody_holds_it(stage: Stage) -> None:
    assert stage.did(stage.ops.release(["k"])) == ([("free", "")], {})


def test_a_pointer_whose_job_no_longer_holds_is_cleared(stage: Stage) -> None:
    stage.client.set(stage.key("lock:k"), "d 0 nobody")
    answer, changed = stage.did(stage.ops.release(["k"]))
    assert (answer, changed) == ([("free", "")], {"lock:k": ("d 0 nobody", None)})


@pytest.mark.parametrize("force", [False, True])
def test_what_is_no_lock_of_ours_is_left_alone(stage: Stage, force: bool) -> None:
    stage.client.set(stage.key("lock:k"), "mine")
    stage.client.lpush(stage.key("lock:l"), "mine")
    assert stage.did(stage.ops.release(["k", "l"], force)) == ([("free", ""), ("free", "")], {})


def test_many_and_each_gets_its_word(stage: Stage) -> None:
    stage.enqueue(locked("a", "k"), once("b", "l"), job("c"))
    stage.run(stage.ops.cancel(["b"]))
    answer = stage.run(stage.ops.release(["k", "l", "m", "l"]))
    assert answer == [("held", "a"), ("released", "b"), ("free", ""), ("free", "")]


def test_asked_again_in_its_lane(stage: Stage) -> None:
    stage.enqueue(locked("a"))
    call = stage.ops.release(["k"], force=True)
    assert stage.sent(call) == [[b"released", b"a"]]
    stage.enqueue(locked("b"))
    before = stage.world()
    assert stage.sent(call) == [[b"released", b"a"]]
    assert stage.world() == before


@pytest.mark.parametrize("kind", ["nothing", "foreign"])
def test_an_entry_of_the_index_without_a_lock_goes(stage: Stage, kind: str) -> None:
    """Where the key of a lock that lives with its job was dropped by the server, say: it would be listed for ever."""
    stage.enqueue(locked("a"))
    stage.client.delete(stage.key("lock:k"))
    if kind == "foreign":
        stage.client.set(stage.key("lock:k"), "mine")
    assert stage.did(stage.ops.release(["k"])) == ([("free", "")], {"locks": {"k": (INF, None)}})
