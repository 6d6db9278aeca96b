"""page: the jobs in one place, a portion at a time."""

import pytest

from rqlite_jobs.errors import RqjError, ScriptFailed
from tests.lua.stage import Stage, job, locked

WAITING = ["ready", "scheduled"]
ENDED = ["dead", "done", "rejected"]


def page(
    stage: Stage, state: str, queue: str = "", position: bytes = b"", limit: int = 10
) -> tuple[list[str], bytes]:
    """The ids of a page, and the position behind it; that behind each of its jobs is right, too."""
    found, changed = stage.did(stage.ops.page(state, queue, position, limit))
    assert changed == {}
    assert {one.state for one in found.jobs} <= {{"rejected": "dead", "kept": "done"}.get(state, state)}
    ids = [one.id for one in found.jobs]
    for at, behind in enumerate(found.behind_each):
        rest = stage.run(stage.ops.page(state, queue, behind, limit - at)).jobs if behind else []
        assert [one.id for one in rest][: len(ids) - at - 1] == ids[at + 1 :]
    return ids, found.behind


def pages(stage: Stage, state: str, queue: str = "", limit: int = 2) -> list[list[str]]:
    """The ids of all pages."""
    found, position = [], b""
    while True:
        ids, position = page(stage, state, queue, position, limit)
        found.append(ids)
        assert len(found) < 100
        if not position:
            return found


def fill(stage: Stage, state: str, names: str) -> None:
    """Put jobs into a place, so that they are read in this order."""
    if state == "scheduled":
        stage.enqueue(*(job(name, delay_ms=10 + n // 2) for n, name in enumerate(names)))
    elif state == "rejected":
        stage.enqueue(locked("lock"))
        stage.enqueue(*(locked(name, on_conflict="reject") for name in reversed(names)))
    elif state in ENDED:
        {"dead": stage.bury, "done": stage.finish}[state](*(job(name) for name in reversed(names)))
    else:
        stage.enqueue(*(job(name) for name in names))


@pytest.mark.parametrize("state", [*WAITING, *ENDED])
def test_pages_hold_each_job_once_in_order(stage: Stage, state: str) -> None:
    fill(stage, state, "abcde")
    stage.enqueue(job("m", "mail"))
    queue = "sales" if state in WAITING else ""
    assert page(stage, state, queue) == (list("abcde"), b"")
    assert page(stage, state, queue, limit=5) == (list("abcde"), b"")
    assert pages(stage, state, queue) == [list("ab"), list("cd"), list("e")]
    assert pages(stage, state, queue, 1) == [[name] for name in "abcde"]
    if queue:
        assert page(stage, state, "nowhere") == ([], b"")


def test_what_runs_comes_by_id(stage: Stage) -> None:
    stage.enqueue(*(job(name) for name in "badce"))
    stage.claim(2, worker="w1")
    stage.claim(2, worker="w2", nonce="m" * 11)
    stage.client.zrem(stage.key("workers"), "w2")
    stage.client.zadd(stage.key("fallen"), {"w2": 1})
    assert page(stage, "running") == (list("abcd"), b"")
    assert pages(stage, "running", limit=3) == [list("abc"), list("d")]


def test_what_runs_all_the_time_is_met_once(stage: Stage) -> None:
    stage.enqueue(*(job(name) for name in "abcdef"))
    claims = {claim.id: claim for claim in stage.claim(4)}
    ids, position = page(stage, "running", limit=2)
    assert ids == ["a", "b"]
    stage.settle("done", claims["a"])
    stage.settle("done", claims["c"])
    stage.claim(2)
    assert page(stage, "running", "", position) == (["d", "e", "f"], b"")


def test_claims_between_pages_hide_no_job(stage: Stage) -> None:
    names = [f"{n:03}" for n in range(900)]
    stage.enqueue(*map(job, names))
    ids, position = page(stage, "ready", "sales", limit=300)
    assert ids == names[:300]
    for first, claimed in ((300, 150), (305, 50), (400, 200)):
        stage.claim(claimed)
        ids, position = page(stage, "ready", "sales", position, 5)
        assert ids[0] == names[first]  # claimed are 150, 200, 400
    assert ids == names[400:405]


@pytest.mark.parametrize(("claimed", "expected"), [(0, "cd"), (1, "cd"), (2, "cd"), (3, "de"), (5, "f")])
def test_a_page_goes_on_behind_the_last_one_though_others_were_claimed(
    stage: Stage, claimed: int, expected: str
) -> None:
    fill(stage, "ready", "abcdef")
    _, position = page(stage, "ready", "sales", limit=2)
    stage.claim(claimed)
    assert page(stage, "ready", "sales", position, 2)[0] == list(expected)


def test_a_page_goes_on_behind_the_last_one_though_some_came_before_it(stage: Stage) -> None:
    fill(stage, "ready", "abcdef")
    claims = stage.claim(2)
    _, position = page(stage, "ready", "sales", limit=2)
    for claim in claims:
        stage.settle("back", claim)
    assert page(stage, "ready", "sales", position, 1) == (["e"], b"1 5 e")


@pytest.mark.parametrize("state", ["ready", *ENDED])
def test_the_last_page_comes_however_many_jobs_come_meanwhile(stage: Stage, state: str) -> None:
    fill(stage, state, "abcde")
    queue = "sales" if state == "ready" else ""
    found, position, more = [], b"", 0
    while True:
        ids, position = page(stage, state, queue, position, 2)
        found += ids
        if not position:
            break
        for _ in range(3):
            more += 1
            if state == "rejected":
                stage.enqueue(locked(f"{more:02}", on_conflict="reject"))
            elif state in ENDED:
                (stage.bury if state == "dead" else stage.finish)(job(f"{more:02}", "other"))
            else:
                stage.enqueue(job(f"{more:02}"))
    assert found == list("abcde")


def test_the_last_page_comes_however_many_jobs_are_scheduled_meanwhile(stage: Stage) -> None:
    names = [f"a{n:03}" for n in range(109)]
    stage.enqueue(*(job(name, delay_ms=10) for name in names))
    found, position, more = list[str](), b"", 0
    while True:
        part = stage.run(stage.ops.page("scheduled", "sales", position, 100))
        found += [one.id for one in part.jobs]
        position = part.behind
        if not position:
            break
        more += 150
        stage.enqueue(*(job(f"{more + n:05}", delay_ms=90 + more) for n in range(150)))
    assert found[:109] == names
    assert len(found) == len(set(found)) == 2 * 109 + 1000


def test_jobs_scheduled_in_between_push_none_out(stage: Stage) -> None:
    fill(stage, "scheduled", "abcde")
    ids, position = page(stage, "scheduled", "sales", limit=1)
    stage.enqueue(
        *(job(f"{n:03}", delay_ms=10) for n in range(200)),
        *(job(f"b{n:03}", delay_ms=11) for n in range(200)),
    )
    rest, position = page(stage, "scheduled", "sales", position, 500)
    assert set("bcde") <= set(rest)
    assert (ids, position) == (["a"], b"")


@pytest.mark.parametrize("word", ["cancel", "promote"])
def test_scheduled_ones_that_leave_hide_no_other(stage: Stage, word: str) -> None:
    names = [f"{n:03}" for n in range(100)]
    stage.enqueue(*(job(name, delay_ms=50) for name in names[:60]))
    stage.enqueue(*(job(name, delay_ms=51) for name in names[60:]))
    seen, position = [], b""
    while True:
        ids, position = page(stage, "scheduled", "sales", position, 7)
        seen += ids
        if not position:
            break
        if word == "cancel":
            stage.run(stage.ops.cancel(ids[len(seen) % 3 :]))
        elif len(seen) == 28:
            stage.now_ms = 1050
            stage.claim(1)
    assert seen == (names if word == "cancel" else [*names[:28], *names[60:]])


def test_tombs_are_left_out(stage: Stage) -> None:
    stage.enqueue(*(job(name) for name in "abcde"))
    stage.run(stage.ops.cancel(["b", "d"]))
    assert pages(stage, "ready", "sales", 3) == [["a", "c"], ["e"]]
    stage.run(stage.ops.cancel(["e"]))
    assert pages(stage, "ready", "sales", 3) == [["a", "c"], []]


@pytest.mark.parametrize("state", [*WAITING, "running", *ENDED])
@pytest.mark.parametrize(
    "position", [b"x", b"9", b"9 ", b"9 x", b"9 7", b"9 7 y", b"0 7 y", b"99999 99999 y", b"3 -5 "]
)
def test_a_position_that_is_none_does_no_harm(stage: Stage, state: str, position: bytes) -> None:
    fill(stage, "ready" if state == "running" else state, "abc")
    if state == "running":
        stage.claim(3)
    found = stage.run(stage.ops.page(state, "sales", position, 2))
    assert {one.id for one in found.jobs} <= set("abc")


def test_neither_bodies_nor_tracebacks(stage: Stage) -> None:
    stage.bury(job("a", payload="x" * 3000))
    (only,) = stage.run(stage.ops.page("dead", "", b"", 5)).jobs
    assert (only.body, only.traceback, only.tries.error) == (b"", "", "ValueError('bad')")


def test_a_place_that_is_none(stage: Stage) -> None:
    with pytest.raises(RqjError, match="no jobs are listed by the state parked"):
        stage.run(stage.ops.page("parked", "", b"", 5))


def test_malformed_ones_are_listed_too(stage: Stage) -> None:
    stage.enqueue(job("a"))
    stage.client.hset(stage.key("jobs"), "a", "mine")
    (only,) = stage.run(stage.ops.page("ready", "sales", b"", 5)).jobs
    assert (only.id, only.state) == ("a", "malformed")


def test_a_list_of_a_foreign_type_is_told_with_its_line(stage: Stage) -> None:
    stage.client.set(stage.key("ready:sales:0"), "mine")
    with pytest.raises(ScriptFailed, match="wrong kind"):
        stage.run(stage.ops.page("ready", "sales", b"", 5))


def test_the_finished_that_are_kept_are_a_place_of_their_own_by_their_end(stage: Stage) -> None:
    for ttl_ms, id in ((5000, "k1"), (None, "d1"), (-1, "k2"), (None, "d2"), (9000, "k3"), (-1, "k4")):
        stage.enqueue(job(id))
        (claim,) = stage.claim()
        stage.settle("returned", claim, result=b"7", ttl_ms=ttl_ms)
    for limit in range(1, 7):
        for place, ids in (("done", ["d2", "d1"]), ("kept", ["k1", "k3", "k2", "k4"])):
            assert [id for ids_of in pages(stage, place, "", limit) for id in ids_of] == ids
    kept = {one.id: one.kept_until_ms for one in stage.run(stage.ops.page("kept", "", b"", 9)).jobs}
    assert kept == {"k1": 6000, "k3": 10_000, "k2": 0, "k4": 0}
