"""Jobs with an end: whoever meets one when it is over ends it; a claim, an enqueue that wants its lock, a revive."""

import pytest

from rqlite_jobs.errors import RqjError
from rqlite_jobs.lock import Lock
from tests.lua.stage import Stage, job, own, record

LOCK = Lock("until_executed", "k", 0, "return")
ONCE = Lock("until_expired", "k", 60_000, "return")


def test_its_record_says_until_when(stage: Stage) -> None:
    both = job("b", lock=Lock("until_executed", "k", 7, "return"), expires_ms=5000, delay_ms=9)
    _, changed = stage.did(stage.ops.enqueue([job("a", expires_ms=5000), both]))
    assert changed["jobs"] == {
        "a": (None, "1\0sales\x000\x001000\0x6000\0\0" + '["f"]'),
        "b": (None, record(both)),
    }
    assert stage.looked("b").state == "scheduled"


def test_a_claim_ends_it(stage: Stage) -> None:
    stage.enqueue(job("a", expires_ms=5, lock=LOCK, payload="x" * 3000), job("b"), job("c", expires_ms=6))
    stage.worker()
    stage.now_ms = 1005
    answer, changed = stage.did(stage.ops.turn("w1", "n" * 11, ["sales"], [], 9))
    assert [claim.id for claim in answer.claims] == ["b", "c"]
    assert set(changed["jobs"]) == {"a"}
    assert changed["bodies"] == {"a": ("x" * 3000, None)}
    assert changed["lock:k"] == ("d 0 a", None)
    assert changed["locks"] == {"k": (float("inf"), None)}
    assert changed["gone"] == {"a": (None, "expired")}
    assert changed["left"] == (None, ["a"])
    assert changed["totals"] == {"expired": (None, "1")}
    assert stage.state("a") == "expired"


def test_a_scheduled_one_ends_when_it_is_due(stage: Stage) -> None:
    stage.enqueue(job("a", expires_ms=5, delay_ms=3), job("b", expires_ms=5, delay_ms=3))
    stage.now_ms = 1004
    assert [claim.id for claim in stage.claim(1)] == ["a"]
    stage.now_ms = 1005
    assert list(stage.claim(1, nonce="m" * 11)) == []
    assert (stage.state("a"), stage.state("b")) == ("running", "expired")


def test_one_that_runs_is_not_ended_but_not_tried_again_either(stage: Stage) -> None:
    stage.enqueue(job("a", expires_ms=5))
    (claim,) = stage.claim(1)
    stage.now_ms = 1009
    stage.settle("retry", claim, delay_ms=1, error="e", traceback="t")
    assert stage.state("a") == "scheduled"
    stage.now_ms = 1010
    assert list(stage.claim(1, nonce="m" * 11)) == []
    assert stage.state("a") == "expired"
    assert {"tries", "errors"}.isdisjoint(stage.world())


@pytest.mark.parametrize("delay_ms", [None, 3])
def test_an_enqueue_that_wants_its_lock_ends_it(stage: Stage, delay_ms: int | None) -> None:
    stage.enqueue(job("a", lock=LOCK, expires_ms=5, delay_ms=delay_ms), job("z"))
    stage.now_ms = 1005
    answer, changed = stage.did(stage.ops.enqueue([job("b", lock=LOCK)]))
    assert [(one.outcome, one.id) for one in answer] == [("enqueued", "b")]
    assert changed["lock:k"] == ("d 0 a", "d 0 b")
    assert set(changed["jobs"]) == {"a", "b"}
    assert changed["gone"] == {"a": (None, "expired")}
    assert changed["totals"] == {"enqueued": ("2", "3"), "expired": (None, "1")}
    assert changed.get("tombs:sales") == (None if delay_ms else {"a": (None, "1")})
    assert sorted(claim.id for claim in stage.claim(9)) == ["b", "z"]


def test_before_its_end_it_holds_its_lock(stage: Stage) -> None:
    stage.enqueue(job("a", lock=LOCK, expires_ms=5))
    stage.now_ms = 1004
    assert stage.enqueue(job("b", lock=LOCK))[0].outcome == "duplicate"


def test_one_that_runs_holds_its_lock_whatever_its_end(stage: Stage) -> None:
    stage.enqueue(job("a", lock=LOCK, expires_ms=5))
    stage.claim(1)
    stage.now_ms = 1009
    assert stage.enqueue(job("b", lock=LOCK))[0].outcome == "duplicate"
    assert stage.state("a") == "running"


def test_a_lock_that_time_alone_ends_outlives_it(stage: Stage) -> None:
    stage.enqueue(job("a", lock=ONCE, expires_ms=5), job("z"))
    stage.now_ms = 1005
    (answer,) = stage.enqueue(job("b", lock=ONCE))
    assert (answer.outcome, answer.holder_id, answer.state, answer.record) == (
        "duplicate",
        "a",
        "expired",
        b"",
    )
    assert stage.state("a") == "expired"
    assert stage.world()["lock:k"] == "e 61000 a"


def test_two_of_a_batch_meet_the_same(stage: Stage) -> None:
    stage.enqueue(job("a", lock=LOCK, expires_ms=5))
    stage.now_ms = 1005
    answers = stage.enqueue(job("b", lock=LOCK), own("a"), job("c", lock=LOCK))
    assert [(one.outcome, one.holder_id) for one in answers] == [
        ("enqueued", ""), ("enqueued", ""), ("duplicate", "b"),
    ]  # fmt: skip
    assert stage.world()["totals"] == {"enqueued": "3", "expired": "1", "refused": "1"}
    assert sorted(claim.id for claim in stage.claim(9)) == ["a", "b"]


@pytest.mark.parametrize("delay_ms", [None, 3])
def test_its_own_id_may_come_again(stage: Stage, delay_ms: int | None) -> None:
    stage.enqueue(own("a", expires_ms=5, delay_ms=delay_ms), job("z"))
    stage.now_ms = 1005
    assert stage.enqueue(own("a"))[0].outcome == "enqueued"
    assert "gone" not in stage.world()
    assert stage.world()["totals"] == {"enqueued": "3", "expired": "1"}
    assert sorted(claim.id for claim in stage.claim(9)) == ["a", "z"]


def test_a_revive_that_wants_its_lock_ends_it(stage: Stage) -> None:
    stage.bury(job("dead", lock=LOCK))
    stage.enqueue(job("a", lock=LOCK, expires_ms=5))
    stage.now_ms = 1005
    answer, changed = stage.did(stage.ops.revive(["dead"]))
    assert answer == [("revived", "")]
    assert changed["gone"] == {"a": (None, "expired")}
    assert changed["lock:k"] == ("d 0 a", "d 0 dead")
    assert [claim.id for claim in stage.claim(9)] == ["dead"]


def test_a_revive_does_not_get_a_lock_that_time_alone_ends(stage: Stage) -> None:
    stage.bury(job("dead", lock=LOCK))
    stage.enqueue(job("a", lock=ONCE, expires_ms=5))
    stage.now_ms = 1005
    assert stage.run(stage.ops.revive(["dead"])) == [("duplicate", "a")]
    assert (stage.state("dead"), stage.state("a")) == ("dead", "expired")


@pytest.mark.parametrize("size", [20, 3000])
def test_a_revived_one_has_no_end_any_more(stage: Stage, size: int) -> None:
    dead = job("a", lock=LOCK, expires_ms=5, payload="x" * size)
    stage.bury(dead)
    stage.now_ms = 2000
    _, changed = stage.did(stage.ops.revive(["a"]))
    assert set(changed["jobs"]) == {"a"}
    assert "x1005" not in changed["jobs"]["a"][1]
    assert "bodies" not in changed
    (claim,) = stage.claim(9)
    assert (claim.id, claim.record.rpartition(b"\0")[2] or claim.body) == ("a", b"x" * size)


def test_many_at_once_cost_one_claim(stage: Stage) -> None:
    stage.enqueue(*[job(f"{at:03}", expires_ms=5) for at in range(150)], job("z"))
    stage.now_ms = 1005
    assert [claim.id for claim in stage.claim(100)] == ["z"]
    assert stage.world()["totals"]["expired"] == "150"


def test_words_about_the_expired_are_capped(stage: Stage) -> None:
    stage.set(done_max_count=2)
    stage.enqueue(*[job(f"{at}", expires_ms=5) for at in range(4)])
    stage.now_ms = 1005
    assert list(stage.claim(9)) == []
    assert len(stage.world()["gone"]) == len(stage.world()["left"]) == 2


def test_its_answers_elsewhere(stage: Stage) -> None:
    stage.enqueue(job("a", expires_ms=5))
    stage.now_ms = 1005
    assert list(stage.claim(1)) == []
    assert stage.run(stage.ops.cancel(["a"])) == ["expired"]
    assert stage.run(stage.ops.delete(["a"])) == ["expired"]
    assert stage.run(stage.ops.bury(["a"], "why")) == ["expired"]
    assert stage.run(stage.ops.revive(["a"])) == [("expired", "")]


@pytest.mark.parametrize("key", ["gone", "left"])
def test_a_foreign_key_where_its_word_goes_stops_the_claim_before_its_first_write(
    stage: Stage, key: str
) -> None:
    stage.enqueue(job("a", expires_ms=5), job("b"))
    stage.worker()
    stage.client.set(stage.key(key), "mine")
    stage.now_ms = 1005
    before = stage.world()
    with pytest.raises(RqjError):
        stage.run(stage.ops.turn("w1", "n" * 11, ["sales"], [], 9))
    assert stage.world() == before


@pytest.mark.parametrize("key", ["gone", "left"])
def test_the_same_of_an_enqueue_and_a_revive_that_meet_it(stage: Stage, key: str) -> None:
    stage.bury(job("dead", lock=LOCK))
    stage.enqueue(job("a", lock=LOCK, expires_ms=5), job("z"))
    stage.client.set(stage.key(key), "mine")
    stage.now_ms = 1005
    before = stage.world()
    for call in (stage.ops.enqueue([job("b", lock=LOCK)]), stage.ops.revive(["dead"])):
        with pytest.raises(RqjError):
            stage.run(call)
        assert stage.world() == before
