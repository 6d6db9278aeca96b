"""The event loop of a worker: its one listener, and the threads that it leaves behind."""

import asyncio
import contextlib
import random
import threading
from collections.abc import Iterator

import pytest

from rqlite_jobs import App
from rqlite_jobs.worker.executor import Executor
from rqlite_jobs.worker.holdings import Holdings
from rqlite_jobs.worker.outage import Outage
from rqlite_jobs.worker.turn import Turn
from rqlite_jobs.worker.turner import Turner
from tests.conftest import app_on
from tests.servers import Server
from tests.worker.inside import of_kind, working
from tests.worker.parts import Clock, Wire, heart, nonces, operations, turned
from tests.worker.site import until


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    made = threading.Event()
    yield made
    made.set()


def test_a_listener_that_ends_late_leaves_its_successor_the_only_one() -> None:
    """Before Python 3.12 a cancellation may be swallowed; else there would be one listener more each time."""

    async def main() -> None:
        wire, holdings, rng = Wire(), Holdings(), random.Random(1)
        wire.answers = {"register": (1000, ())}
        its_heart = heart(wire, holdings, Clock())
        its_heart.register()
        listening, late, stopping = 0, asyncio.Event(), False

        async def listen(_: float) -> None:
            nonlocal listening
            listening += 1
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
            await late.wait()
            listening -= 1

        async def call(_: object) -> object:
            return turned()

        turner = Turner(
            Turn(operations(), holdings, its_heart, nonces()), holdings, its_heart,
            Executor(App("test", url="redis://nowhere"), rng), call, listen, Outage(rng),
            lambda: not stopping, lambda: stopping, lambda: None, 1,
        )  # fmt: skip
        serving = asyncio.create_task(turner.serve())
        async with asyncio.timeout(10):
            for number in (1, 2):
                while listening < number:
                    await asyncio.sleep(0)
                turner.rouse()
            while listening < 3:
                await asyncio.sleep(0)
            late.set()
            while listening > 1:
                await asyncio.sleep(0)
            for _ in range(100):
                await asyncio.sleep(0)
            assert listening == 1
            stopping = True
            turner.rouse()
            await serving

    asyncio.run(main())


def test_a_thread_of_a_loop_that_does_not_end_is_told_of(real_server: Server, gate: threading.Event) -> None:
    app = of_kind(app_on(real_server), "loop")
    started = threading.Event()

    @app.job
    def wait() -> None:
        started.set()
        gate.wait(10)

    job = wait.enqueue()
    with working(app, stop_after="0s") as worker:
        assert started.wait(10)
    assert worker.abandoned
    assert job.refresh().state == "ready"
    gate.set()
    assert worker._child is not None
    turner = worker._child._turner
    until(lambda: turner and not turner.busy, "it has ended")
