"""What one slot knows of a due job is not forgotten when it goes to work, and another, which did not know, listens."""

import threading
import time
from collections.abc import Iterator

import pytest

from rqlite_jobs import App
from rqlite_jobs.address import Address
from rqlite_jobs.worker.waker import Waker
from tests.conftest import app_on
from tests.servers import Server
from tests.worker.inside import KINDS, of_kind, working
from tests.worker.site import until
from tests.worker.test_waker import INF, KEYS, Waiting, listens


@pytest.fixture
def waker(real_server: Server) -> Iterator[Waker]:
    made = Waker(Address.parse(real_server.url), KEYS, lambda: ["a"])
    yield made
    made.stop()


def push(server: Server) -> None:
    with server.client() as client:
        client.lpush(KEYS.wake("a"), "1")


def test_who_listens_next_keeps_the_time_that_was_known(waker: Waker, real_server: Server) -> None:
    """The slot that knew of it took the token again before the one that was notified had woken up."""
    knows = Waiting(waker)
    listens(real_server)
    other = Waiting(waker)
    until(lambda: waker.idle == 1, "the other waits")
    notify = waker._guard.notify
    waker._guard.notify = lambda n=1: None  # type: ignore[method-assign]  # it wakes up too late
    push(real_server)
    knows.over()
    began_s = time.monotonic()
    again = Waiting(waker, 1.0)
    listens(real_server)
    waker._guard.notify = notify  # type: ignore[method-assign]
    push(real_server)
    again.over()
    assert time.monotonic() - began_s < 0.9, "it was the token that woke it"
    other.over()
    assert 0.9 < time.monotonic() - began_s < 2, "and the other listened no longer than to the due time"


def test_whoever_listens_is_told_of_an_earlier_time(waker: Waker, real_server: Server) -> None:
    Waiting(waker, 0.001).over()
    listener = Waiting(waker)
    listens(real_server)
    waker.expect(4.5)
    waker.expect(INF)
    assert listener.is_alive()
    waker.expect(1.0)
    listener.over()
    assert listener.took_s < 2, "it looks itself what is due"


def test_the_same_time_told_twice_interrupts_nobody(waker: Waker, real_server: Server) -> None:
    listener = Waiting(waker, 3.0)
    listens(real_server)
    told_s = time.monotonic()
    waker.expect(3.0 - 0.04)
    listener.join(0.1)
    assert listener.is_alive() or time.monotonic() - told_s > 2


def test_a_due_job_is_started_though_the_slot_that_knew_of_it_is_busy(
    real_app: App, real_server: Server
) -> None:
    gate = threading.Event()
    late_s: list[float] = []

    @real_app.job
    def wait() -> None:
        assert gate.wait(10)

    @real_app.job
    def note(due_s: float) -> None:
        late_s.append(time.monotonic() - due_s)

    def pops() -> int:
        with real_server.client() as client:
            found = client.info("commandstats").get("cmdstat_blpop", {"calls": 0})
            return int(found["calls"])

    with working(real_app, concurrency=2) as worker:
        assert worker._child is not None
        waker = worker._child._waker
        until(lambda: waker.idle == 1, "one listens and one waits")
        notify, before = waker._guard.notify, pops()
        waker._guard.notify = lambda n=1: None  # type: ignore[method-assign]
        note.options(delay="700ms").enqueue(time.monotonic() + 0.7)
        until(lambda: pops() > before, "the same slot listens again")
        waker._guard.notify = notify  # type: ignore[method-assign]
        wait.enqueue()
        until(lambda: late_s, "it has run")
        gate.set()
    assert 0 <= late_s[0] < 0.5


@pytest.mark.parametrize("kind", KINDS)
def test_one_that_may_not_listen_says_so_once_and_works_all_the_same(
    real_server: Server, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = of_kind(app_on(real_server), kind)

    @app.job
    def note() -> None: ...

    with real_server.client() as client, working(app, concurrency=2):

        def refused() -> int:
            return int(client.info("errorstats").get("errorstat_WRONGTYPE", {"count": 0})["count"]) - before

        before = 0
        before = refused()
        client.set(app.keys.wake("default"), "x")
        note.enqueue()
        until(lambda: refused() >= 3, "it has tried some times")
        until(lambda: app.inspect.stats().done == 1, "it has run all the same")
    told = [line for line in caplog.messages if "may not listen" in line]
    assert len(told) == 1
    assert "WRONGTYPE" in told[0]
    assert not any("answers again" in line or "Trying again" in line for line in caplog.messages)
