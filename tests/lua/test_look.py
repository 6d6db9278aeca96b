"""look: one job at one instant, whatever its state."""

import pytest

from rqlite_jobs.snapshot import Snapshot, Tries
from tests.lua.stage import NONCE, Stage, job, locked, record, tries

NEVER = Tries()


def test_all_states_and_nothing_is_changed(stage: Stage) -> None:
    stage.finish(job("done"))
    stage.bury(job("dead"))
    stage.enqueue(job("bare"), locked("locked"), job("gone"))
    stage.run(stage.ops.cancel(["gone"]))
    stage.claim(2)
    stage.enqueue(job("ready"), job("scheduled", delay_ms=5))
    answer, changed = stage.did(
        stage.ops.look(["done", "dead", "bare", "locked", "gone", "ready", "scheduled", "nobody"])
    )
    assert [one.state for one in answer] == [
        "done", "dead", "running", "running", "cancelled", "ready", "scheduled", "unknown",
    ]  # fmt: skip
    assert changed == {}


def test_a_ready_one(stage: Stage) -> None:
    new = locked("a", ttl_ms=7)
    stage.enqueue(new)
    raw = record(new).encode()
    assert stage.looked("a") == Snapshot("a", "ready", raw, b"", NEVER, "", 0, 0, "", "", 0)


def test_a_scheduled_one_with_a_large_payload(stage: Stage) -> None:
    new = job("a", payload="x" * 3000, delay_ms=5)
    stage.enqueue(new)
    raw = record(new, payload="").encode()
    assert stage.looked("a") == Snapshot("a", "scheduled", raw, b"x" * 3000, NEVER, "", 0, 0, "", "", 1005)


@pytest.mark.parametrize("new", [job("a"), locked("a")], ids=["bare", "locked"])
def test_a_running_one(stage: Stage, new: object) -> None:
    stage.enqueue(new)  # type: ignore[arg-type]
    stage.now_ms = 2000
    stage.claim()
    looked = stage.looked("a")
    assert (looked.state, looked.worker, looked.token) == ("running", "w1", f"2000000-{NONCE}")
    assert (looked.started_ms, looked.finished_ms) == (2000, 0)


def test_one_of_a_worker_being_recovered_is_running(stage: Stage) -> None:
    stage.enqueue(job("a"))
    stage.claim()
    stage.client.zrem(stage.key("workers"), "w1")
    stage.client.zadd(stage.key("fallen"), {"w1": 5})
    assert (stage.state("a"), stage.looked("a").worker) == ("running", "w1")


def test_a_done_one(stage: Stage) -> None:
    stage.enqueue(job("a"))
    claim = stage.claim()[0]
    stage.now_ms = 1500
    stage.settle("done", claim)
    looked = stage.looked("a")
    assert (looked.state, looked.started_ms, looked.finished_ms) == ("done", 1000, 1500)


def test_a_dead_one(stage: Stage) -> None:
    stage.enqueue(job("a"))
    claim = stage.claim()[0]
    stage.now_ms = 1500
    stage.settle("bury", claim, reason="failed", error="E: ü\0", traceback="at ü")
    looked = stage.looked("a")
    assert looked.tries == Tries(1, 0, 0, 1500, 1000, "failed", "E: ü\0")
    assert (looked.traceback, looked.started_ms, looked.finished_ms) == ("at ü", 1000, 1500)


def test_one_that_waits_after_a_failure(stage: Stage) -> None:
    stage.enqueue(job("a"))
    stage.settle("retry", stage.claim()[0], error="E", traceback="tb", delay_ms=5)
    looked = stage.looked("a")
    assert (looked.state, looked.tries.attempts, looked.tries.error, looked.traceback) == (
        "scheduled",
        1,
        "E",
        "tb",
    )
    assert (looked.started_ms, looked.finished_ms, looked.run_at_ms) == (1000, 0, 1005)


@pytest.mark.parametrize("text", ["", "mine", "1\0sales\0000\0001000\0"])
def test_a_malformed_one(stage: Stage, text: str) -> None:
    stage.enqueue(job("a"))
    stage.client.hset(stage.key("jobs"), "a", text)
    stage.client.hset(stage.key("tries"), "a", "mine")
    assert stage.looked("a") == Snapshot("a", "malformed", text.encode(), b"", NEVER, "", 0, 0, "", "", 0)
    stage.client.hset(stage.key("tries"), "a", tries(died_ms=7, reason="malformed", error="why"))
    assert (stage.state("a"), stage.looked("a").tries.error) == ("dead", "why")


@pytest.mark.parametrize("key", ["scheduled:sales", "running:w1"])
def test_a_key_of_a_foreign_type_stands_in_no_readers_way(stage: Stage, key: str) -> None:
    stage.enqueue(job("a"))
    stage.worker()
    stage.client.set(stage.key(key), "mine")
    assert stage.state("a") == "ready"


def test_bytes_that_are_no_text_are_shown_as_they_can_be(stage: Stage) -> None:
    stage.client.hset(stage.key("jobs"), b"\xff", b"\xfe")
    stage.client.hset(stage.key("errors"), b"\xff", b"\xfd")
    looked = stage.run(stage.ops.look([b"\xff"]))[0]  # type: ignore[list-item]
    assert (looked.id, looked.state, looked.record, looked.traceback) == (
        "\ufffd",
        "malformed",
        b"\xfe",
        "\ufffd",
    )
