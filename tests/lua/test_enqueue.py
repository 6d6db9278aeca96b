"""enqueue: what is stored, what is refused, what is answered, and when nothing may have been written."""

import json

import pytest

from rqlite_jobs.errors import RqjError
from rqlite_jobs.job import NewJob, Record
from tests.lua.stage import PAYLOAD, Stage, job, locked, nearly, once, record, tries

SAFETY_MS = 30 * 86_400_000


def test_one_job(stage: Stage) -> None:
    answer, changed = stage.did(stage.ops.enqueue([job("a")]))
    assert [(one.outcome, one.id, one.state, one.now_ms) for one in answer] == [
        ("enqueued", "a", "ready", 1000)
    ]
    assert changed == {
        "jobs": {"a": (None, record(job("a")))},
        "queues": {"sales": (None, "0")},
        "ready:sales:0": (None, ["a"]),
        "totals": {"enqueued": (None, "1")},
        "wake:sales": (None, ["1"]),
    }
    assert stage.kept == "1000"
    raw = stage.client.hget(stage.key("jobs"), "a")
    assert Record.read(raw) == Record("sales", 0, 1000, payload=PAYLOAD.encode())


def test_many_jobs_keep_their_order_and_leave_one_token_a_queue(stage: Stage) -> None:
    jobs = [job("a"), job("b", "mail"), job("c"), job("d", "mail")]
    _, changed = stage.did(stage.ops.enqueue(jobs))
    assert changed["ready:sales:0"] == (None, ["c", "a"])  # the next one on the right
    assert changed["ready:mail:0"] == (None, ["d", "b"])
    assert changed["wake:sales"] == changed["wake:mail"] == (None, ["1"])
    assert changed["totals"] == {"enqueued": (None, "4")}
    _, changed = stage.did(stage.ops.enqueue([job("e")]))
    assert set(changed) == {"jobs", "ready:sales:0", "totals"}  # the token still lies there


def test_more_than_one_portion(stage: Stage) -> None:
    jobs = [
        job(f"{number:04}", payload=" " * 2049 if number % 400 == 0 else PAYLOAD) for number in range(1000)
    ]
    for batch in stage.ops.batches(jobs):
        stage.enqueue(*batch)
    after = stage.world()
    assert len(after["jobs"]) == len(after["ready:sales:0"]) == 1000
    assert after["ready:sales:0"][::-1] == [one.id for one in jobs]
    assert sorted(after["bodies"]) == ["0000", "0400", "0800"]


def test_due_times(stage: Stage) -> None:
    jobs = [
        job("in", delay_ms=5000),
        job("at", run_at_ms=1001),
        job("past", run_at_ms=999),
        job("now", delay_ms=0),
    ]
    answer, changed = stage.did(stage.ops.enqueue(jobs))
    assert [one.state for one in answer] == ["scheduled", "scheduled", "ready", "ready"]
    assert changed["scheduled:sales"] == {"in": (None, 6000), "at": (None, 1001)}
    assert changed["ready:sales:0"] == (None, ["now", "past"])


def test_a_new_first_wakes_and_a_later_one_does_not(stage: Stage) -> None:
    assert "wake:sales" in stage.did(stage.ops.enqueue([job("a", delay_ms=5000)]))[1]
    stage.client.delete(stage.key("wake:sales"))
    assert "wake:sales" not in stage.did(stage.ops.enqueue([job("b", delay_ms=6000)]))[1]
    assert "wake:sales" in stage.did(stage.ops.enqueue([job("c", delay_ms=4000)]))[1]


def test_a_scheduled_job_alone_is_as_asked(stage: Stage) -> None:
    answer = stage.enqueue(job("a", delay_ms=1))
    assert (answer[0].outcome, answer[0].state, stage.kept) == ("enqueued", "scheduled", "")


def test_a_time_of_fourteen_digits(stage: Stage) -> None:
    stage.now_ms = 10**14
    stage.enqueue(job("a"), job("b", delay_ms=10**14), locked("c", ttl_ms=5))
    after = stage.world()
    assert after["jobs"]["a"] == record(job("a"), 10**14)
    assert after["scheduled:sales"] == {"b": 2 * 10**14}
    assert after["lock:k"] == "d 100000000000005 c"


@pytest.mark.parametrize("size", [2048, 2049])
def test_a_large_payload_lies_apart(stage: Stage, size: int) -> None:
    big = job("a", payload="x" * size)
    _, changed = stage.did(stage.ops.enqueue([big]))
    apart = size > 2048
    assert changed["jobs"] == {"a": (None, record(big, payload="" if apart else None))}
    assert changed.get("bodies") == ({"a": (None, "x" * size)} if apart else None)


def test_a_payload_is_never_read(stage: Stage) -> None:
    payload = '\0\0{"a":[],"n":12345678901234567890}\0'
    stage.enqueue(job("a", payload=payload))
    assert stage.looked("a").record.endswith(b"\0\0" + payload.encode())
    assert stage.claim()[0].record == stage.looked("a").record


def test_a_lock_is_taken(stage: Stage) -> None:
    new = locked("a")
    _, changed = stage.did(stage.ops.enqueue([new]))
    assert changed["lock:k"] == (None, "d 0 a")
    assert changed["locks"] == {"k": (None, float("inf"))}
    assert changed["jobs"] == {"a": (None, record(new))}
    assert stage.ttls_ms() == {}


@pytest.mark.parametrize(("new", "mode"), [(locked("a", ttl_ms=500), "d"), (once("a", ttl_ms=500), "e")])
def test_a_lock_with_a_ttl_counts_from_the_enqueue(stage: Stage, new: NewJob, mode: str) -> None:
    _, changed = stage.did(stage.ops.enqueue([new]))
    assert changed["lock:k"] == (None, f"{mode} 1500 a")
    assert changed["locks"] == {"k": (None, 1500)}


def test_a_duplicate_is_answered_with_the_holder_and_changes_nothing(stage: Stage) -> None:
    stage.enqueue(locked("a"))
    answer, changed = stage.did(stage.ops.enqueue([locked("b")]))
    only = answer[0]
    assert (only.outcome, only.id, only.state, only.holder_id) == ("duplicate", "a", "ready", "a")
    assert Record.read(only.record) == Record("sales", 0, 1000, "until_executed", "k", 0, PAYLOAD.encode())
    assert changed == {"totals": {"refused": (None, "1")}}
    assert stage.kept == '1000[["duplicate","a","ready","a"]]'


@pytest.mark.parametrize("state", ["ready", "scheduled", "running"])
def test_a_lock_is_held_in_every_holding_state(stage: Stage, state: str) -> None:
    stage.enqueue(locked("a", delay_ms=9000 if state == "scheduled" else None))
    if state == "running":
        stage.claim()
    answer = stage.enqueue(locked("b"))
    assert (answer[0].outcome, answer[0].state) == ("duplicate", state)


def test_twins_in_one_batch(stage: Stage) -> None:
    answer, changed = stage.did(stage.ops.enqueue([locked("a"), job("x"), locked("b"), locked("c", "other")]))
    assert [(one.outcome, one.id) for one in answer] == [
        ("enqueued", "a"), ("enqueued", "x"), ("duplicate", "a"), ("enqueued", "c"),
    ]  # fmt: skip
    assert answer[2].record == record(locked("a")).encode()
    assert changed["ready:sales:0"] == (None, ["c", "x", "a"])
    assert changed["totals"] == {"enqueued": (None, "3"), "refused": (None, "1")}


def test_reject_lays_the_new_one_among_the_rejected(stage: Stage) -> None:
    stage.enqueue(locked("a"))
    new = locked("b", on_conflict="reject", payload="y" * 3000)
    answer, changed = stage.did(stage.ops.enqueue([new]))
    assert [(one.outcome, one.id, one.state, one.holder_id) for one in answer] == [
        ("rejected", "b", "dead", "a")
    ]
    assert changed == {
        "jobs": {"b": (None, record(new, payload=""))},
        "bodies": {"b": (None, "y" * 3000)},
        "rejected": (None, ["b"]),
        "tries": {"b": (None, tries(died_ms=1000, reason="duplicate", error="duplicate of a"))},
        "totals": {"enqueued": ("1", "2"), "refused": (None, "1"), "died": (None, "1")},
    }
    assert stage.world()["lock:k"] == "d 0 a"


def test_rejected_ones_are_capped_in_the_same_script(stage: Stage) -> None:
    stage.set(rejected_max_count=3)
    stage.enqueue(locked("a"))
    stage.enqueue(*(locked(f"r{n:03}", on_conflict="reject") for n in range(150)))
    after = stage.world()
    assert after["rejected"] == ["r149", "r148", "r147"]
    assert sorted(after["jobs"]) == ["a", "r147", "r148", "r149"]
    assert sorted(after["tries"]) == ["r147", "r148", "r149"]
    assert (after["totals"]["died"], after["totals"]["deleted"]) == ("150", "147")


def test_reject_of_a_twin(stage: Stage) -> None:
    answer = stage.enqueue(locked("a"), locked("b", on_conflict="reject"))
    assert [(one.outcome, one.holder_id) for one in answer] == [("enqueued", ""), ("rejected", "a")]


@pytest.mark.parametrize("end", ["done", "dead", "cancelled", "deleted", "forgotten"])
def test_a_pointer_whose_job_no_longer_holds_is_taken_over(stage: Stage, end: str) -> None:
    stage.enqueue(locked("a"))
    if end in ("done", "dead"):
        stage.settle({"done": "done", "dead": "bury"}[end], stage.claim()[0], reason="failed")
    elif end != "forgotten":
        stage.run(stage.ops.cancel(["a"]) if end == "cancelled" else stage.ops.delete(["a"]))
    else:
        stage.client.hdel(stage.key("jobs"), "a")
    stage.client.set(stage.key("lock:k"), "d 0 a")  # as if the script that ended the job had skipped it
    answer, changed = stage.did(stage.ops.enqueue([locked("b")]))
    assert answer[0].outcome == "enqueued"
    assert changed["lock:k"] == ("d 0 a", "d 0 b")


def test_until_expired_is_held_by_its_time_alone(stage: Stage) -> None:
    stage.finish(once("a", ttl_ms=500))
    stage.now_ms = 1499
    answer = stage.enqueue(once("b", ttl_ms=500))
    assert (answer[0].outcome, answer[0].id, answer[0].state) == ("duplicate", "a", "done")
    assert answer[0].record == record(once("a", ttl_ms=500)).encode()
    stage.run(stage.ops.delete(["a"]))
    answer = stage.enqueue(once("b", ttl_ms=500))
    assert (answer[0].id, answer[0].state, answer[0].record) == ("a", "unknown", b"")
    stage.now_ms = 1500
    assert stage.enqueue(once("b", ttl_ms=500))[0].outcome == "enqueued"
    assert stage.world()["lock:k"] == "e 2000 b"


def test_a_ttl_frees_the_key_although_the_job_lives(stage: Stage) -> None:
    stage.enqueue(locked("a", ttl_ms=500))
    stage.now_ms = 1500
    assert stage.enqueue(locked("b"))[0].outcome == "enqueued"
    stage.settle("done", stage.claim()[0])  # a, the older one, lets go of nothing that is not its own
    assert stage.world()["lock:k"] == "d 0 b"


def test_the_holders_mode_decides(stage: Stage) -> None:
    stage.finish(once("a", ttl_ms=500))
    assert stage.enqueue(locked("b"))[0].outcome == "duplicate"


def test_ttls_by_the_servers_clock(stage: Stage) -> None:
    stage.now_ms = -1
    stage.enqueue(locked("a"), locked("b", "k2", delay_ms=86_400_000), once("c", "k3", ttl_ms=600_000))
    left = stage.ttls_ms()
    assert sorted(left) == ["lock:k", "lock:k2", "lock:k3"]
    assert SAFETY_MS - 9_000 < left["lock:k"] <= SAFETY_MS
    assert SAFETY_MS + 86_400_000 - 9_000 < left["lock:k2"] <= SAFETY_MS + 86_400_001  # up to a whole ms
    assert nearly(left["lock:k3"], 600_000)


def test_a_met_lock_gets_its_net_back_when_half_of_it_is_gone(stage: Stage) -> None:
    stage.now_ms = -1
    stage.enqueue(locked("a"))
    stage.client.pexpire(stage.key("lock:k"), SAFETY_MS // 2 + 600_000)
    stage.enqueue(locked("b"))
    assert stage.ttls_ms()["lock:k"] < SAFETY_MS // 2 + 600_001
    stage.client.pexpire(stage.key("lock:k"), SAFETY_MS // 2 - 1)
    stage.enqueue(locked("b"))
    assert nearly(stage.ttls_ms()["lock:k"], SAFETY_MS)


def test_asked_again_in_its_lane(stage: Stage) -> None:
    call = stage.ops.enqueue([job("a"), locked("b"), locked("c"), locked("d", on_conflict="reject")])
    first = stage.sent(call)
    before = stage.world()
    assert stage.sent(call) == first
    assert stage.world() == before
    assert json.loads(before["lane:lane"].removeprefix("n" * 11 + "1000"))[2] == [
        "duplicate",
        "b",
        "ready",
        "b",
    ]
    with pytest.raises(Exception, match="RQJ_ID"):
        stage.sent(call, nonce="m" * 11)
    assert stage.world() == before


def test_asked_again_when_all_went_as_asked(stage: Stage) -> None:
    assert stage.sent(stage.ops.enqueue([job("a")])) == 1000
    stage.now_ms = 2000
    assert stage.sent(stage.ops.enqueue([job("a")])) == 1000
    assert stage.world()["ready:sales:0"] == ["a"]


def test_lanes_end_by_themselves(stage: Stage) -> None:
    stage.enqueue(job("a"))
    (lane,) = stage.client.keys(stage.key("lane:*"))
    assert nearly(stage.client.pttl(lane), 120_000)


def test_an_id_that_exists_is_a_fault_and_nothing_is_written(stage: Stage) -> None:
    stage.enqueue(job("a"))
    before = stage.world()
    with pytest.raises(RqjError, match="a job with the id a exists already"):
        stage.enqueue(job("b"), locked("a"))
    assert stage.world() == before


@pytest.mark.parametrize("key", ["ready:sales:0", "scheduled:sales"])
def test_a_queue_of_a_foreign_type_refuses_the_whole_batch(stage: Stage, key: str) -> None:
    stage.client.set(stage.key(key), "mine")
    before = stage.world()
    with pytest.raises(RqjError, match="a key of the queue sales has a foreign type"):
        stage.enqueue(job("b", "mail"), locked("a"))
    assert stage.world() == before


def test_other_foreign_types(stage: Stage) -> None:
    stage.client.rpush(stage.key("lock:k"), "mine")  # reads as no lock, and is taken
    stage.client.set(stage.key("wake:sales"), "mine")  # is left alone
    stage.client.set(stage.key("tombs:sales"), "mine")
    assert stage.enqueue(locked("a"))[0].outcome == "enqueued"
    after = stage.world()
    assert (after["lock:k"], after["wake:sales"], after["tombs:sales"]) == ("d 0 a", "mine", "mine")


def test_a_holder_of_a_foreign_place(stage: Stage) -> None:
    stage.enqueue(locked("a", queue="mail", delay_ms=5000))
    stage.client.set(stage.key("scheduled:mail"), "mine")
    assert stage.enqueue(locked("b"))[0].outcome == "duplicate"


@pytest.mark.parametrize("value", ["", "d", "d 0", "d 0 ", "d x a", "dd 0 a", "{}", "\xff"])
def test_a_value_that_is_no_lock_of_ours_is_taken_over(stage: Stage, value: str) -> None:
    stage.enqueue(job("a"))
    stage.client.set(stage.key("lock:k"), value.encode("latin-1"))
    assert stage.enqueue(locked("b"))[0].outcome == "enqueued"


@pytest.mark.parametrize(
    "text", ["", "mine", "1\0sales", "2\0sales\0000\0001000\0\0x", "1\0sales\0000\0001000\0kk\0\0x"]
)
def test_a_holder_with_a_malformed_record_holds_nothing(stage: Stage, text: str) -> None:
    stage.enqueue(locked("a"))
    stage.client.hset(stage.key("jobs"), "a", text)
    assert stage.enqueue(locked("b"))[0].outcome == "enqueued"
