"""The control: a word for each id, bounded steps, what it refuses, and who it says it was."""

import asyncio
import getpass
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from rqlite_jobs import App, BadDuration, BadOption, Bury, QueueNotFound, Retry, until_executed
from rqlite_jobs.identity import who
from rqlite_jobs.inspector import PauseRow
from rqlite_jobs.operations import Call
from rqlite_jobs.testing import FrozenClock, drain, isolated

pytestmark = pytest.mark.lanes("fake", "valkey")

both_ways = pytest.mark.parametrize("way", [0, 1], ids=["blocking", "async"])


def act(app: App, what: str, way: int) -> Callable[..., Any]:
    """A method of the control, or its async twin made blocking."""
    if way == 0:
        return getattr(app.control, what)  # type: ignore[no-any-return]
    return lambda *args, **named: asyncio.run(getattr(app.control, f"a{what}")(*args, **named))


def plain(n: Any = 0) -> None:
    if n == "bury":
        raise Bury("why")
    if n == "fail":
        raise ValueError("bad")


@both_ways
def test_each_id_is_answered_with_a_word(app: App, way: int) -> None:
    handler = app.job(retry=Retry(delay="1h"))(plain)
    dead, failed, done = (handler.enqueue(n).id for n in ("bury", "fail", 1))
    assert drain(app) == 3
    ready, delayed = handler.enqueue().id, handler.options(delay="1h").enqueue().id
    ids = [dead, failed, done, ready, delayed, "nobody"]
    assert act(app, "retry", way)(iter(ids)) == {
        dead: "dead", failed: "retried", done: "done", ready: "ready", delayed: "delayed", "nobody": "unknown",
    }  # fmt: skip
    assert list(act(app, "revive", way)(ids).values()) == [
        "revived",
        "ready",
        "done",
        "ready",
        "scheduled",
        "unknown",
    ]
    assert act(app, "cancel", way)(ready) == {ready: "cancelled"}
    assert act(app, "cancel", way)([ready, done, ready]) == {ready: "gone", done: "done"}
    assert list(act(app, "delete", way)(ids).values()) == [
        "deleted", "deleted", "deleted", "cancelled", "deleted", "unknown",
    ]  # fmt: skip
    assert act(app, "cancel", way)([]) == {}
    with pytest.raises(BadOption, match="7 is an int, not text"):
        act(app, "cancel", way)([7])


@both_ways
def test_many_go_in_bounded_steps(app: App, way: int, monkeypatch: pytest.MonkeyPatch) -> None:
    handler = app.job(plain)
    ids = [job.id for job in handler.enqueue_many((n,) for n in range(250))]
    sent: list[str] = []
    for caller in (app.caller, app.async_caller):
        run = caller.run

        def noted(call: Call[Any], run: Any = run, **how: Any) -> Any:
            sent.append(call.verb)
            return run(call, **how)

        monkeypatch.setattr(caller, "run", noted)
    assert act(app, "cancel", way)(ids) == dict.fromkeys(ids, "cancelled")
    assert sent == ["cancel"] * 3


@both_ways
def test_purge(app: App, way: int) -> None:
    handler = app.job(queue="mail")(plain)
    handler.enqueue_many((n,) for n in range(1100))
    handler.options(delay="1h").enqueue()
    assert act(app, "purge", way)("mail") == 1101
    assert act(app, "purge", way)("mail") == 0
    with pytest.raises(QueueNotFound, match="no job was ever put into a queue 'mial'"):
        act(app, "purge", way)("mial")
    with pytest.raises(QueueNotFound, match="Did you mean 'mail'"):
        act(app, "purge", way)(["mail"])
    with pytest.raises(BadOption, match="no ids"):
        act(app, "release", way)(None)


@both_ways
def test_purge_goes_on_behind_many_that_were_cancelled(app: App, way: int) -> None:
    handler = app.job(queue="mail")(plain)
    jobs = handler.enqueue_many((n,) for n in range(2200))
    act(app, "cancel", way)(job.id for job in jobs[:2100])
    assert act(app, "purge", way)("mail") == 100
    assert app.inspect.stats().ready == 0


@both_ways
def test_pause_and_resume(app: App, way: int) -> None:
    with isolated(app, clock=FrozenClock(1_900_000_000)):
        app.job(plain).enqueue()
        assert act(app, "pause", way)("default", for_="10m", by="ann") == "paused"
        now = datetime.fromtimestamp(1_900_000_000, UTC)
        (row,) = app.inspect.queues()
        pause = PauseRow(datetime.fromtimestamp(1_900_000_600, UTC), now, "ann")
        assert (row.pause, app.inspect.stats().paused) == (pause, {"default": pause})
        assert act(app, "resume", way)("default") == "resumed"
        assert act(app, "resume", way)("default") == "running"
        assert act(app, "pause", way)("default") == "paused"
        assert app.inspect.stats().paused == {"default": PauseRow(None, now, who())}
        for bad in ("0s", 0, -1, "soon", True):
            with pytest.raises(BadDuration):
                act(app, "pause", way)("default", for_=bad)
        for what in ("pause", "resume"):
            with pytest.raises(QueueNotFound, match="Did you mean 'default'"):
                act(app, what, way)("defualt")


@both_ways
def test_release(app: App, way: int) -> None:
    job = app.job(lock=until_executed(key="k"))(plain).enqueue()
    assert act(app, "release", way)(["plain:k", "other"]) == {"plain:k": "held", "other": "free"}
    assert act(app, "release", way)("plain:k", force=True) == {"plain:k": "released"}
    assert app.inspect.stats().locks == 0
    assert job.refresh().state == "ready"


@both_ways
def test_recover(app: App, way: int) -> None:
    clock = FrozenClock(0)
    with isolated(app, clock=clock):
        app.job(plain).enqueue_many([(1,), (2,)])
        app.run(app.operations.register("w1", 1000, {}))
        app.run(app.operations.register("w2", 60_000, {}))
        assert len(app.run(app.operations.turn("w1", "n" * 11, ["default"], [], 2)).claims) == 2
        assert act(app, "recover", way)() == 0
        clock.advance("2s")
        assert act(app, "recover", way)() == 2
        assert app.inspect.stats().ready == 2


def test_who_asks_is_told_even_where_nobody_has_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(getpass, "getuser", lambda: "ann")
    monkeypatch.setattr("platform.node", lambda: "shop-1")
    assert who() == "ann@shop-1"

    def nobody() -> str:
        raise KeyError("getpwuid(): uid not found: 1234")

    monkeypatch.setattr(getpass, "getuser", nobody)
    monkeypatch.setattr("platform.node", lambda: "")
    assert who() == "somebody@unknown"
