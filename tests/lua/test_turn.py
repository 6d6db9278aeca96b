"""turn: every way a job ends, what is claimed and in which order, and what happens to what cannot run."""

import pytest

from rqlite_jobs.errors import ScriptFailed
from rqlite_jobs.operations import Settlement
from tests.lua.stage import (
    FOREIGN_QUEUE,
    LEASE_MS,
    NONCE,
    PAYLOAD,
    UNREADABLE,
    Stage,
    job,
    locked,
    nearly,
    once,
    record,
    tries,
)

DAY_MS = 86_400_000
TOKEN = f"1000000-{NONCE}"


def claimed(
    stage: Stage, *, start: int = 9, hand: int = 0, queues: tuple[str, ...] = ("sales",), **facts: bool
):  # type: ignore[no-untyped-def]
    return stage.did(stage.ops.turn("w1", NONCE, queues, [], start, hand, **facts))


def test_a_worker_without_a_lease_settles_but_gets_nothing(stage: Stage) -> None:
    stage.enqueue(job("a"), job("b"))
    claim = stage.claim()[0]
    stage.client.zrem(stage.key("workers"), "w1")
    answer, changed = stage.did(
        stage.ops.turn("w1", NONCE, ["sales"], [Settlement("done", "a", claim.token)], 5)
    )
    assert (answer.registered, answer.claims, answer.refused) == (False, [], {})
    assert changed == {
        "running:w1": {"a": ("s" + TOKEN, None)},
        "done": (None, ["a"]),
        "ends": {"a": (None, "1000 1000")},
        "totals": {"done": (None, "1")},
    }


def test_nothing_to_do_changes_nothing(stage: Stage) -> None:
    stage.worker()
    answer, changed = claimed(stage)
    assert (answer.registered, answer.now_ms, answer.next_due_ms, answer.left) == (True, 1000, 0, False)
    assert (answer.claims, answer.refused, changed) == ([], {}, {})


def test_a_claim(stage: Stage) -> None:
    stage.enqueue(job("a"), locked("b"))
    stage.worker()
    answer, changed = claimed(stage)
    assert [
        (one.id, one.token, one.body, one.attempts, one.crashes, one.putoffs) for one in answer.claims
    ] == [
        ("a", TOKEN, b"", 0, 0, 0),
        ("b", f"1000001-{NONCE}", b"", 0, 0, 0),
    ]
    assert answer.claims[0].record == record(job("a")).encode()
    assert changed == {
        "ready:sales:0": (["b", "a"], None),
        "running:w1": {"a": (None, "s" + TOKEN), "b": (None, f"S1000001-{NONCE}")},
        "where": {"b": (None, "w1")},
        "fence": (None, "1000001"),
    }


def test_what_starts_and_what_goes_to_the_hand(stage: Stage) -> None:
    stage.enqueue(job("a"), locked("b"), job("c"), locked("d", "k2"), job("e"))
    stage.worker()
    answer, changed = claimed(stage, start=2, hand=2)
    assert [one.id for one in answer.claims] == ["a", "b", "c", "d"]
    assert answer.left
    kinds = {one: entry[1][0] for one, entry in changed["running:w1"].items()}
    assert kinds == {"a": "s", "b": "S", "c": "h", "d": "H"}


def test_two_claims_never_get_the_same_job(stage: Stage) -> None:
    stage.enqueue(*(job(f"{n:03}") for n in range(100)))
    seen: list[str] = []
    for worker in ("w1", "w2", "w3", "w1"):
        seen += [one.id for one in stage.claim(30, worker=worker, nonce=worker[-1] * 11)]
    assert seen == [f"{n:03}" for n in range(100)]


def test_queues_in_the_order_asked_for(stage: Stage) -> None:
    stage.enqueue(job("s1"), job("m1", "mail"), job("s2"), job("m2", "mail"), job("x", "other"))
    stage.worker()
    answer, changed = claimed(stage, start=3, queues=("mail", "sales", "none"))
    assert [one.id for one in answer.claims] == ["m1", "m2", "s1"]
    assert answer.left
    assert set(changed) == {"ready:mail:0", "ready:sales:0", "running:w1", "fence"}


def test_a_large_payload_comes_along(stage: Stage) -> None:
    stage.enqueue(job("a"), job("b", payload="x" * 3000))
    first, second = stage.claim(2)
    assert (first.body, second.body) == (b"", b"x" * 3000)
    assert second.record == record(job("b"), payload="").encode()


def test_the_fence_only_grows(stage: Stage) -> None:
    stage.enqueue(job("a"), job("b"), job("c"))
    stage.client.set(stage.key("fence"), 5_000_000)
    assert stage.claim(2)[1].token == f"5000002-{NONCE}"
    stage.now_ms = 6000
    assert stage.claim()[0].token == f"6000000-{NONCE}"


def test_a_fence_that_is_no_number_loses_no_job(stage: Stage) -> None:
    stage.enqueue(job("a"))
    stage.client.set(stage.key("fence"), "mine")
    assert stage.claim()[0].token == TOKEN


def test_more_than_one_portion(stage: Stage) -> None:
    stage.enqueue(*(job(f"{n:04}") for n in range(1000)))
    stage.enqueue(*(job(f"{n:04}") for n in range(1000, 1500)))
    claims = stage.claim(1500)
    assert [one.id for one in claims] == [f"{n:04}" for n in range(1500)]
    settled = [Settlement("done", one.id, one.token) for one in claims]
    stage.set(done_max_count=7)
    stage.run(stage.ops.turn("w1", NONCE, [], settled, 0))
    after = stage.world()
    assert after["totals"] == {"enqueued": "1500", "done": "1500"}
    assert len(after["jobs"]) == len(after["ends"]) == len(after["done"]) == 7
    assert "running:w1" not in after


# Due times.


def test_a_job_for_t_100_is_not_claimable_at_50_and_is_at_100(stage: Stage) -> None:
    stage.now_ms = 0
    stage.enqueue(job("a", run_at_ms=100))
    stage.now_ms = 50
    stage.worker()
    answer, changed = claimed(stage)
    assert (answer.claims, answer.next_due_ms, changed) == ([], 100, {})
    stage.now_ms = 100
    answer, changed = claimed(stage)
    assert ([one.id for one in answer.claims], answer.next_due_ms) == (["a"], 0)
    assert changed["scheduled:sales"] == {"a": (100, None)}


def test_what_is_due_first_runs_first_and_behind_what_waits(stage: Stage) -> None:
    stage.enqueue(job("late", delay_ms=20), job("soon", delay_ms=10), job("now"), job("far", delay_ms=5000))
    stage.now_ms = 1020
    stage.worker()
    answer, _ = claimed(stage)
    assert [one.id for one in answer.claims] == ["now", "soon", "late"]
    assert answer.next_due_ms == 6000


def test_at_most_a_hundred_due_jobs_a_call(stage: Stage) -> None:
    stage.enqueue(*(job(f"a{n:03}", delay_ms=1) for n in range(70)))
    stage.enqueue(*(job(f"b{n:03}", "mail", delay_ms=1) for n in range(70)))
    stage.now_ms = 2000
    stage.worker()
    answer, _ = claimed(stage, start=200, queues=("sales", "mail"))
    assert (len(answer.claims), answer.next_due_ms) == (100, 1001)
    assert len(claimed(stage, start=200, queues=("sales", "mail"))[0].claims) == 40


def test_the_earliest_due_time_of_all_queues(stage: Stage) -> None:
    stage.enqueue(job("a", delay_ms=900), job("b", "mail", delay_ms=300), job("c", "other", delay_ms=5))
    stage.worker()
    assert claimed(stage, queues=("sales", "mail"))[0].next_due_ms == 1300


# Waking.


def test_the_baton_is_passed_on_while_something_is_left(stage: Stage) -> None:
    stage.enqueue(job("a"), job("b"))
    stage.client.delete(stage.key("wake:sales"))  # a waiter took it, and now takes its turn
    stage.worker()
    assert claimed(stage, start=1)[1]["wake:sales"] == (None, ["1"])
    stage.client.delete(stage.key("wake:sales"))
    assert "wake:sales" not in claimed(stage, start=1)[1]


@pytest.mark.parametrize(
    ("delay_ms", "last_idle", "woken"), [(5000, True, True), (5001, True, False), (5000, False, False)]
)
def test_a_near_due_time_is_not_left_without_a_waiter(
    stage: Stage, delay_ms: int, last_idle: bool, woken: bool
) -> None:
    stage.enqueue(job("a"), job("b", delay_ms=delay_ms), job("m", "mail"))
    stage.client.delete(stage.key("wake:sales"), stage.key("wake:mail"))
    stage.worker()
    _, changed = claimed(stage, last_idle=last_idle, queues=("sales", "mail"))
    assert ("wake:sales" in changed, "wake:mail" in changed) == (woken, False)


# Every way a job ends.


def test_done(stage: Stage) -> None:
    stage.enqueue(locked("a"), job("b"))
    claims = stage.claim(2)
    stage.now_ms = 1250
    answer, changed = stage.did(
        stage.ops.turn("w1", NONCE, [], [Settlement("done", c.id, c.token) for c in claims], 0)
    )
    assert answer.refused == {}
    assert changed == {
        "running:w1": {"a": (f"S{TOKEN}", None), "b": (f"s1000001-{NONCE}", None)},
        "where": {"a": ("w1", None)},
        "lock:k": ("d 0 a", None),
        "locks": {"k": (float("inf"), None)},
        "done": (None, ["b", "a"]),
        "ends": {"a": (None, "1000 1250"), "b": (None, "1000 1250")},
        "totals": {"done": (None, "2")},
    }


def test_done_keeps_until_expired(stage: Stage) -> None:
    stage.finish(once("a"))
    after = stage.world()
    assert (after["lock:k"], after["locks"]) == ("e 61000 a", {"k": 61000})
    assert "where" not in after


def test_done_after_its_time_lets_go_of_until_expired(stage: Stage) -> None:
    stage.enqueue(once("a", ttl_ms=100))
    claim = stage.claim()[0]
    stage.now_ms = 1100
    stage.settle("done", claim)
    assert {"lock:k", "locks"}.isdisjoint(stage.world())


def test_done_leaves_the_lock_of_another(stage: Stage) -> None:
    stage.enqueue(locked("a"))
    claim = stage.claim()[0]
    stage.client.set(stage.key("lock:k"), "d 0 z")
    stage.settle("done", claim)
    assert stage.world()["lock:k"] == "d 0 z"


def test_history_costs_a_constant(stage: Stage) -> None:
    stage.set(done_max_count=2)
    stage.finish(job("a"), job("b", payload="x" * 3000))
    stage.enqueue(job("c"), job("d"))
    claims = stage.claim(2)
    _, changed = stage.did(
        stage.ops.turn("w1", NONCE, [], [Settlement("done", c.id, c.token) for c in claims], 0)
    )
    assert changed["done"] == (["b", "a"], ["d", "c"])
    assert changed["bodies"] == {"b": ("x" * 3000, None)}
    after = stage.world()
    assert sorted(after["jobs"]) == sorted(after["ends"]) == ["c", "d"]


def test_no_history(stage: Stage) -> None:
    stage.set(done_max_count=0)
    stage.finish(job("a"))
    left = {key for key in stage.world() if not key.startswith("lane:")}
    assert left == {"queues", "totals", "wake:sales", "fence", "workers", "worker:w1"}


def settled(stage: Stage, settlement: Settlement):  # type: ignore[no-untyped-def]
    return stage.did(stage.ops.turn("w1", NONCE, [], [settlement], 0))


def test_retry(stage: Stage) -> None:
    stage.enqueue(locked("a"))
    claim = stage.claim()[0]
    stage.client.delete(stage.key("wake:sales"))
    stage.now_ms = 1300
    answer, changed = settled(stage, Settlement("retry", "a", claim.token, 2000, "", "E\0x", "at line 1"))
    assert answer.refused == {}
    assert changed == {
        "running:w1": {"a": (f"S{TOKEN}", None)},
        "where": {"a": ("w1", None)},
        "jobs": {"a": (record(locked("a")), record(locked("a"), since_ms=3300))},
        "scheduled:sales": {"a": (None, 3300)},
        "tries": {"a": (None, tries(attempts=1, started_ms=1000, error="E\0x"))},
        "errors": {"a": (None, "at line 1")},
        "totals": {"failed": (None, "1")},
        "wake:sales": (None, ["1"]),
    }
    stage.now_ms = 3300
    again = stage.claim()[0]
    assert (again.attempts, again.crashes) == (1, 0)
    settled(stage, Settlement("retry", "a", again.token, 0, "", "second", "at line 2"))
    assert stage.world()["tries"] == {"a": tries(attempts=2, started_ms=3300, error="second")}
    assert stage.world()["scheduled:sales"] == {"a": 3300}


def test_bury(stage: Stage) -> None:
    stage.enqueue(locked("a"))
    claim = stage.claim()[0]
    stage.now_ms = 1300
    _, changed = settled(
        stage, Settlement("bury", "a", claim.token, 0, "failed", "ValueError('bad')", "at x")
    )
    assert changed == {
        "running:w1": {"a": (f"S{TOKEN}", None)},
        "where": {"a": ("w1", None)},
        "lock:k": ("d 0 a", None),
        "locks": {"k": (float("inf"), None)},
        "dead": (None, ["a"]),
        "tries": {
            "a": (
                None,
                tries(attempts=1, died_ms=1300, started_ms=1000, reason="failed", error="ValueError('bad')"),
            )
        },
        "errors": {"a": (None, "at x")},
        "totals": {"failed": (None, "1"), "died": (None, "1")},
    }


def test_bury_without_a_traceback_keeps_that_of_the_failure_before(stage: Stage) -> None:
    stage.enqueue(job("a"))
    stage.settle("retry", stage.claim()[0], error="E", traceback="tb")
    stage.settle("bury", stage.claim()[0], reason="buried", error="enough")
    assert (stage.looked("a").traceback, stage.looked("a").tries.error) == ("tb", "enough")


def test_bury_as_malformed_counts_no_attempt(stage: Stage) -> None:
    stage.enqueue(job("a"))
    stage.settle("bury", stage.claim()[0], reason="malformed", error="no JSON")
    after = stage.world()
    assert after["tries"] == {"a": tries(died_ms=1000, started_ms=1000, reason="malformed", error="no JSON")}
    assert after["totals"] == {"enqueued": "1", "died": "1"}


def test_bury_keeps_until_expired(stage: Stage) -> None:
    stage.bury(once("a"))
    assert stage.world()["lock:k"] == "e 61000 a"


def test_the_dead_are_capped_by_count(stage: Stage) -> None:
    stage.set(dead_max_count=2)
    stage.bury(job("a"), job("b", payload="x" * 3000), job("c"))
    after = stage.world()
    assert after["dead"] == ["c", "b"]
    assert sorted(after["jobs"]) == sorted(after["tries"]) == sorted(after["errors"]) == ["b", "c"]
    assert after["totals"]["deleted"] == "1"


def test_the_dead_are_capped_by_age(stage: Stage) -> None:
    stage.bury(job("a"), job("b"))
    stage.now_ms = 1000 + 180 * DAY_MS - 1
    stage.bury(job("c"))
    assert stage.world()["dead"] == ["c", "b", "a"]
    stage.now_ms += 1
    stage.bury(job("d"))
    assert stage.world()["dead"] == ["d", "c"]


def test_snooze(stage: Stage) -> None:
    stage.enqueue(locked("a"))
    _, changed = settled(stage, Settlement("snooze", "a", stage.claim()[0].token, 700))
    assert set(changed) == {"running:w1", "where", "jobs", "scheduled:sales"}
    assert changed["scheduled:sales"] == {"a": (None, 1700)}


def test_putoff_counts_itself_only(stage: Stage) -> None:
    stage.enqueue(job("a"))
    for number in (1, 2):
        claim = stage.claim()[0]
        assert claim.putoffs == number - 1
        _, changed = settled(stage, Settlement("putoff", "a", claim.token, 1000))
        assert set(changed) == {"running:w1", "jobs", "scheduled:sales", "tries"}
        assert changed["tries"]["a"][1] == tries(putoffs=number)
        stage.now_ms += 1000


def test_back_to_the_head(stage: Stage) -> None:
    stage.enqueue(locked("a"), job("b"), job("c"))
    first, second = stage.claim(2)
    stage.settle("back", second)
    _, changed = settled(stage, Settlement("back", "a", first.token))
    assert changed == {
        "running:w1": {"a": (f"S{TOKEN}", None)},
        "where": {"a": ("w1", None)},
        "ready:sales:0": (["c", "b"], ["c", "b", "a"]),
    }


def test_all_endings_in_one_turn_and_a_claim_behind_them(stage: Stage) -> None:
    words = ("done", "retry", "bury", "snooze", "putoff", "back", "done")
    stage.enqueue(*(job(f"{n}{word}") for n, word in enumerate(words)))
    claims = stage.claim(7)
    stage.now_ms = 2000
    ends = [
        Settlement(word, c.id, c.token, 100, "failed", "E", "tb")
        for word, c in zip(words, claims, strict=True)
    ]
    answer = stage.run(stage.ops.turn("w1", "m" * 11, ["sales"], ends, 5))
    assert [one.id for one in answer.claims] == ["5back"]
    after = stage.world()
    assert after["done"] == ["6done", "0done"]
    assert after["dead"] == ["2bury"]
    assert after["scheduled:sales"] == {"1retry": 2100, "3snooze": 2100, "4putoff": 2100}
    assert list(after["running:w1"]) == ["5back"]


# Tokens.


@pytest.mark.parametrize("word", ["done", "retry", "bury", "snooze", "putoff", "back"])
@pytest.mark.parametrize("token", [f"999999-{NONCE}", f"1000000-{'m' * 11}", "", "mine"])
def test_a_token_that_is_not_the_jobs_changes_nothing(stage: Stage, word: str, token: str) -> None:
    stage.enqueue(locked("a"))
    stage.claim()
    answer, changed = settled(stage, Settlement(word, "a", token, 5, "failed", "E", "tb"))
    assert (answer.refused, changed) == ({"a": "stale"}, {})


@pytest.mark.parametrize("word", ["done", "retry"])
def test_settled_twice(stage: Stage, word: str) -> None:
    stage.enqueue(job("a"))
    claim = stage.claim()[0]
    stage.settle(word, claim, delay_ms=100)
    answer, changed = settled(stage, Settlement(word, "a", claim.token, 100))
    assert (answer.refused, changed) == ({"a": "stale"}, {})
    answer, changed = stage.did(
        stage.ops.turn("w1", NONCE, [], [Settlement(word, "a", claim.token, 100)], 0).again()
    )
    assert (answer.refused, changed) == ({"a": "gone"}, {})


def test_a_good_settlement_beside_a_stale_one(stage: Stage) -> None:
    stage.enqueue(job("a"), job("b"))
    first, _ = stage.claim(2)
    ends = [
        Settlement("done", "b", "1-x"),
        Settlement("done", "a", first.token),
        Settlement("done", "z", "1-x"),
    ]
    answer = stage.run(stage.ops.turn("w1", NONCE, [], ends, 0))
    assert answer.refused == {"b": "stale", "z": "stale"}
    assert (stage.state("a"), stage.state("b")) == ("done", "running")


def test_a_job_run_anew_is_not_settled_by_its_first_owner(stage: Stage) -> None:
    stage.enqueue(job("a"))
    old = stage.claim(worker="w1")[0]
    stage.run(stage.ops.recover(3, ["w1"]))
    new = stage.claim(worker="w2", nonce="m" * 11)[0]
    assert stage.settle("done", old) == {"a": "stale"}
    assert stage.settle("done", new, worker="w2") == {}


# Asked again.


def test_asked_again_it_gives_the_same_jobs_in_the_same_order(stage: Stage) -> None:
    stage.enqueue(*(job(f"{n:03}", payload="x" * 3000 if n % 2 else PAYLOAD) for n in range(600)))
    stage.worker()
    call = stage.ops.turn("w1", NONCE, ["sales"], [], 10, 590)
    first = stage.run(call)
    answer, changed = stage.did(call.again())
    assert answer.claims == first.claims
    assert (changed, answer.left) == ({}, True)


def test_asked_again_it_claims_if_the_first_never_arrived(stage: Stage) -> None:
    stage.enqueue(job("a"), job("b"))
    stage.worker()
    answer = stage.run(stage.ops.turn("w1", NONCE, ["sales"], [], 1).again())
    assert [one.id for one in answer.claims] == ["a"]


def test_asked_again_it_gives_nothing_of_another_turn(stage: Stage) -> None:
    stage.enqueue(job("a"), job("b"))
    stage.claim(nonce="m" * 11)
    answer = stage.run(stage.ops.turn("w1", NONCE, ["sales"], [], 5).again())
    assert [one.id for one in answer.claims] == ["b"]


# What cannot run.


@pytest.mark.parametrize(
    "text",
    [
        "",
        "mine",
        "{}",
        "2\0sales\0000\0001000\0\0x",
        "1\0sales\0000",
        "1\0\0000\0001000\0\0x",
        "1\0sales\00010\0001000\0\0x",
        "1\0sales\0000\0soon\0\0x",
        "1\0sales\0000\0001000\0",
        "1\0sales\0000\0001000\0md\0\0x",
        "1\0sales\0000\0001000\0kk\0\0x",
        "1\0sales\0000\0001000\0M\0\0x",
        "\xff\0\xfe",
    ],
)
def test_a_malformed_record_is_buried_and_the_claim_goes_on(stage: Stage, text: str) -> None:
    stage.enqueue(job("a"), job("b"), job("c"))
    stage.client.hset(stage.key("jobs"), "b", text.encode("latin-1"))
    stage.worker()
    answer, changed = claimed(stage)
    assert [one.id for one in answer.claims] == ["a", "c"]
    assert "jobs" not in changed  # its bytes are kept
    assert changed["dead"] == (None, ["b"])
    assert changed["tries"] == {"b": (None, tries(died_ms=1000, reason="malformed", error=UNREADABLE))}
    assert changed["totals"] == {"died": (None, "1")}


def test_a_malformed_record_among_the_scheduled(stage: Stage) -> None:
    stage.enqueue(job("a", delay_ms=1))
    stage.client.hset(stage.key("jobs"), "a", "mine")
    stage.now_ms = 1001
    stage.worker()
    answer, changed = claimed(stage)
    assert (answer.claims, changed["dead"], changed["scheduled:sales"]) == (
        [],
        (None, ["a"]),
        {"a": (1001, None)},
    )


@pytest.mark.parametrize("word", ["done", "retry", "bury", "snooze", "putoff", "back"])
def test_a_record_that_became_unreadable_while_it_ran(stage: Stage, word: str) -> None:
    stage.enqueue(locked("a"))
    claim = stage.claim()[0]
    stage.client.hset(stage.key("jobs"), "a", "mine")
    assert stage.settle(word, claim, reason="failed", error="E") == {}
    after = stage.world()
    assert {"running:w1", "where"}.isdisjoint(after)
    if word == "done":
        assert after["done"] == ["a"]
    else:
        assert after["dead"] == ["a"]
        assert stage.looked("a").tries.reason == "malformed"


@pytest.mark.parametrize("place", ["list", "due"])
def test_an_id_without_a_record_is_dropped(stage: Stage, place: str) -> None:
    stage.enqueue(job("a"))
    if place == "list":
        stage.client.rpush(stage.key("ready:sales:0"), "ghost")
    else:
        stage.client.zadd(stage.key("scheduled:sales"), {"ghost": 5})
    stage.worker()
    answer, _ = claimed(stage)
    assert [one.id for one in answer.claims] == ["a"]
    assert {"ready:sales:0", "scheduled:sales", "dead"}.isdisjoint(stage.world())


def test_tombs_are_dropped_on_the_way_past_them(stage: Stage) -> None:
    stage.enqueue(*(job(name) for name in "abcdef"))
    stage.run(stage.ops.cancel(["a", "c", "e"]))
    stage.worker()
    answer, changed = claimed(stage, start=2)
    assert [one.id for one in answer.claims] == ["b", "d"]
    assert changed["tombs:sales"] == {"a": ("1", None), "c": ("1", None)}
    assert changed["ready:sales:0"] == (["f", "e", "d", "c", "b", "a"], ["f", "e"])


def test_a_job_that_has_crashed_never_goes_to_a_hand(stage: Stage) -> None:
    stage.enqueue(job("a"), job("b"), job("c"))
    stage.client.hset(stage.key("tries"), "b", tries(attempts=1, crashes=1))
    stage.worker()
    answer, _ = claimed(stage, start=1, hand=5)
    assert [one.id for one in answer.claims] == ["a"]
    assert answer.left
    answer, _ = claimed(stage, start=1, hand=5)
    assert [(one.id, one.crashes) for one in answer.claims] == [("b", 1), ("c", 0)]
    assert not answer.left


def test_an_unreadable_entry_of_tries_is_that_of_a_job_that_never_failed(stage: Stage) -> None:
    stage.enqueue(job("a"))
    stage.client.hset(stage.key("tries"), "a", "mine")
    claim = stage.claim()[0]
    assert (claim.attempts, claim.crashes, claim.putoffs) == (0, 0, 0)
    stage.settle("retry", claim, error="E")
    assert stage.looked("a").tries.attempts == 1


# Keys of a foreign type.


@pytest.mark.parametrize("key", ["ready:bad:0", "scheduled:bad", "tombs:bad", "wake:bad"])
def test_a_queue_of_a_foreign_type_does_not_stop_the_others(stage: Stage, key: str) -> None:
    stage.client.set(stage.key(key), "mine")
    stage.enqueue(job("a"))
    stage.worker()
    answer, _ = claimed(stage, queues=("bad", "sales"), last_idle=True)
    assert [one.id for one in answer.claims] == ["a"]
    assert stage.world()[key] == "mine"
    assert not answer.left


@pytest.mark.parametrize("score", ["inf", "1e300", "9007199254740992"])
def test_a_score_beyond_all_time_is_not_waited_for(stage: Stage, score: str) -> None:
    stage.client.zadd(stage.key("scheduled:sales"), {"planted": float(score)})
    stage.worker()
    assert claimed(stage)[0].next_due_ms == 0
    stage.enqueue(job("a", "mail", delay_ms=50))
    assert claimed(stage, queues=("sales", "mail"))[0].next_due_ms == 1050


def test_due_jobs_stay_scheduled_while_their_list_is_of_a_foreign_type(stage: Stage) -> None:
    stage.enqueue(job("a", delay_ms=1))
    stage.client.set(stage.key("ready:sales:0"), "mine")
    stage.now_ms = 1001
    stage.worker()
    assert claimed(stage)[1] == {}
    stage.client.delete(stage.key("ready:sales:0"))
    assert [one.id for one in claimed(stage)[0].claims] == ["a"]


@pytest.mark.parametrize("word", ["retry", "snooze", "putoff", "back"])
@pytest.mark.parametrize("key", ["ready:sales:0", "scheduled:sales"])
def test_a_job_that_its_queue_cannot_take_back_is_buried(stage: Stage, word: str, key: str) -> None:
    stage.enqueue(locked("a"))
    claim = stage.claim()[0]
    stage.client.delete(stage.key(key))
    stage.client.set(stage.key(key), "mine")
    assert stage.settle(word, claim, delay_ms=5) == {}
    after = stage.world()
    assert after["dead"] == ["a"]
    assert stage.looked("a").tries.error == FOREIGN_QUEUE
    assert {"running:w1", "where", "lock:k"}.isdisjoint(after)


@pytest.mark.parametrize("simulated", [True, False])
@pytest.mark.parametrize("word", ["done", "retry", "bury", "back"])
def test_a_lock_of_a_foreign_type_is_left_alone(stage: Stage, word: str, simulated: bool) -> None:
    stage.now_ms = 1000 if simulated else -1
    stage.enqueue(locked("a"))
    stage.client.delete(stage.key("lock:k"))
    stage.client.rpush(stage.key("lock:k"), "mine")
    claim = stage.claim()[0]
    assert claim.id == "a"
    assert stage.settle(word, claim, delay_ms=60_000, reason="failed") == {}
    assert stage.world()["lock:k"] == ["mine"]
    assert stage.state("a") == {"done": "done", "retry": "scheduled", "bury": "dead", "back": "ready"}[word]


# The server's own clock.


def test_the_net_under_a_lock_is_renewed_at_each_transition(stage: Stage) -> None:
    stage.now_ms = -1
    stage.enqueue(locked("a"), once("b", "k2", ttl_ms=DAY_MS))
    safety_ms = stage.ops.settings.lock_safety_ms

    def renewed(extra_ms: int = 0) -> bool:
        found = stage.ttls_ms()
        stage.client.pexpire(stage.key("lock:k"), DAY_MS)
        assert found["lock:k2"] <= DAY_MS  # its time is its own
        return nearly(found["lock:k"], safety_ms + extra_ms)

    assert renewed()
    claim, _ = stage.claim(2)
    assert renewed()
    stage.settle("back", claim)
    assert renewed()
    stage.settle("retry", stage.claim()[0], delay_ms=DAY_MS)
    assert renewed(DAY_MS)


def test_tokens_and_times_come_from_the_server(stage: Stage) -> None:
    seconds, micros = stage.client.time()
    stage.now_ms = -1
    stage.enqueue(job("a"))
    claim = stage.claim()[0]
    fence = int(claim.token.split("-")[0])
    assert 0 <= fence - (seconds * 1_000_000 + micros) < 100_000_000
    stage.settle("done", claim)
    started_ms, finished_ms = map(int, stage.world()["ends"]["a"].split())
    assert started_ms == fence // 1000 <= finished_ms
    assert set(stage.ttls_ms()) <= {"worker:w1"}
    assert stage.world()["workers"]["w1"] > finished_ms + LEASE_MS - 100_000


@pytest.mark.parametrize("word", ["bury", "retry"])
def test_a_foreign_key_in_the_place_of_the_dead_loses_no_job(stage: Stage, word: str) -> None:
    stage.worker()
    stage.enqueue(job("a"))
    (claim,) = stage.claim()
    stage.client.set(stage.key("dead"), "mine")
    before = stage.world()
    with pytest.raises(ScriptFailed, match="WRONGTYPE"):
        stage.run(stage.ops.turn("w1", NONCE, ["sales"], [Settlement(word, "a", claim.token)], 0))
    assert stage.world() == before
    stage.client.delete(stage.key("dead"))
    stage.run(stage.ops.turn("w1", NONCE, ["sales"], [Settlement(word, "a", claim.token)], 0))
    assert stage.run(stage.ops.look(["a"]))[0].state == {"bury": "dead", "retry": "ready"}[word]
