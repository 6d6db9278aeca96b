"""Paused queues: nothing of them starts, nothing spins, and the end of a pause is met by itself."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from rqlite_jobs import App, Worker
from rqlite_jobs.testing import FrozenClock, drain
from tests.conftest import app_on
from tests.servers import Server
from tests.worker.site import Site, monitored, until

pytestmark = pytest.mark.lanes("valkey", "redis")

NOTE = """
@app.job(queue="sales")
def note(what):
    mark(what)

@app.job(queue="mail")
def mail(what):
    mark(what)
"""


def test_a_paused_queue_accepts_and_keeps_what_it_has(server: Server) -> None:
    clock = FrozenClock(1_900_000_000)
    app = app_on(server, clock=clock)
    ran: list[int] = []

    @app.job(queue="sales")
    def note(n: int) -> None:
        ran.append(n)

    note.enqueue(1)
    app.control.pause("sales", for_="10s")
    note.enqueue(2)
    note.options(delay="3s").enqueue(3)
    clock.advance("9999ms")
    assert drain(app) == 0
    stats = app.inspect.stats()
    assert (stats.ready, stats.scheduled, list(stats.paused)) == (2, 1, ["sales"])
    clock.advance("1ms")
    assert drain(app) == 3
    assert ran == [1, 2, 3]
    assert app.inspect.stats().paused == {}


def test_a_worker_that_waits_learns_of_a_pause_and_meets_its_end(server: Server) -> None:
    """It was told of no due time before it slept."""
    app, ran = app_on(server), threading.Event()

    @app.job
    def note() -> None:
        ran.set()

    note.enqueue()
    with working(app):
        assert ran.wait(10)
        ran.clear()
        began_s = time.monotonic()
        app.control.pause("default", for_="800ms")
        with monitored(server) as seen:
            note.enqueue()
            assert ran.wait(10)
            took_s = time.monotonic() - began_s
    assert 0.8 <= took_s < 2.0
    assert _scripts(seen) < 15


@pytest.mark.parametrize("slots", ["1", "10"])
def test_a_worker_meets_the_end_of_a_pause_by_itself(server: Server, slots: str) -> None:
    with Site(server, NOTE) as site:
        site.jobs.note.enqueue("first")
        began_s = time.time()
        site.app.control.pause("sales", for_=2.5)
        worker = site.serve("-c", slots, "-q", "sales,mail")
        site.jobs.note.enqueue("second")
        site.jobs.mail.enqueue("meanwhile")
        assert site.wait("meanwhile")[0] < site.wait("first")[0]
        with monitored(server) as seen:
            site.wait("second")
        assert 2.49 <= site.times("first")[0] - began_s < 4.5
        assert _scripts(seen) < 50
        assert worker.stopped() == 0


def test_it_waits_and_does_not_ask_again_and_again(server: Server) -> None:
    with Site(server, NOTE) as site:
        site.jobs.note.enqueue("first")
        site.app.control.pause("sales")
        site.serve("-c", "4", "-q", "sales")
        with monitored(server) as seen:
            for n in range(5):
                site.jobs.note.enqueue(f"n{n}")
            site.app.control.pause("sales", for_=2.0)
            site.wait("n4")
        assert _scripts(seen) < 60
        assert site.count("first") == 1


def test_paused_for_good_till_somebody_resumes_it(server: Server) -> None:
    """Its worker goes on with other queues, and sleeps; resuming wakes it."""
    with Site(server, NOTE) as site:
        site.jobs.note.enqueue("first")
        site.app.control.pause("sales")
        worker = site.serve("-c", "2", "-q", "sales,mail")
        site.jobs.note.enqueue("second")
        site.jobs.mail.enqueue("meanwhile")
        site.wait("meanwhile")
        until(
            lambda: not site.app.caller.command("EXISTS", site.app.keys.wake("sales")),
            "it has looked, and waits",
        )
        assert site.count("first") == site.count("second") == 0
        assert site.app.inspect.stats().ready == 2
        began_s = time.time()
        assert site.app.control.resume("sales") == "resumed"
        assert max(site.wait("first") + site.wait("second")) - began_s < 2
        assert worker.stopped() == 0


@contextmanager
def working(app: App) -> Iterator[None]:
    """A worker in a thread of this process."""
    worker = Worker(app, concurrency=2)
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        yield
    finally:
        worker.stop()
        thread.join(20)
        assert not thread.is_alive()


def _scripts(seen: list[str]) -> int:
    return len([line for line in seen if "EVALSHA" in line.upper()])
