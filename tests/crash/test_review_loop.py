"""The event loop of a worker: its one listener, and the threads that it leaves behind."""

import asyncio
import random
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rqlite_jobs import App
from rqlite_jobs.answers import Claim, Turned
from rqlite_jobs.operations import Call
from rqlite_jobs.worker.executor import Executor
from rqlite_jobs.worker.holdings import Holdings
from rqlite_jobs.worker.outage import Outage
from rqlite_jobs.worker.turn import Turn
from rqlite_jobs.worker.turner import Turner
from tests.conftest import app_on
from tests.servers import Server
from tests.worker.inside import of_kind, working
from tests.worker.parts import Clock, Wire, heart, nonces, operations, turned
from tests.worker.silent import SILENT
from tests.worker.site import until


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    made = threading.Event()
    yield made
    made.set()


class Loop:
    """A turner of one slot over a server that gives what it is told; `listening` counts its listeners.

    Args:
        stubborn: its listeners swallow their cancellation, and end when `late` is set.
    """

    def __init__(self, stubborn: bool = False) -> None:
        self.app = App("test", url="redis://nowhere")
        self.listening = 0
        self.late = asyncio.Event()
        self.stopping = False
        self.answers: list[Claim] = []
        self.asked: list[int] = []
        self._stubborn = stubborn
        wire, holdings, rng = Wire(), Holdings(), random.Random(1)
        wire.answers = {"register": (1000, ())}
        its_heart = heart(wire, holdings, Clock())
        its_heart.register()
        self.turner = Turner(
            Turn(operations(), holdings, its_heart, nonces()), holdings, its_heart, Executor(self.app, rng, SILENT),
            self._call, self._listen, Outage(rng), lambda: not self.stopping, lambda: self.stopping, lambda: None, 1,
        )  # fmt: skip

    async def until(self, met: Callable[[], bool]) -> None:
        while not met():
            await asyncio.sleep(0)

    async def _listen(self, _: float) -> None:
        self.listening += 1
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if not self._stubborn:
                raise
            await self.late.wait()
        finally:
            self.listening -= 1

    async def _call(self, call: Call[Any]) -> Turned:
        await asyncio.sleep(0)
        self.asked.append(int(call.args[4]))
        return turned(*[self.answers.pop() for _ in range(min(self.asked[-1], len(self.answers)))])


def test_a_listener_that_ends_late_leaves_its_successor_the_only_one() -> None:
    """Before Python 3.12 a cancellation may be swallowed; else there would be one listener more each time."""

    async def main() -> None:
        loop = Loop(stubborn=True)
        serving = asyncio.create_task(loop.turner.serve())
        async with asyncio.timeout(10):
            for number in (1, 2):
                await loop.until(lambda number=number: loop.listening == number)
                loop.turner.rouse()
            await loop.until(lambda: loop.listening == 3)
            loop.late.set()
            await loop.until(lambda: loop.listening == 1)
            for _ in range(100):
                await asyncio.sleep(0)
            assert loop.listening == 1
            loop.stopping = True
            loop.turner.rouse()
            await serving

    asyncio.run(main())


def test_one_that_can_take_no_more_does_not_listen_and_gives_back_what_it_heard() -> None:
    """It would take the token of a job that is due soon, and no other worker would learn of it."""

    async def main() -> None:
        loop = Loop()
        go = asyncio.Event()

        @loop.app.job
        async def wait() -> None:
            await go.wait()

        serving = asyncio.create_task(loop.turner.serve())
        async with asyncio.timeout(10):
            await loop.until(lambda: loop.listening == 1)
            loop.answers.append(Claim("a", "1-n", b"", wait.prepare((), {}).payload, 0, 0, 0))
            loop.turner._news.set()
            await loop.until(lambda: loop.asked[-1] == 0)
            assert loop.listening == 0
            assert loop.asked == [1, 1, 0], "a turn of its own gives the token back"
            go.set()
            await loop.until(lambda: loop.listening == 1)
            loop.stopping = True
            loop.turner.rouse()
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
