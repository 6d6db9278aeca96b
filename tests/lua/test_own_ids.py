"""Ids of the caller's own: a known one is a duplicate, one that was cancelled may come again and runs once."""

import pytest

from rqlite_jobs.errors import RqjError
from rqlite_jobs.lock import Lock
from tests.lua.stage import Stage, job, own, record, tries

LOCK = Lock("until_executed", "k", 0, "return")
LOCK_TOO = Lock("until_executed", "too", 0, "return")
REJECT = Lock("until_executed", "k", 0, "reject")
ONCE = Lock("until_expired", "k", 60_000, "return")


def outcomes(stage: Stage, *jobs: object) -> list[tuple[str, str, str]]:
    """What became of jobs that came in one script: outcome, state, holder."""
    answers = stage.run(stage.ops.enqueue(jobs))  # type: ignore[arg-type]
    return [(one.outcome, one.state, one.holder_id) for one in answers]


def test_it_is_stored_like_any_other(stage: Stage) -> None:
    answer, changed = stage.did(stage.ops.enqueue([own("night 1 ☃")]))
    assert [(one.outcome, one.id, one.state) for one in answer] == [("enqueued", "night 1 ☃", "ready")]
    assert changed == {
        "jobs": {"night 1 ☃": (None, record(job("x")))},
        "queues": {"sales": (None, "0")},
        "ready:sales:0": (None, ["night 1 ☃"]),
        "totals": {"enqueued": (None, "1")},
        "wake:sales": (None, ["1"]),
    }


@pytest.mark.parametrize("state", ["ready", "scheduled", "running", "done", "dead"])
def test_a_known_one_is_a_duplicate_wherever_it_is(stage: Stage, state: str) -> None:
    if state == "dead":
        stage.bury(own("a"))
    elif state == "done":
        stage.finish(own("a"))
    else:
        stage.enqueue(own("a", delay_ms=5 if state == "scheduled" else None))
    if state == "running":
        stage.claim(1)
    assert stage.state("a") == state
    answer, changed = stage.did(stage.ops.enqueue([own("a", payload='["other"]')]))
    assert [(one.outcome, one.id, one.holder_id, one.state) for one in answer] == [
        ("duplicate", "a", "a", state)
    ]
    assert answer[0].record == stage.looked("a").record
    assert changed == {"totals": {"refused": (None, "1")}}


def test_twice_in_one_batch(stage: Stage) -> None:
    assert outcomes(stage, own("a"), own("a", delay_ms=5), own("b", delay_ms=5), own("b")) == [
        ("enqueued", "ready", ""),
        ("duplicate", "ready", "a"),
        ("enqueued", "scheduled", ""),
        ("duplicate", "scheduled", "b"),
    ]
    assert sorted(stage.world()["jobs"]) == ["a", "b"]


def test_an_id_and_a_lock_in_one_batch(stage: Stage) -> None:
    """An id is known only if its first job was stored; a lock is held only by one that was."""
    stage.enqueue(job("z", lock=LOCK))
    assert outcomes(stage, own("a", lock=LOCK), own("a"), own("a", lock=LOCK)) == [
        ("duplicate", "ready", "z"),
        ("enqueued", "ready", ""),
        ("duplicate", "ready", "a"),
    ]
    other = Lock("until_executed", "other", 0, "return")
    assert outcomes(stage, own("a", lock=other), own("b", lock=other), own("c", lock=other)) == [
        ("duplicate", "ready", "a"),
        ("enqueued", "ready", ""),
        ("duplicate", "ready", "b"),
    ]


def test_a_rejected_one_is_known_too(stage: Stage) -> None:
    stage.enqueue(job("z", lock=LOCK))
    assert outcomes(stage, own("a", lock=REJECT), own("a")) == [
        ("rejected", "dead", "z"),
        ("duplicate", "dead", "a"),
    ]
    assert stage.world()["rejected"] == ["a"]


@pytest.mark.parametrize("others", [0, 1])
def test_a_cancelled_one_comes_again_and_has_one_entry(stage: Stage, others: int) -> None:
    """With another job in the list its old entry still lies there, under a tomb; alone the list went with it."""
    stage.enqueue(own("a"), *[job("b")] * others)
    stage.run(stage.ops.cancel(["a"]))
    answer, changed = stage.did(stage.ops.enqueue([own("a", payload='["new"]')]))
    assert (answer[0].outcome, answer[0].state) == ("enqueued", "ready")
    assert changed["gone"] == {"a": ("cancelled", None)}
    assert changed["jobs"] == {"a": (None, record(job("a", payload='["new"]')))}
    assert changed.get("tombs:sales") == ({"a": ("1", None)} if others else None)
    assert ("ready:sales:0" in changed) is (others == 0)
    claims = stage.claim(9)
    assert sorted(claim.id for claim in claims) == ["a", "b"][: 1 + others]
    assert "ready:sales:0" not in stage.world()
    assert "tombs:sales" not in stage.world()


def test_a_cancelled_one_comes_again_delayed_and_runs_once(stage: Stage) -> None:
    stage.enqueue(own("a"), job("b"))
    stage.run(stage.ops.cancel(["a"]))
    answer, changed = stage.did(stage.ops.enqueue([own("a", delay_ms=5)]))
    assert answer[0].state == "scheduled"
    assert "tombs:sales" not in changed  # the tomb stays till it is due, or a claim meets it
    assert changed["scheduled:sales"] == {"a": (None, 1005)}
    stage.now_ms = 1005
    assert sorted(claim.id for claim in stage.claim(9)) == ["a", "b"]
    assert {"ready:sales:0", "tombs:sales", "scheduled:sales"}.isdisjoint(stage.world())


def test_a_tomb_that_is_met_while_its_id_is_scheduled(stage: Stage) -> None:
    stage.enqueue(own("a"), job("b"))
    stage.run(stage.ops.cancel(["a"]))
    stage.enqueue(own("a", delay_ms=5))
    assert [claim.id for claim in stage.claim(9)] == ["b"]
    assert stage.state("a") == "scheduled"
    stage.now_ms = 1005
    assert [claim.id for claim in stage.claim(9, nonce="m" * 11)] == ["a"]


def test_a_cancelled_one_comes_again_to_another_queue(stage: Stage) -> None:
    stage.enqueue(own("a"), job("b"))
    stage.run(stage.ops.cancel(["a"]))
    stage.enqueue(own("a", "mail"))
    assert [claim.id for claim in stage.claim(9, queue="mail")] == ["a"]
    assert [claim.id for claim in stage.claim(9, nonce="m" * 11)] == ["b"]
    assert stage.state("a") == "running"


def test_cancelled_again_and_again(stage: Stage) -> None:
    stage.enqueue(job("b"))
    for _ in range(3):
        assert outcomes(stage, own("a")) == [("enqueued", "ready", "")]
        assert stage.run(stage.ops.cancel(["a"])) == ["cancelled"]
    assert stage.world()["ready:sales:0"] == ["a", "b"]
    assert [claim.id for claim in stage.claim(9)] == ["b"]


def test_a_cancelled_one_that_is_rejected_and_revived_runs_once(stage: Stage) -> None:
    stage.enqueue(own("a"), job("b"), job("z", lock=LOCK))
    stage.run(stage.ops.cancel(["a"]))
    assert outcomes(stage, own("a", lock=REJECT)) == [("rejected", "dead", "z")]
    assert "gone" not in stage.world()
    stage.run(stage.ops.delete(["z"]))
    assert stage.run(stage.ops.revive(["a"])) == [("revived", "")]
    assert sorted(claim.id for claim in stage.claim(9, worker="w2")) == ["a", "b"]


def test_its_lock_that_time_alone_ends_outlives_its_cancelling(stage: Stage) -> None:
    stage.enqueue(own("a", lock=ONCE))
    stage.run(stage.ops.cancel(["a"]))
    assert outcomes(stage, own("a", lock=ONCE)) == [("duplicate", "cancelled", "a")]
    assert outcomes(stage, own("a")) == [("enqueued", "ready", "")]


def test_one_that_was_deleted_comes_again(stage: Stage) -> None:
    stage.bury(own("a"))
    stage.run(stage.ops.delete(["a"]))
    assert outcomes(stage, own("a")) == [("enqueued", "ready", "")]
    assert [(claim.id, claim.attempts) for claim in stage.claim(9)] == [("a", 0)]


def test_a_malformed_one_of_that_id_is_known(stage: Stage) -> None:
    stage.enqueue(own("a"))
    stage.client.hset(stage.key("jobs"), "a", "mine")
    assert outcomes(stage, own("a")) == [("duplicate", "malformed", "a")]


def test_an_id_made_for_a_job_is_a_fault_beside_one_of_ones_own(stage: Stage) -> None:
    stage.enqueue(job("a"))
    before = stage.world()
    with pytest.raises(RqjError, match="a job with the id a exists already"):
        stage.enqueue(own("b"), job("a"))
    assert stage.world() == before


def test_asked_again_in_its_lane(stage: Stage) -> None:
    call = stage.ops.enqueue([own("a"), own("a")])
    first = stage.sent(call)
    before = stage.world()
    assert stage.sent(call) == first
    assert stage.world() == before
    assert [answer[0] for answer in first[1:]] == [b"enqueued", b"duplicate"]
    assert [answer[0] for answer in stage.sent(call, nonce="m" * 11)[1:]] == [b"duplicate", b"duplicate"]


def test_of_its_tries_nothing_is_left_when_it_comes_again(stage: Stage) -> None:
    stage.enqueue(own("a"), job("b"))
    stage.client.hset(stage.key("tries"), "a", tries(attempts=2))
    stage.run(stage.ops.cancel(["a"]))
    stage.enqueue(own("a"))
    assert [claim.attempts for claim in stage.claim(9)] == [0, 0]


def test_the_lock_of_an_earlier_life_is_ended_by_its_time_alone(stage: Stage) -> None:
    """The job that has that id by now asks for no lock; that it expires does not end the lock either."""
    stage.enqueue(own("a", lock=ONCE))
    stage.run(stage.ops.cancel(["a"]))
    stage.bury(job("dead", lock=LOCK_TOO))
    stage.enqueue(own("a", expires_ms=5), job("z"))
    stage.now_ms = 1005
    assert outcomes(stage, job("b", lock=ONCE)) == [("duplicate", "expired", "a")]
    assert (stage.state("a"), stage.world()["lock:k"]) == ("expired", "e 61000 a")
    stage.enqueue(own("a", expires_ms=5))
    stage.now_ms = 1010
    stage.client.hset(stage.key("jobs"), "dead", record(job("dead", lock=LOCK)))
    assert stage.run(stage.ops.revive(["dead"])) == [("duplicate", "a")]
    assert (stage.state("a"), stage.world()["lock:k"]) == ("expired", "e 61000 a")


def test_the_lock_of_an_earlier_life_met_beside_the_later_one(stage: Stage) -> None:
    stage.enqueue(own("a", lock=ONCE, expires_ms=5), job("z"))
    stage.now_ms = 1005
    assert outcomes(stage, own("a", delay_ms=7), job("b", lock=ONCE)) == [
        ("enqueued", "scheduled", ""),
        ("duplicate", "scheduled", "a"),
    ]
    assert stage.world()["totals"] == {"enqueued": "3", "expired": "1", "refused": "1"}


def test_the_word_about_one_that_came_again_is_not_lost_early(stage: Stage) -> None:
    stage.set(done_max_count=2)
    for _ in range(3):
        stage.enqueue(own("a"))
        stage.run(stage.ops.cancel(["a"]))
        assert (stage.world()["left"], stage.world()["gone"]) == (["a"], {"a": "cancelled"})
    stage.enqueue(job("b"), job("c"))
    stage.run(stage.ops.cancel(["b"]))
    assert (stage.state("a"), stage.state("b")) == ("cancelled", "cancelled")
    stage.run(stage.ops.cancel(["c"]))
    assert (stage.state("a"), stage.state("b")) == ("unknown", "cancelled")


@pytest.mark.parametrize("key", ["gone", "left", "rejected"])
def test_a_foreign_key_stops_an_enqueue_before_its_first_write(stage: Stage, key: str) -> None:
    stage.enqueue(job("z", lock=LOCK))
    stage.client.set(stage.key(key), "mine")
    before = stage.world()
    with pytest.raises(RqjError):
        stage.enqueue(job("d", delay_ms=5), own("a", lock=LOCK_TOO), job("b", lock=REJECT))
    assert stage.world() == before
