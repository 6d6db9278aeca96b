"""A paused queue takes jobs and starts none; the end of the pause is not missed, and nobody spins until then."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from rqlite_jobs import App, Worker
from tests.servers import Server

pytestmark = pytest.mark.real


@contextmanager
def working(app: App) -> Iterator[None]:
    worker = Worker(app, concurrency=2)
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        yield
    finally:
        worker.stop()
        thread.join(20)
        assert not thread.is_alive()


def test_the_end_of_a_pause_is_not_missed(real_server: Server, real_app: App) -> None:
    app, ran = real_app, threading.Event()

    @app.job
    def note() -> None:
        ran.set()

    note.enqueue()
    with working(app):
        assert ran.wait(10)
        ran.clear()
        began_s = time.monotonic()
        assert app.run(app.operations.pause("default", 800, "me")) == "paused"
        with real_server.client() as client:
            before = client.info("commandstats")["cmdstat_evalsha"]["calls"]
            note.enqueue()
            assert ran.wait(10)
            took_s = time.monotonic() - began_s
            calls = client.info("commandstats")["cmdstat_evalsha"]["calls"] - before
    assert 0.8 <= took_s < 2.0
    assert calls < 15


def test_a_queue_paused_for_good_starts_nothing_until_it_is_resumed(real_app: App) -> None:
    app, ran = real_app, threading.Event()

    @app.job
    def note() -> None:
        ran.set()

    note.options(queue="other").enqueue()
    note.enqueue()
    assert app.run(app.operations.pause("default", 0, "me")) == "paused"
    with working(app):
        assert ran.wait(10)  # the other queue goes on
        ran.clear()
        assert app.inspect.stats().ready == 1
        assert app.run(app.operations.pause("default", None, "me")) == "resumed"
        assert ran.wait(10)
