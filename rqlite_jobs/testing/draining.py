"""Running jobs here and now, in place of a worker: the worker's own turns and executor, without its threads."""

import asyncio
import random
from collections.abc import Generator
from types import TracebackType
from typing import Any, Self

from rqlite_jobs.app import App
from rqlite_jobs.current import CurrentJob
from rqlite_jobs.errors import RqjError
from rqlite_jobs.operations import Call, Settlement
from rqlite_jobs.worker.executor import Executor, Run
from rqlite_jobs.worker.heart import Heart
from rqlite_jobs.worker.holdings import Holdings
from rqlite_jobs.worker.outage import Outage
from rqlite_jobs.worker.turn import Turn

LIMIT = 10_000
"""How many jobs one drain runs at most, unless it is told."""


def drain(app: App, *, limit: int = LIMIT) -> int:
    """Run, in this thread and one at a time, whatever is due by the app's clock, until nothing is ready.

    Jobs that these jobs enqueue run too. What is due later stays: advance the clock, and drain again.

    Args:
        app: whose jobs.
        limit: how many are run at most; a job that puts itself off by nothing would never end.

    Returns:
        How many ran, failed attempts included.

    Raises:
        KeyboardInterrupt, and what `pytest.fail` and `pytest.skip` raise: a job did, and goes back to its queue.
        RqjError: more than `limit` are ready; or a job is an `async def` and an event loop runs here already.

    Example: `assert drain(app) == 1`.
    """
    if any(handler.is_async for handler in app.handlers.values()) and _loop_runs():
        raise RqjError(
            "drain cannot run async jobs inside a running event loop.", hint="Write: await adrain(app)"
        )
    with _Draining(app, limit) as draining, asyncio.Runner() as runner:
        return draining.drive(runner)


async def adrain(app: App, *, limit: int = LIMIT) -> int:
    """Run whatever is due: `drain` for async code. Plain functions run in this thread too, and hold up the loop."""
    with _Draining(app, limit) as draining:
        return await draining.adrive()


class _Draining:
    """A worker of one slot for the length of a drain: it has a lease, and gives it back."""

    def __init__(self, app: App, limit: int) -> None:
        self._app = app
        self._limit = limit
        self._ran = 0
        self._now_s = 0.0
        app.load_imports()
        rng = random.Random(0)  # the same jitter in every run of a test
        self._holdings = Holdings()
        queues = sorted({app.settings.default_queue, *(one.queue for one in app.handlers.values())})
        self._heart = Heart(
            app.operations, self._holdings, app.settings, queues, True, list(app.handlers), app.run, _Loud(rng),
            clock=lambda: self._now_s,
        )  # fmt: skip
        self._executor = _Executor(app, rng, _Reports(app, self._holdings, self._heart))
        self._turn = Turn(app.operations, self._holdings, self._heart, app.caller.nonce)

    def steps(self) -> Generator[Call[Any] | Run, Any, int]:
        """The whole drain: yields calls to be sent and jobs to be run, and is sent answers and outcomes."""
        while True:
            claims, left = self._turn.answered((yield self._turn.ask(1)))
            for claim in claims:
                run = self._executor.prepare(claim)
                settlement: Settlement = run if isinstance(run, Settlement) else (yield self._counted(run))
                self._holdings.end(claim, settlement)
            if claims or left or self._holdings.waiting:
                continue
            known = list(self._heart.queues)
            # Every tick beats, so new queues are seen. During a turn this clock stands still: no claim is old.
            self._now_s += self._app.settings.beat_ms / 1000
            self._heart.tick()
            if self._heart.queues == known:
                return self._ran

    def drive(self, runner: asyncio.Runner) -> int:
        """Go through the steps, blocking."""
        steps, answer = self.steps(), None
        try:
            while True:
                step = steps.send(answer)
                if isinstance(step, Call):
                    answer = self._app.run(step)
                elif step.handler.is_async:
                    answer = runner.run(self._perform(step))
                else:
                    answer = self._executor.perform(step)
        except StopIteration as end:
            return int(end.value)

    async def adrive(self) -> int:
        """Go through the steps, awaiting."""
        steps, answer = self.steps(), None
        try:
            while True:
                step = steps.send(answer)
                answer = await (self._app.arun(step) if isinstance(step, Call) else self._perform(step))
        except StopIteration as end:
            return int(end.value)

    async def _perform(self, run: Run) -> Settlement:
        async def here(run: Run) -> Settlement:
            return self._executor.perform(run)

        return await self._executor.aperform(run, here)

    def _counted(self, run: Run) -> Run:
        if self._ran == self._limit:
            raise RqjError(
                f"drain ran {self._limit:,} jobs, and there is still one ready: {run.handler.name!r}.",
                hint="Does a job put itself off, or enqueue itself, without a delay? Else give a larger limit=.",
            )
        self._ran += 1
        return run

    def __enter__(self) -> Self:
        self._heart.register()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            left = 1
            while left:
                _, left = self._app.run(self._app.operations.leave(self._heart.worker, self._heart.queues))
        except RqjError:
            if error is None:  # else the one that is on its way tells more
                raise


class _Executor(Executor):
    """Lets through what ends a test and not a job: Ctrl-C, `pytest.fail`. A worker goes on after anything."""

    def _judged(self, run: Run, error: BaseException) -> Settlement:
        if isinstance(error, Exception | SystemExit | GeneratorExit | asyncio.CancelledError):
            return super()._judged(run, error)
        raise error


class _Reports:
    """Tells the server at once how far a job is: a test reads it in the next line."""

    def __init__(self, app: App, holdings: Holdings, heart: Heart) -> None:
        self._app = app
        self._holdings = holdings
        self._heart = heart
        self._stale = ""

    def report(self, job: CurrentJob, value: float, text: str) -> None:
        call = self._app.operations.report(self._heart.worker, [(job.id, job.token, value, text)])
        if self._app.run(call) == ["stale"]:
            self._stale = job.token

    def lost(self, job: CurrentJob) -> bool:
        return job.token == self._stale or not self._holdings.holds_token(job.id, job.token)


class _Loud(Outage):
    """An outage in a test is an error of the test, not something to wait for."""

    def failed(self, error: BaseException, sent_s: float | None = None) -> None:
        """Raise it."""
        raise error


def _loop_runs() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
