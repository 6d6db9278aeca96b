"""holders: who holds which lock."""

from collections.abc import Callable

import pytest

from rqlite_jobs.answers import LockEntry
from tests.lua.stage import Stage, job, locked, nearly, once

NOBODY = ("", 0, "", "", -1)


def test_a_page_of_all(stage: Stage) -> None:
    stage.enqueue(locked("a", "k1"), locked("b", "k2", ttl_ms=500), once("c", "k3", ttl_ms=400), job("x"))
    page, changed = stage.did(stage.ops.holders())
    assert changed == {}
    assert (page.now_ms, page.count, page.behind) == (1000, 3, b"")
    assert page.locks == [
        LockEntry("k3", "until_expired", 1400, "c", "ready", -1),
        LockEntry("k2", "until_executed", 1500, "b", "ready", -1),
        LockEntry("k1", "until_executed", 0, "a", "ready", -1),
    ]


def test_what_is_over_is_not_counted(stage: Stage) -> None:
    stage.enqueue(locked("a", "k1"), locked("b", "k2", ttl_ms=500))
    stage.now_ms = 1499
    assert stage.run(stage.ops.holders()).count == 2
    stage.now_ms = 1500
    page = stage.run(stage.ops.holders())
    assert (page.count, [one.key for one in page.locks]) == (1, ["k1"])


def pages(stage: Stage, limit: int, meanwhile: Callable[[list[str]], None] = lambda keys: None) -> list[str]:
    """The keys of all pages; something may happen between them, given the keys of the page before."""
    seen: list[str] = []
    position = b""
    while True:
        page = stage.run(stage.ops.holders((), position, limit))
        keys = [one.key for one in page.locks]
        assert len(keys) <= limit
        seen += keys
        position = page.behind
        if not position:
            return seen
        meanwhile(keys)


@pytest.mark.parametrize("limit", [1, 10, 25, 30])
def test_pages(stage: Stage, limit: int) -> None:
    stage.enqueue(*(once(f"{n:03}", f"k{n:03}", ttl_ms=100 + n // 4) for n in range(15)))
    stage.enqueue(*(locked(f"{n:03}", f"k{n:03}") for n in range(15, 25)))
    assert pages(stage, limit) == [f"k{n:03}" for n in range(25)]


def test_locks_let_go_between_pages_hide_no_other(stage: Stage) -> None:
    keys = [f"k{n:03}" for n in range(60)]
    stage.enqueue(*(locked(key, key) for key in keys))

    def cancel_some(of: list[str]) -> None:
        stage.run(stage.ops.cancel(of[-2:]))

    assert pages(stage, 7, cancel_some) == keys


def test_the_last_page_comes_though_new_ones_are_taken_all_the_time(stage: Stage) -> None:
    stage.enqueue(*(locked(f"{n:03}", f"k{n:03}") for n in range(109)))
    taken = 0

    def take(of: list[str]) -> None:
        nonlocal taken
        for _ in range(150):
            taken += 1
            stage.enqueue(locked(f"new{taken}", f"l{taken:05}"))

    found = pages(stage, 100, take)
    assert found[:109] == [f"k{n:03}" for n in range(109)]
    assert len(found) == len(set(found)) == 2 * 109 + 1000


def test_time_that_is_over_between_pages(stage: Stage) -> None:
    stage.enqueue(*(once(f"{n}", f"k{n}", ttl_ms=100 + n) for n in range(6)))

    def wait(of: list[str]) -> None:
        stage.now_ms = 1103

    assert pages(stage, 1, wait) == ["k0", "k4", "k5"]


def test_by_name(stage: Stage) -> None:
    stage.enqueue(locked("a", "k1"), locked("b", "k2", ttl_ms=500))
    stage.claim()
    stage.now_ms = 1500
    page = stage.run(stage.ops.holders(["k2", "k1", "nobody"]))
    assert (page.count, page.behind) == (1, b"")
    assert page.locks == [
        LockEntry("k2", *NOBODY),
        LockEntry("k1", "until_executed", 0, "a", "running", -1),
        LockEntry("nobody", *NOBODY),
    ]


def test_a_pointer_whose_job_is_gone_shows_it(stage: Stage) -> None:
    stage.finish(once("a"))
    assert stage.run(stage.ops.holders(["k"])).locks[0].state == "done"
    stage.run(stage.ops.delete(["a"]))
    assert stage.run(stage.ops.holders(["k"])).locks[0].state == "unknown"


def test_its_ttl(stage: Stage) -> None:
    stage.now_ms = -1
    stage.enqueue(once("a", ttl_ms=600_000))
    page = stage.run(stage.ops.holders(["k"]))
    assert nearly(page.locks[0].left_ms, 600_000)
    assert nearly(page.locks[0].until_ms - page.now_ms, 600_000)


def test_what_is_no_lock_of_ours(stage: Stage) -> None:
    stage.client.rpush(stage.key("lock:k1"), "mine")
    stage.client.set(stage.key("lock:k2"), "mine")
    stage.enqueue(job("a"))
    stage.client.hset(stage.key("jobs"), "a", "mine")
    stage.client.set(stage.key("lock:k3"), "d 0 a")
    page = stage.run(stage.ops.holders(["k1", "k2", "k3"]))
    assert [(one.mode, one.state) for one in page.locks] == [
        ("", ""),
        ("", ""),
        ("until_executed", "malformed"),
    ]
