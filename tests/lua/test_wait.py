"""wait: how a job ended, and being told when it does; and how long results are kept."""

from collections.abc import Callable
from typing import Any

import pytest

from rqlite_jobs.ending import Ending
from rqlite_jobs.operations import Settlement
from tests.lua.stage import LEASE_MS, NONCE, Stage, job, locked, tries

TOKEN = f"1000000-{NONCE}"
RESULT = b'["f",[7]]'


def returned(stage: Stage, *ids: str, **facts: Any) -> dict[str, Any]:
    """Enqueue jobs, and let each return something; what the last settlement changed."""
    changed: dict[str, Any] = {}
    for one in ids:
        stage.enqueue(job(one))
        (claim,) = stage.claim()
        settlement = Settlement(
            "returned", one, claim.token, result=facts.get("result", RESULT), ttl_ms=facts["ttl_ms"]
        )
        _, changed = stage.did(stage.ops.turn("w1", NONCE, [], [settlement], 0))
    return changed


def asked(stage: Stage, id: str) -> tuple[str, bytes]:
    """How a job ended, for nobody that waits."""
    ending = stage.run(stage.ops.wait("p", 1, id))
    return ending.word, ending.text


# What a settlement keeps.


def test_a_result_is_kept_with_its_job(stage: Stage) -> None:
    assert returned(stage, "a", ttl_ms=None) == {
        "running:w1": {"a": ("s" + TOKEN, None)},
        "done": (None, ["a"]),
        "ends": {"a": (None, "1000 1000")},
        "results": {"a": (None, RESULT.decode())},
        "totals": {"done": (None, "1")},
    }
    assert asked(stage, "a") == ("done", RESULT)


def test_a_ttl_of_0_keeps_none(stage: Stage) -> None:
    assert returned(stage, "a", ttl_ms=0) == {
        "running:w1": {"a": ("s" + TOKEN, None)},
        "done": (None, ["a"]),
        "ends": {"a": (None, "1000 1000 -")},
        "totals": {"done": (None, "1")},
    }
    assert asked(stage, "a") == ("lost", b"")
    assert (stage.looked("a").started_ms, stage.looked("a").finished_ms) == (1000, 1000)


@pytest.mark.parametrize(("ttl_ms", "until"), [(2000, 3000), (-1, float("inf"))])
def test_a_ttl_keeps_it_apart(stage: Stage, ttl_ms: int, until: float) -> None:
    assert returned(stage, "a", ttl_ms=ttl_ms) == {
        "running:w1": {"a": ("s" + TOKEN, None)},
        "kept": {"a": (None, until)},
        "ends": {"a": (None, "1000 1000")},
        "results": {"a": (None, RESULT.decode())},
        "totals": {"done": (None, "1")},
    }
    assert stage.state("a") == "done"


def test_none_may_be_kept_too(stage: Stage) -> None:
    changed = returned(stage, "a", ttl_ms=2000, result=b"")
    assert ("results" in changed, changed["kept"]) == (False, {"a": (None, 3000)})
    assert asked(stage, "a") == ("done", b"")


def test_a_result_is_read_until_its_time_is_over(stage: Stage) -> None:
    returned(stage, "a", ttl_ms=2000)
    stage.now_ms = 2000
    assert asked(stage, "a") == ("done", RESULT)
    stage.now_ms = 3000
    assert asked(stage, "a") == ("lost", b"")


def test_history_drops_results_with_their_jobs(stage: Stage) -> None:
    stage.set(done_max_count=1)
    returned(stage, "a", "b", ttl_ms=None)
    assert (stage.world()["results"], stage.world()["done"]) == ({"b": RESULT.decode()}, ["b"])
    assert asked(stage, "a") == ("unknown", b"")


def test_history_does_not_touch_what_is_kept(stage: Stage) -> None:
    stage.set(done_max_count=0)
    returned(stage, "a", ttl_ms=2000)
    returned(stage, "b", ttl_ms=None)
    assert (asked(stage, "a"), asked(stage, "b")) == (("done", RESULT), ("unknown", b""))


def test_one_that_is_kept_drops_two_that_are_over(stage: Stage) -> None:
    returned(stage, "a", "b", "c", ttl_ms=1)
    stage.now_ms = 1500
    assert set(stage.world()["kept"]) == {"a", "b", "c"}
    changed = returned(stage, "d", ttl_ms=5)
    assert changed["kept"] == {"a": (1001, None), "b": (1001, None), "d": (None, 1505)}
    assert changed["results"] == {
        "a": (RESULT.decode(), None), "b": (RESULT.decode(), None), "d": (None, RESULT.decode())
    }  # fmt: skip
    assert set(changed["jobs"]) == {"a", "b"}
    assert [stage.state(one) for one in "abcd"] == ["unknown", "unknown", "done", "done"]


def test_a_lock_is_let_go(stage: Stage) -> None:
    stage.enqueue(locked("a"))
    (claim,) = stage.claim()
    stage.settle("returned", claim, result=RESULT, ttl_ms=-1)
    assert {"lock:k", "locks", "where", "running:w1"}.isdisjoint(stage.world())


@pytest.mark.parametrize("ttl_ms", [None, 0, 2000, -1])
def test_a_token_that_is_not_the_jobs_changes_nothing(stage: Stage, ttl_ms: int | None) -> None:
    stage.enqueue(job("a"))
    (claim,) = stage.claim()
    settlement = Settlement("returned", "a", "1-" + NONCE, result=RESULT, ttl_ms=ttl_ms)
    answer, changed = stage.did(stage.ops.turn("w1", NONCE, [], [settlement], 0))
    assert (answer.refused, changed) == ({"a": "stale"}, {})
    assert stage.settle("returned", claim, result=RESULT, ttl_ms=ttl_ms) == {}
    answer, changed = stage.did(stage.ops.turn("w1", NONCE, [], [settlement], 0).again())
    assert (answer.refused, changed) == ({"a": "gone"}, {})


def test_done_and_returned_and_failed_in_one_turn(stage: Stage) -> None:
    stage.enqueue(job("a"), job("b"), job("c"), job("d"))
    a, b, c, _ = stage.claim(4)
    settlements = [
        Settlement("returned", b.id, b.token, result=RESULT),
        Settlement("done", a.id, a.token),
        Settlement("retry", c.id, c.token, 50, error="x"),
    ]
    answer, changed = stage.did(stage.ops.turn("w1", NONCE, ["sales"], settlements, 1))
    assert answer.refused == {}
    assert (changed["done"], changed["results"]) == ((None, ["b", "a"]), {"b": (None, RESULT.decode())})
    assert changed["scheduled:sales"] == {"c": (None, 1050)}
    assert set(changed["running:w1"]) == {"a", "b", "c"}


@pytest.mark.parametrize("ttl_ms", [None, 0, 2000, -1])
def test_delete_takes_all_of_it(stage: Stage, ttl_ms: int | None) -> None:
    returned(stage, "b", "a", ttl_ms=ttl_ms)
    before = stage.world()
    answer, changed = stage.did(stage.ops.delete(["a"]))
    assert answer == ["deleted"]
    kept = ttl_ms in (2000, -1)
    expected = {"jobs", "ends", "kept" if kept else "done"} | ({"results"} if ttl_ms != 0 else set())
    assert set(changed) == expected
    assert set(before["kept"]) == {"a", "b"} if kept else "kept" not in before
    assert (stage.state("a"), stage.state("b")) == ("unknown", "done")


def test_what_is_kept_is_counted_as_done(stage: Stage) -> None:
    returned(stage, "a", ttl_ms=2000)
    returned(stage, "b", ttl_ms=None)
    survey = stage.run(stage.ops.survey())
    assert (survey.done, survey.kept, survey.records, survey.totals["done"]) == (1, 1, 2, 2)


# What wait answers.


def test_a_job_that_waits_or_runs(stage: Stage) -> None:
    stage.enqueue(job("scheduled", delay_ms=5000), job("running"), locked("held"))
    stage.claim(2)
    stage.enqueue(job("ready"))
    for id in ("scheduled", "running", "held", "ready"):
        answer, changed = stage.did(stage.ops.wait("p", 1, id))
        assert answer == Ending("waiting", b"")
        assert changed["waiters"] == {id: (None, "p/1")}
        assert set(changed) == {"waiters"}


def test_a_job_that_has_ended_notes_nobody(stage: Stage) -> None:
    stage.finish(job("done"))
    stage.bury(job("dead"), error="ValueError('bad')")
    stage.enqueue(job("cancelled"), job("malformed"))
    stage.run(stage.ops.cancel(["cancelled"]))
    stage.client.hset(stage.key("jobs"), "malformed", "mine")
    answers = {}
    for id in ("done", "dead", "cancelled", "malformed", "nobody"):
        answer, changed = stage.did(stage.ops.wait("p", 1, id))
        assert changed == {}
        answers[id] = (answer.word, answer.text)
    assert answers == {
        "done": ("done", b""), "dead": ("dead", b"ValueError('bad')"), "cancelled": ("cancelled", b""),
        "malformed": ("malformed", b""), "nobody": ("unknown", b""),
    }  # fmt: skip


def test_more_than_one_process_waits_each_once(stage: Stage) -> None:
    stage.enqueue(job("a"))
    for process in ("p", "q", "p"):
        stage.run(stage.ops.wait(process, 1, "a"))
    assert stage.world()["waiters"] == {"a": "q/1 p/1"}
    (claim,) = stage.claim()
    stage.settle("returned", claim, result=RESULT)
    world = stage.world()
    assert (world["answers:p"], world["answers:q"]) == (["a\0001\0done\0" + RESULT.decode()],) * 2
    assert "waiters" not in world
    assert all(50_000 < stage.ttls_ms()[f"answers:{process}"] <= 60_000 for process in "pq")


def test_the_highest_ticket_of_a_process_counts(stage: Stage) -> None:
    stage.enqueue(job("a"))
    for ticket in (2, 10, 9):
        stage.run(stage.ops.wait("p", ticket, "a"))
        stage.run(stage.ops.wait("q", 1, "a"))
    assert stage.world()["waiters"] == {"a": "p/10 q/1"}
    stage.run(stage.ops.cancel(["a"]))
    assert stage.world()["answers:p"] == ["a\00010\0cancelled\0"]


def test_at_most_a_hundred_processes(stage: Stage) -> None:
    stage.enqueue(job("a"))
    for number in range(105):
        stage.run(stage.ops.wait(f"p{number}", 1, "a"))
    assert stage.world()["waiters"]["a"].split() == [f"p{number}/1" for number in range(5, 105)]


# Told by every end.


def claim_and(word: str, **facts: Any) -> Callable[[Stage], object]:
    return lambda stage: stage.settle(word, stage.claim()[0], **facts)


def crash(stage: Stage) -> None:
    stage.claim()
    stage.now_ms += LEASE_MS + 1
    stage.run(stage.ops.recover(1, ["w1"]))


def crash_seen_by_a_beat(stage: Stage) -> None:
    stage.claim()
    stage.now_ms += 1
    stage.worker("w2")
    stage.now_ms += LEASE_MS - 1
    stage.run(stage.ops.heartbeat("w2", LEASE_MS, 1, []))


def malformed(stage: Stage) -> None:
    stage.client.hset(stage.key("jobs"), "a", "mine")
    stage.claim()


def expire(stage: Stage) -> None:
    stage.run(stage.ops.cancel(["a"]))
    stage.enqueue(job("a", expires_ms=5, own_id=True))
    stage.client.delete(stage.key("answers:p"))
    stage.run(stage.ops.wait("p", 1, "a"))
    stage.now_ms += 6
    stage.claim()


def delete_dead(stage: Stage) -> None:
    stage.run(stage.ops.delete(["a"]))


ENDS: dict[str, tuple[Callable[[Stage], object], str]] = {
    "done": (claim_and("done"), "done\0"),
    "returned": (claim_and("returned", result=RESULT), "done\0" + RESULT.decode()),
    "returned, kept": (claim_and("returned", result=RESULT, ttl_ms=9), "done\0" + RESULT.decode()),
    "returned, for ever": (claim_and("returned", result=RESULT, ttl_ms=-1), "done\0" + RESULT.decode()),
    "returned, for those who wait": (
        claim_and("returned", result=RESULT, ttl_ms=0),
        "done\0" + RESULT.decode(),
    ),
    "returned, None that is kept": (claim_and("returned", result=b"", ttl_ms=9), "done\0"),
    "returned, and cannot be had": (claim_and("returned", result=b"", ttl_ms=0), "lost\0"),
    "dead": (claim_and("bury", reason="failed", error="E()", traceback="at"), "dead\0E()"),
    "buried by hand": (lambda stage: stage.run(stage.ops.bury(["a"], "why")), "dead\0why"),
    "crashed": (crash, "dead\0"),
    "crashed, seen by a beat": (crash_seen_by_a_beat, "dead\0"),
    "malformed": (malformed, "dead\0the record of this job is not one of ours"),
    "cancelled": (lambda stage: stage.run(stage.ops.cancel(["a"])), "cancelled\0"),
    "deleted": (delete_dead, "deleted\0"),
    "purged": (lambda stage: stage.run(stage.ops.purge("sales")), "deleted\0"),
    "expired": (expire, "expired\0"),
}


@pytest.mark.parametrize("how", ENDS)
def test_every_end_is_told(stage: Stage, how: str) -> None:
    end, told = ENDS[how]
    stage.enqueue(job("a"), job("b"))
    stage.run(stage.ops.wait("p", 1, "a"))
    end(stage)
    world = stage.world()
    (entry,) = world["answers:p"]
    told = "a\0001\0" + told
    assert entry.startswith(told) if told.endswith("dead\0") else entry == told
    assert "waiters" not in world
    assert 0 < stage.ttls_ms()["answers:p"] <= 60_000


@pytest.mark.parametrize("word", ["retry", "snooze", "putoff", "back"])
def test_what_is_no_end_is_not_told(stage: Stage, word: str) -> None:
    stage.enqueue(job("a"))
    stage.run(stage.ops.wait("p", 1, "a"))
    stage.settle(word, stage.claim()[0], delay_ms=5)
    assert stage.world()["waiters"] == {"a": "p/1"}
    assert "answers:p" not in stage.world()


def test_ends_lie_newest_on_the_left(stage: Stage) -> None:
    stage.enqueue(job("a"), job("b"))
    for id in "ab":
        stage.run(stage.ops.wait("p", 1, id))
    stage.run(stage.ops.cancel(["a", "b"]))
    assert stage.world()["answers:p"] == ["b\0001\0cancelled\0", "a\0001\0cancelled\0"]


def test_an_entry_of_tries_that_died_without_words(stage: Stage) -> None:
    stage.bury(job("a"))
    stage.client.hset(stage.key("tries"), "a", tries(died_ms=5))
    assert asked(stage, "a") == ("dead", b"")
