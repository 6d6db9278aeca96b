"""The slots of an event loop, with a server that answers what it is told."""

import asyncio
import random
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from rqlite_jobs import App
from rqlite_jobs.answers import Claim, Turned
from rqlite_jobs.operations import Call, Settlement
from rqlite_jobs.worker import outcome
from rqlite_jobs.worker.executor import Executor
from rqlite_jobs.worker.heart import Heart
from rqlite_jobs.worker.holdings import Holdings
from rqlite_jobs.worker.outage import Outage
from rqlite_jobs.worker.turn import Turn
from rqlite_jobs.worker.turner import Turner
from tests.worker.parts import AWAY, Clock, Wire, heart, nonces, operations, turned
from tests.worker.silent import SILENT

DEADLINE_S = 10.0


class Bench:
    """A turner over a queue of claims, and everything around it."""

    def __init__(self, app: App, concurrency: int) -> None:
        self.app = app
        self.clock = Clock()
        self.queue: list[Claim] = []
        self.asked: list[int] = []
        self.settled: list[Settlement] = []
        self.open = True
        self.drains = 0
        self.listens = 0
        self.woken = asyncio.Event()
        self.failing = 0
        wire = Wire()
        wire.answers = {"register": (1000, ())}
        self.holdings = Holdings()
        self.heart: Heart = heart(wire, self.holdings, self.clock)
        self.heart.register()
        rng = random.Random(1)
        self.turner = Turner(
            Turn(operations(), self.holdings, self.heart, nonces()), self.holdings, self.heart,
            Executor(app, rng, SILENT),
            self.call, self.listen, Outage(rng), lambda: self.open, lambda: not self.open, self.drained, concurrency,
        )  # fmt: skip

    def put(self, name: str, *args: Any) -> Claim:
        """Let a call of a job lie ready."""
        job = self.app.handlers[name].prepare(args, {})
        made = Claim(f"{name}-{len(self.queue)}-{len(self.settled)}", "1-n", b"", job.payload, 0, 0, 0)
        self.queue.append(made)
        return made

    async def call(self, call: Call[Turned]) -> Turned:
        await asyncio.sleep(0)
        if self.failing:
            self.failing -= 1
            raise AWAY
        args = list(call.args)
        start_max = int(args[4])
        self.asked.append(start_max)
        done_at = 13 + int(args[12])
        rest = args[done_at + 1 :]
        ids = [str(one) for one in rest[: 2 * int(args[done_at]) : 2]]
        self.settled += [Settlement("done", one, "") for one in ids]
        others = rest[2 * int(args[done_at]) + 1 :]  # behind the count of those that returned something
        self.settled += [
            Settlement(str(others[at]), str(others[at + 1]), "") for at in range(0, len(others), 7)
        ]
        given, self.queue = self.queue[:start_max], self.queue[start_max:]
        return turned(*given, left=bool(self.queue))

    async def listen(self, longest_s: float) -> None:
        self.listens += 1
        await self.woken.wait()
        self.woken.clear()

    def drained(self) -> None:
        self.drains += 1

    def words(self) -> list[str]:
        return [one.word for one in self.settled]

    async def until(self, met: Callable[[], object]) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while not met():
                await asyncio.sleep(0)

    async def serve(self, during: Callable[[], Awaitable[None]]) -> None:
        """Serve while something is done, then stop, and see it end."""
        serving = asyncio.create_task(self.turner.serve())
        try:
            await asyncio.wait_for(during(), DEADLINE_S)
        finally:
            self.open = False
            self.turner.rouse()
            await asyncio.wait_for(serving, DEADLINE_S)


@pytest.fixture
def app() -> App:
    return App("test", url="redis://nowhere")


def test_as_many_run_at_once_as_there_are_slots(app: App) -> None:
    go = asyncio.Event()
    running = 0

    @app.job
    async def wait() -> None:
        nonlocal running
        running += 1
        await go.wait()

    async def main() -> None:
        bench = Bench(app, concurrency=3)
        for _ in range(5):
            bench.put("wait")

        async def during() -> None:
            await bench.until(lambda: running == 3)
            assert len(bench.queue) == 2
            go.set()
            await bench.until(lambda: len(bench.settled) == 5)

        await bench.serve(during)
        assert bench.asked[0] == 3
        assert bench.words() == ["done"] * 5
        assert bench.holdings.idle

    asyncio.run(main())


def test_plain_functions_run_in_threads_beside_the_loop(app: App) -> None:
    go = threading.Event()

    @app.job
    def blocks() -> None:
        assert go.wait(DEADLINE_S)

    @app.job
    async def opens() -> None:
        go.set()

    async def main() -> None:
        bench = Bench(app, concurrency=2)
        bench.put("blocks")
        bench.put("opens")
        await bench.serve(lambda: bench.until(lambda: len(bench.settled) == 2))
        assert bench.words() == ["done"] * 2

    asyncio.run(main())


def test_an_idle_one_listens_with_one_listener_and_asks_when_it_is_woken(app: App) -> None:
    @app.job
    async def fine() -> None: ...

    async def main() -> None:
        bench = Bench(app, concurrency=4)

        async def during() -> None:
            await bench.until(lambda: bench.listens == 1)
            asked = len(bench.asked)
            for _ in range(50):
                await asyncio.sleep(0)
            assert len(bench.asked) == asked, "it does not poll"
            bench.put("fine")
            bench.woken.set()
            await bench.until(lambda: len(bench.settled) == 1)
            await bench.until(lambda: bench.listens == 2)

        await bench.serve(during)
        assert bench.drains >= 1

    asyncio.run(main())


def test_a_token_taken_while_every_slot_is_busy_is_given_back_by_a_turn(app: App) -> None:
    go = asyncio.Event()

    @app.job
    async def wait() -> None:
        await go.wait()

    async def main() -> None:
        bench = Bench(app, concurrency=1)

        async def during() -> None:
            await bench.until(lambda: bench.listens == 1)
            bench.put("wait")
            bench.turner._heard = True
            bench.turner._news.set()  # as when a due time comes: the listener goes on listening
            await bench.until(lambda: bench.turner._tasks)
            asked = len(bench.asked)
            bench.woken.set()
            await bench.until(lambda: len(bench.asked) > asked)
            assert bench.asked[-1] == 0
            go.set()
            await bench.until(lambda: bench.settled)

        await bench.serve(during)

    asyncio.run(main())


def test_cancelled_runs_are_handed_back_and_cleaned_up(app: App) -> None:
    cleaned = []

    @app.job
    async def wait() -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            cleaned.append(1)

    @app.job
    async def stubborn() -> None:
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            return

    async def main() -> None:
        bench = Bench(app, concurrency=2)
        one, two = bench.put("wait"), bench.put("stubborn")

        async def during() -> None:
            await bench.until(lambda: len(bench.turner._tasks) == 2)
            await asyncio.sleep(0)
            bench.turner.cancel()
            await bench.until(lambda: len(bench.settled) == 2)

        await bench.serve(during)
        assert {(s.id, s.word) for s in bench.settled} == {(one.id, "back"), (two.id, "done")}
        assert cleaned == [1]

    asyncio.run(main())


def test_what_was_claimed_without_a_sure_lease_is_handed_back(app: App) -> None:
    @app.job
    async def fine() -> None:
        raise AssertionError("never run")

    async def main() -> None:
        bench = Bench(app, concurrency=1)
        one = bench.put("fine")
        plain = bench.call

        async def late(call: Call[Turned]) -> Turned:
            answer = await plain(call)
            if answer.claims:
                bench.clock.now_s += 15
                bench.open = False
            return answer

        bench.turner._call = late
        await asyncio.wait_for(bench.turner.serve(), DEADLINE_S)
        assert [(s.word, s.id) for s in bench.settled] == [("back", one.id)]

    asyncio.run(main())


def test_what_was_claimed_under_a_lost_lease_is_not_run_under_the_next(app: App) -> None:
    ran = []

    @app.job
    async def fine() -> None:
        ran.append(1)

    async def main() -> None:
        bench = Bench(app, concurrency=1)
        claims, _ = bench.holdings.receive([bench.put("fine")]), bench.queue.clear()
        bench.heart.lose(bench.heart.worker)
        bench.heart.register()
        await bench.turner._run(claims[0])
        assert ran == []
        assert not bench.holdings.waiting

    asyncio.run(main())


def test_an_outage_is_waited_out_and_nothing_is_lost(app: App) -> None:
    @app.job
    async def fine() -> None: ...

    async def main() -> None:
        bench = Bench(app, concurrency=1)
        bench.put("fine")

        async def during() -> None:
            await bench.until(lambda: bench.turner._tasks)
            bench.failing = 3
            await bench.until(lambda: bench.settled)

        await bench.serve(during)
        assert bench.words() == ["done"]

    asyncio.run(main())


def test_what_ends_in_an_outage_is_settled_as_soon_as_it_is_over(app: App) -> None:
    go = asyncio.Event()

    @app.job
    async def wait() -> None:
        await go.wait()

    async def main() -> None:
        bench = Bench(app, concurrency=2)
        bench.put("wait")

        async def during() -> None:
            await bench.until(lambda: bench.turner._tasks)
            bench.failing = 2
            bench.turner.rouse()
            await bench.until(lambda: bench.failing == 1)
            go.set()
            began_s = time.monotonic()
            await bench.until(lambda: bench.settled)
            assert time.monotonic() - began_s < 2

        await bench.serve(during)

    asyncio.run(main())


def test_a_malformed_or_unknown_job_costs_no_slot(app: App) -> None:
    @app.job
    async def fine() -> None: ...

    async def main() -> None:
        bench = Bench(app, concurrency=1)
        bench.queue = [
            Claim("x", "1-n", b"", b"garbage", 0, 0, 0),
            Claim("y", "1-n", b"", b'["who"]', 0, 0, 0),
        ]
        bench.put("fine")
        await bench.serve(lambda: bench.until(lambda: len(bench.settled) == 3))
        assert bench.words() == ["bury", "putoff", "done"]

    asyncio.run(main())


def test_outcomes_of_the_end_are_settled_before_it_ends(app: App) -> None:
    @app.job
    async def fine() -> None: ...

    async def main() -> None:
        bench = Bench(app, concurrency=1)
        bench.open = False
        one = bench.put("fine")
        bench.queue.clear()
        bench.holdings.receive([one])
        bench.holdings.end(one, outcome.handed_back(one))
        await asyncio.wait_for(bench.turner.serve(), DEADLINE_S)
        assert bench.words() == ["back"]

    asyncio.run(main())
