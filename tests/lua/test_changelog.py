"""The changelog: each script's lines, who did it, what is bounded, and what writes none."""

from collections.abc import Callable
from typing import Any

import pytest

from rqlite_jobs.changelog import ACTS
from rqlite_jobs.lock import Lock
from rqlite_jobs.operations import Call
from tests.lua.stage import LEASE_MS, NONCE, Stage, job, locked, once

UNTIL_EXECUTED = Lock("until_executed", "k", 0, "return")


def line(act: str, by: str, *ids: str, count: int | None = None, **more: str) -> dict[str, str]:
    """A line as it lies in the stream, but for its time."""
    counted = len(ids) if count is None else count
    return {"act": act, "by": by, "count": str(counted), "ids": "\0".join(ids), **more}


def logged(stage: Stage, call: Call[Any]) -> list[dict[str, str]]:
    """The lines that a call writes."""
    stage.did(call)
    return stage.logged


# What operators do.


@pytest.mark.parametrize("verb", ["cancel", "delete", "bury"])
def test_waiting_jobs(stage: Stage, verb: str) -> None:
    why = {"bury": ["the customer is gone"]}.get(verb, [])
    act = getattr(stage.ops, verb)
    stage.enqueue(job("a"), job("b", delay_ms=5), job("c"))
    stage.claim(1)
    wanted = line(verb, "ann", "b", "c", **({"why": why[0]} if why else {}))
    assert logged(stage, act(["a", "b", "nobody", "c", "c"], *why, by="ann")) == [wanted]
    if verb != "delete":  # a dead one, too, can be deleted
        assert logged(stage, act(["b"], *why, by="ann")) == []


def test_what_is_deleted_wherever_it_is(stage: Stage) -> None:
    stage.finish(job("done"))
    stage.bury(job("dead"))
    stage.client.hset(stage.key("jobs"), "odd", "not ours")
    assert logged(stage, stage.ops.delete(["odd", "dead", "done", "done"], by="ann")) == [
        line("delete", "ann", "odd", "dead", "done")
    ]


def test_a_long_reason_is_cut(stage: Stage) -> None:
    stage.enqueue(job("a"))
    assert logged(stage, stage.ops.bury(["a"], "x" * 4096, by="ann"))[0]["why"] == "x" * 200


def test_revived_and_retried_ones(stage: Stage) -> None:
    stage.bury(job("a"), job("b"))
    assert logged(stage, stage.ops.revive(["b", "nobody", "a", "a"], by="ann")) == [
        line("revive", "ann", "b", "a")
    ]
    for claim in stage.claim(2):
        stage.settle("retry", claim, delay_ms=500, error="e", traceback="t")
    assert logged(stage, stage.ops.retry(["a", "nobody", "a"], by="ann")) == [line("retry", "ann", "a")]


def test_a_purge_names_its_queue(stage: Stage) -> None:
    stage.enqueue(job("a"), job("b"), job("c", delay_ms=5), job("other", "mail"))
    stage.run(stage.ops.cancel(["a"]))
    assert logged(stage, stage.ops.purge("sales", by="ann")) == [
        line("purge", "ann", "b", "c", queue="sales")
    ]
    assert logged(stage, stage.ops.purge("sales", by="ann")) == []


def test_a_pause_and_its_end(stage: Stage) -> None:
    stage.enqueue(job("a"))
    ops = stage.ops
    assert logged(stage, ops.pause("sales", 5000, "ann")) == [
        line("pause", "ann", queue="sales", for_ms="5000")
    ]
    assert logged(stage, ops.pause("sales", 0, "bob")) == [line("pause", "bob", queue="sales", for_ms="0")]
    assert logged(stage, ops.pause("sales", None, "ann")) == [line("resume", "ann", queue="sales")]
    assert logged(stage, ops.pause("sales", None, "ann")) == []
    assert logged(stage, ops.pause("nothing", 5000, "ann")) == []


def test_a_released_lock_names_who_held_it(stage: Stage) -> None:
    stage.enqueue(locked("a", "k"), once("b", "l"), once("over", "m", ttl_ms=1))
    stage.run(stage.ops.cancel(["b"]))
    stage.client.set(stage.key("lock:n"), "d 0 nobody")
    stage.now_ms += 1
    found = logged(stage, stage.ops.release(["k", "l", "m", "n", "free"], by="ann"))
    assert found == [line("release", "ann", "b", "nobody", keys="l\0n", others="", force="0")]
    assert logged(stage, stage.ops.release(["k"], by="ann")) == []
    assert logged(stage, stage.ops.release(["k"], force=True, by="ann")) == [
        line("release", "ann", "a", keys="k", others="", force="1")
    ]


def test_a_recovery_names_the_workers_and_the_jobs(stage: Stage) -> None:
    stage.enqueue(job("a"), job("b"), job("c"))
    stage.claim(1, hand=1, worker="w1")
    stage.worker("idle")
    assert logged(stage, stage.ops.recover(3, ["w1", "nobody"], by="ann")) == [
        line("recover", "ann", "b", "a", workers="w1", crashed="1")
    ]
    assert logged(stage, stage.ops.recover(3, ["w1"], by="ann")) == []
    assert logged(stage, stage.ops.recover(3, ["idle"], by="ann")) == [
        line("recover", "ann", workers="idle", crashed="0")
    ]


def test_a_beat_tells_whom_it_recovered(stage: Stage) -> None:
    stage.enqueue(job("a"), job("b"), job("c"))
    stage.claim(1, worker="w1")
    stage.claim(1, worker="w2", nonce="m" * 11)
    stage.now_ms += LEASE_MS - 1
    stage.worker("w3")
    assert logged(stage, stage.ops.heartbeat("w3", LEASE_MS, 3, [])) == []
    stage.now_ms += 1
    (found,) = logged(stage, stage.ops.heartbeat("w3", LEASE_MS, 3, []))
    assert found == line("recover", "w3", "a", "b", workers="w1\0w2", crashed="2")


def test_what_crashed_too_often_has_a_line_of_its_own(stage: Stage) -> None:
    stage.enqueue(job("a"), job("b"))
    stage.claim(1, hand=1)
    recovered = line("recover", "ann", "b", "a", workers="w1", crashed="1")
    assert logged(stage, stage.ops.recover(1, ["w1"], by="ann")) == [
        recovered,
        line("bury", "ann", "a", why="crashed"),
    ]


def test_a_worker_that_leaves_or_never_heard_of_its_claim_is_no_recovery(stage: Stage) -> None:
    stage.enqueue(job("a"), job("b"))
    stage.claim(1)
    assert logged(stage, stage.ops.leave("w1", ["sales"])) == []
    stage.claim(1, worker="w2", nonce="m" * 11)
    stage.now_ms += LEASE_MS + 1
    stage.worker("w2")
    assert logged(stage, stage.ops.heartbeat("w2", LEASE_MS, 3, [])) == []
    assert stage.state("a") == "ready"


# What befalls jobs and locks.


def test_jobs_that_a_claim_ends(stage: Stage) -> None:
    stage.enqueue(
        *(job(id, queue, expires_ms=5) for id, queue in (("a", "sales"), ("b", "mail"), ("c", "mail")))
    )
    stage.worker()
    stage.now_ms += 5
    assert logged(stage, stage.ops.turn("w1", NONCE, ["sales", "mail"], [], 1)) == [
        line("expire", "w1", "a", "b", "c")
    ]
    assert logged(stage, stage.ops.turn("w1", NONCE, ["sales", "mail"], [], 1)) == []


def test_jobs_that_an_enqueue_ends_and_refuses(stage: Stage) -> None:
    stage.enqueue(job("a", lock=UNTIL_EXECUTED, expires_ms=5))
    stage.now_ms += 5
    reject = [locked(id, on_conflict="reject") for id in ("b", "c", "d")]
    assert logged(stage, stage.ops.enqueue(reject)) == [
        line("expire", "enqueue", "a"),
        line("reject", "enqueue", "c", "d", keys="k\0k", others="b\0b"),
    ]
    assert logged(stage, stage.ops.enqueue([locked("e")])) == []


def test_jobs_that_a_revive_ends(stage: Stage) -> None:
    stage.bury(locked("a"))
    stage.enqueue(job("b", lock=UNTIL_EXECUTED, expires_ms=5))
    stage.now_ms += 5
    assert logged(stage, stage.ops.revive(["a"], by="ann")) == [
        line("revive", "ann", "a"),
        line("expire", "revive", "b"),
    ]
    stage.run(stage.ops.cancel(["a"]))
    stage.bury(job("c", lock=Lock("until_executed", "l", 0, "return")))
    stage.enqueue(job("d", lock=Lock("until_expired", "l", 60_000, "return"), expires_ms=5))
    stage.now_ms += 5
    assert logged(stage, stage.ops.revive(["c"], by="ann")) == [line("expire", "revive", "d")]


def test_a_lock_whose_job_no_longer_held_it(stage: Stage) -> None:
    stage.bury(locked("dead"))
    stage.client.set(stage.key("lock:k"), "d 0 nobody")
    told = {"keys": "k", "others": "nobody"}
    assert logged(stage, stage.ops.enqueue([locked("a"), locked("twin")])) == [
        line("takeover", "enqueue", "a", **told)
    ]
    stage.run(stage.ops.cancel(["a"]))
    stage.client.set(stage.key("lock:k"), "d 0 nobody")
    assert logged(stage, stage.ops.revive(["dead"], by="ann")) == [
        line("revive", "ann", "dead"),
        line("takeover", "revive", "dead", **told),
    ]


def test_its_own_pointer_is_no_takeover(stage: Stage) -> None:
    stage.bury(locked("a"))
    stage.client.set(stage.key("lock:k"), "d 0 a")
    assert logged(stage, stage.ops.revive(["a"], by="ann")) == [line("revive", "ann", "a")]


def test_a_usual_day_writes_none(stage: Stage) -> None:
    stage.enqueue(job("a"), locked("b"), locked("c"), once("e", "l"), job("d", delay_ms=5, expires_ms=50))
    stage.settle("retry", stage.claim()[0], delay_ms=1, error="e", traceback="t")
    stage.settle("bury", stage.claim()[0], reason="failed", error="e", traceback="t")
    stage.now_ms += 10
    for claim in stage.claim(9):
        stage.settle("done", claim)
    stage.enqueue(locked("f"), once("g", "l"))
    stage.run(stage.ops.heartbeat("w1", LEASE_MS, 3, []))
    stage.run(stage.ops.leave("w1", []))
    assert {"changelog", "events"}.isdisjoint(stage.world())


# Who, when, and how much.


def test_its_time_is_the_scripts(stage: Stage) -> None:
    stage.enqueue(job("a"))
    stage.now_ms = 10**14
    stage.run(stage.ops.cancel(["a"]))
    assert stage.world()["changelog"][0]["at"] == "100000000000000"


def test_asked_again_in_its_lane_it_writes_none(stage: Stage) -> None:
    stage.enqueue(locked("a"), job("b"))
    for lane, call in enumerate(
        (
            stage.ops.cancel(["b"]),
            stage.ops.pause("sales", 0),
            stage.ops.enqueue([locked("c", on_conflict="reject")]),
            stage.ops.release(["k"], force=True),
            stage.ops.purge("sales"),
        )
    ):
        count = sum(len(stage.world().get(stream, ())) for stream in ("changelog", "events"))
        stage.sent(call, str(lane))
        before = stage.world()
        assert sum(len(before.get(stream, ())) for stream in ("changelog", "events")) == count + 1
        stage.sent(call, str(lane))
        assert stage.world() == before


def test_a_line_is_bounded_and_says_how_many(stage: Stage) -> None:
    short, long = [f"{n:020}" for n in range(300)], ["x" * 96 + f"{n:04}" for n in range(300)]
    for ids, named in ((short, 114), (long, 23)):
        stage.enqueue(*(job(id) for id in ids))
        (found,) = logged(stage, stage.ops.cancel(ids, by="ann"))
        assert (found["count"], found["ids"].split("\0")) == ("300", ids[:named])
        assert len(found["ids"]) <= 2400


@pytest.mark.parametrize("stream", ["changelog", "events"])
def test_a_foreign_type_stops_no_action(stage: Stage, stream: str) -> None:
    stage.client.set(stage.key(stream), "mine")
    stage.enqueue(job("c", expires_ms=1), locked("a"), job("b"))
    stage.worker()
    stage.now_ms += 1
    assert stage.enqueue(locked("d", on_conflict="reject"))[0].outcome == "rejected"
    assert [claim.id for claim in stage.claim(1)] == ["a"]
    for call, answer in (
        (stage.ops.cancel(["b"]), ["cancelled"]),
        (stage.ops.pause("sales", 0), "paused"),
        (stage.ops.release(["k"], force=True), [("released", "a")]),
        (stage.ops.recover(3, ["w1"]), (1, 0)),
        (stage.ops.purge("sales"), (1, 0, 0)),
        (stage.ops.revive(["d"]), [("revived", "")]),
        (stage.ops.delete(["d"]), ["deleted"]),
    ):
        assert stage.run(call) == answer
    assert stage.client.get(stage.key(stream)) == b"mine"
    found = stage.run(stage.ops.changes(look_max=100))
    acts = {one["act"] for one in found.lines}
    assert acts == ({"expire", "reject"} if stream == "changelog" else acts & set(ACTS[:10]))
    assert found.count == len(found.lines) > 0


@pytest.mark.parametrize("most", [0, 1000])
def test_it_is_capped(real_stage: Stage, most: int) -> None:
    """A real server trims whole nodes of a stream, of at most 100 lines."""
    stage = real_stage
    stage.set(changelog_max=most)
    stage.enqueue(job("a"))
    for _ in range(most + 300):
        stage.run(stage.ops.pause("sales", 0, "ann"))
    length = stage.client.xlen(stage.key("changelog"))
    assert length == 0 if most == 0 else most <= length < most + 100


def test_a_bound_that_was_lowered_is_kept_with_the_next_lines(real_stage: Stage) -> None:
    stage = real_stage
    stage.enqueue(job("a"))
    for _ in range(500):
        stage.run(stage.ops.pause("sales", 0, "ann"))
    stage.set(changelog_max=0)
    stage.run(stage.ops.pause("sales", 0, "ann"))
    assert stage.client.xlen(stage.key("changelog")) == 0
    assert stage.run(stage.ops.changes()).lines == []


@pytest.fixture
def real_stage(real_server: Any) -> Stage:
    return Stage(real_server)


# The reader.


@pytest.fixture
def lines(stage: Stage) -> list[dict[str, str]]:
    """15 lines in both streams, the newest first."""
    stage.worker()
    acts: list[Callable[[int], Call[Any]]] = [
        lambda n: stage.ops.pause("sales", 0, f"ann {n}"),
        lambda n: stage.ops.enqueue([locked(f"r{n}", on_conflict="reject")]),
        lambda n: stage.ops.cancel([f"c{n}"], by="bob"),
    ]
    written = []
    stage.enqueue(locked("holder"))
    for n in range(15):
        stage.enqueue(job(f"c{n}"))
        stage.did(acts[n % 3](n))
        (one,) = stage.logged
        written.append({**one, "at": "1000"})
    return written[::-1]


def test_pages_hold_each_line_once(stage: Stage, lines: list[dict[str, str]]) -> None:
    for limit in (1, 2, 7, 15, 100):
        seen: list[Any] = []
        cursor = ""
        while True:
            page = stage.run(stage.ops.changes(cursor, limit, limit))
            assert (page.count, page.now_ms) == (15, 1000)
            assert page.looked == len(page.lines) <= limit
            seen += page.lines
            cursor = page.next
            if not cursor:
                break
        # Within one millisecond nobody knows which of two streams was written first.
        assert sorted(seen, key=str) == sorted(lines, key=str)
        for stream in ({"pause", "cancel"}, {"reject"}):
            assert [one for one in seen if one["act"] in stream] == [
                one for one in lines if one["act"] in stream
            ]


def test_the_newest_first_over_both_streams(stage: Stage) -> None:
    for stream, at in (("changelog", 1), ("events", 1), ("events", 2), ("changelog", 3), ("events", 10)):
        stage.client.xadd(stage.key(stream), {"act": f"{stream} {at}"}, id=f"{at}-0")
    told = ["events 10", "changelog 3", "events 2", "changelog 1", "events 1"]
    assert [one["act"] for one in stage.run(stage.ops.changes()).lines] == told
    seen, cursor = [], ""
    while not seen or cursor:
        page = stage.run(stage.ops.changes(cursor, 1, 1))
        seen += [one["act"] for one in page.lines]
        cursor = page.next
    assert seen == told


def test_filters_look_at_no_more_than_they_may(stage: Stage, lines: list[dict[str, str]]) -> None:
    ops = stage.ops
    found = stage.run(ops.changes("", 2, 100, act="cancel"))
    assert [one["ids"] for one in found.lines] == ["c14", "c11"]
    found = stage.run(ops.changes(found.next, 100, 100, act="cancel"))
    assert ([one["ids"] for one in found.lines], found.next) == (["c8", "c5", "c2"], "")
    found = stage.run(ops.changes("", 100, 4, job_id="c2"))
    assert (found.lines, found.looked) == ([], 4)
    found = stage.run(ops.changes(found.next, 100, 100, job_id="c2"))
    assert [one["act"] for one in found.lines] == ["cancel"]
    assert len(stage.run(ops.changes(job_id="holder")).lines) == 5  # of a reject also who was in the way
    assert stage.run(ops.changes(job_id="c")).lines == []
    assert stage.run(ops.changes(job_id="c2", act="reject")).lines == []


def test_a_line_that_is_not_ours_is_shown_as_it_is(stage: Stage) -> None:
    stage.client.xadd(stage.key("events"), {"ours": "no", b"\xff": b"\xff"})
    assert stage.run(stage.ops.changes()).lines == [{"ours": "no", "\ufffd": "\ufffd"}]
    assert stage.run(stage.ops.changes(act="cancel")).lines == []


def test_nothing_yet(stage: Stage) -> None:
    found = stage.run(stage.ops.changes())
    assert (found.lines, found.count, found.looked, found.next) == ([], 0, 0, "")
