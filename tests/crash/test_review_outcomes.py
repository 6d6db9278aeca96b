"""What has ended is told to the server, however the worker is on its way out, or the server away for a while."""

import logging
import threading
from collections.abc import Iterator
from types import SimpleNamespace as Namespace
from typing import Any

import pytest

from rqlite_jobs import App, Job
from rqlite_jobs.answers import Claim
from rqlite_jobs.operations import Settlement
from rqlite_jobs.worker.child import Child
from tests.conftest import Spawn, app_on
from tests.servers import Server
from tests.worker.inside import KINDS, of_kind, working
from tests.worker.site import until


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def own_server(spawn: Spawn) -> Server:
    return spawn()


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    made = threading.Event()
    yield made
    made.set()


def writable(server: Server, yes: bool) -> None:
    """Let a server take writes, or refuse them as a replica does."""
    with server.client() as client:
        client.execute_command("REPLICAOF", *(("NO", "ONE") if yes else ("127.0.0.1", "1")))


@pytest.mark.parametrize("way_out", ["stop", "quiet"])
def test_a_job_that_ends_while_the_server_takes_no_writes_is_settled_when_it_does(
    own_server: Server, kind: str, way_out: str, gate: threading.Event, caplog: pytest.LogCaptureFixture
) -> None:
    app = of_kind(app_on(own_server), kind)
    starts: list[int] = []

    @app.job
    def wait() -> None:
        starts.append(1)
        assert gate.wait(10)

    job = wait.enqueue()
    with working(app, concurrency=1, stop_after="20s", lease="60s") as worker:
        until(lambda: starts, "it has started")
        writable(own_server, False)
        gate.set()
        until(lambda: any("takes no writes" in line for line in caplog.messages), "its outcome was refused")
        assert worker._child is not None
        if way_out == "stop":
            worker.stop()
            assert not worker._child.wait(0.3), "it stays until it has told"
        else:
            worker._child.quiet()
        writable(own_server, True)
        until(lambda: job.refresh().state == "done", "it is settled")
    assert starts == [1]
    assert app.inspect.stats().crashed == 0


def claimed(child: Child, count: int) -> list[Claim]:
    """Let a child that may not claim any more hold jobs all the same."""
    claims, _ = child._flush_turn.answered(child._call(child._flush_turn.ask(count)))
    assert len(claims) == count
    return claims


@pytest.fixture
def leaving(real_app: App) -> tuple[Child, list[Job[Any]], list[Claim]]:
    """A child whose slots have ended, but which holds two jobs."""

    @real_app.job
    def note() -> None: ...

    jobs = [note.enqueue(), note.enqueue()]
    child = Child(real_app, real_app.settings)
    child.stop()
    child.start()
    assert child.wait(10)
    return child, jobs, claimed(child, 2)


def test_one_that_leaves_tells_also_what_its_heart_could_not_tell(
    leaving: tuple[Child, list[Job[Any]], list[Claim]], monkeypatch: pytest.MonkeyPatch
) -> None:
    child, jobs, claims = leaving
    ends = [Settlement("done", one.id, one.token) for one in claims]
    child._holdings.end(claims[0], ends[0])
    with monkeypatch.context() as away:
        away.setattr(child, "_call", refuse)
        assert not child._flush()
    child._holdings.end(claims[1], ends[1])
    child.leave()
    assert [job.refresh().state for job in jobs] == ["done", "done"]


def test_one_that_leaves_tries_twice_to_tell(
    leaving: tuple[Child, list[Job[Any]], list[Claim]], monkeypatch: pytest.MonkeyPatch
) -> None:
    child, jobs, claims = leaving
    for one in claims:
        child._holdings.end(one, Settlement("done", one.id, one.token))
    send, sent = child._call, []

    def once_closed(call: Any) -> Any:
        sent.append(call.verb)
        return refuse() if len(sent) == 1 else send(call)

    monkeypatch.setattr(child, "_call", once_closed)
    child.leave()
    assert sent == ["turn", "turn", "leave"]
    assert [job.refresh().state for job in jobs] == ["done", "done"]


def test_one_that_leaves_ends_its_lease_though_its_connections_were_closed(
    leaving: tuple[Child, list[Job[Any]], list[Claim]], real_server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """As a server does with those that rest too long. Its jobs would wait for the lease, and count a crash."""
    child, jobs, _ = leaving
    child._heart_loop.stop()
    with real_server.client() as client:
        client.client_kill_filter(_type="normal", skipme=True)
    child._holdings.drop()  # so that nothing is told before
    child.leave()
    assert not any("left without telling" in line for line in caplog.messages)
    assert [(job.refresh().state, job.refresh().attempts) for job in jobs] == [("ready", 0), ("ready", 0)]
    assert len(child._app.inspect.workers()) == 0


def test_one_that_leaves_a_server_that_hangs_asks_once(
    leaving: tuple[Child, list[Job[Any]], list[Claim]], monkeypatch: pytest.MonkeyPatch
) -> None:
    child, _, _ = leaving
    now_s = iter(range(0, 1000, 5))
    sent = []

    def hangs(call: Any) -> Any:
        sent.append(call.verb)
        refuse()

    child._holdings.drop()
    child._heart_loop.stop()
    monkeypatch.setattr(child, "_call", hangs)
    monkeypatch.setattr("rqlite_jobs.worker.child.time", Namespace(monotonic=lambda: next(now_s)))
    child.leave()
    assert sent == ["leave"]


def refuse(*_: Any, **__: Any) -> Any:
    raise ConnectionError("away")


def test_a_child_has_ended_when_all_its_slots_have(real_app: App, gate: threading.Event) -> None:
    """Also if the first has ended before the second begins."""
    child = Child(real_app, real_app.settings.but(concurrency=3))
    spawn, served = child._spawn, []

    def serve() -> None:
        served.append(threading.current_thread())
        if len(served) > 1:
            assert gate.wait(10)

    def spawn_and_wait(name: str, _: Any) -> None:
        spawn(name, serve)
        if not served[1:]:
            until(lambda: served and not served[0].is_alive(), "the first slot has ended")

    child._spawn = spawn_and_wait  # type: ignore[method-assign]
    child.start()
    assert not child.wait(0)
    gate.set()
    assert child.wait(10)
    child.leave()


def test_a_child_whose_loop_is_closed_leaves_all_the_same(
    real_server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """It may close between the question whether all have ended and the word to its tasks."""
    caplog.set_level(logging.INFO)
    app = of_kind(app_on(real_server), "loop")
    child = Child(app, app.settings)
    child.start()
    until(lambda: child._turner, "it serves")
    child.stop()
    assert child.wait(10)
    child._ended.clear()
    child.leave()
    assert len(app.inspect.workers()) == 0
