"""A worker in a thread of this process, for tests that look at what it does to jobs."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rqlite_jobs import App
from rqlite_jobs.worker import Worker
from tests.worker.site import DEADLINE_S, until

KINDS = ("threads", "loop")
"""How a worker runs its jobs: in a thread for each slot; or from an event loop, once the app has an async job."""


def of_kind(app: App, kind: str) -> App:
    """The app, made such that its worker is of this kind."""
    if kind == "loop":

        @app.job
        async def never_enqueued() -> None: ...

    return app


@contextmanager
def working(app: App, queues: list[str] | None = None, **options: Any) -> Iterator[Worker]:
    """Run a worker while this lasts; it must end when it is asked to."""
    options.setdefault("stop_after", "5s")
    worker = Worker(app, queues, **options)
    failed: list[BaseException] = []

    def run() -> None:
        try:
            worker.run()
        except BaseException as error:
            failed.append(error)

    known = len(app.inspect.workers())
    thread = threading.Thread(target=run, name="worker")
    thread.start()
    try:
        until(lambda: failed or len(app.inspect.workers()) > known, "the worker registers")
        yield worker
    finally:
        if not worker._stops:
            worker.stop()
        thread.join(DEADLINE_S)
    assert not thread.is_alive()
    if failed:
        raise failed[0]


def burst(app: App, queues: list[str] | None = None, **options: Any) -> Worker:
    """Run whatever is ready or due, and end."""
    worker = Worker(app, queues, burst=True, **options)
    worker.run()
    return worker
