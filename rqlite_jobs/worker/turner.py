"""The slots of an event loop: tasks that run jobs, and the one turner that settles and claims for all of them."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

from rqlite_jobs.answers import Claim
from rqlite_jobs.operations import Call, Settlement
from rqlite_jobs.worker import outcome
from rqlite_jobs.worker.executor import Executor
from rqlite_jobs.worker.heart import Heart
from rqlite_jobs.worker.holdings import Holdings
from rqlite_jobs.worker.outage import Outage
from rqlite_jobs.worker.threads import Threads
from rqlite_jobs.worker.turn import Turn

log = logging.getLogger("rqlite_jobs.worker")

LOOK_S = 4.0


class Turner:
    """Serves `concurrency` slots on one event loop.

    Args:
        turn: its turns at the server.
        holdings: what the child has.
        heart: whether the lease is sure.
        executor: prepares and runs jobs.
        call: sends a call; awaited.
        listen: waits at the server for a wake-up token, at most so many seconds; awaited.
        outage: where failures are told.
        open: may it still claim?
        stopping: shall it end, once nothing runs any more?
        drained: called when nothing is left to do and nothing under way.
        concurrency: how many jobs at once.
    """

    def __init__(
        self,
        turn: Turn,
        holdings: Holdings,
        heart: Heart,
        executor: Executor,
        call: Callable[[Call[Any]], Awaitable[Any]],
        listen: Callable[[float], Awaitable[None]],
        outage: Outage,
        open: Callable[[], bool],
        stopping: Callable[[], bool],
        drained: Callable[[], None],
        concurrency: int,
    ) -> None:
        self._turn = turn
        self._holdings = holdings
        self._heart = heart
        self._executor = executor
        self._call = call
        self._listen = listen
        self._outage = outage
        self._open = open
        self._stopping = stopping
        self._drained = drained
        self._concurrency = concurrency
        self._threads = Threads(concurrency)
        self._tasks: dict[asyncio.Task[None], Claim] = {}
        self._news = asyncio.Event()
        self._listener: asyncio.Task[None] | None = None
        self._heard = False
        self._deaf = 0
        self._failures = 0

    async def serve(self) -> None:
        """Work until it shall end and everything has ended and is settled."""
        try:
            while self._goes_on():
                self._news.clear()
                wait_s = await self._step()
                if wait_s > 0 and not self._news.is_set() and self._goes_on():
                    try:
                        await asyncio.wait_for(self._news.wait(), min(wait_s, LOOK_S))
                    except TimeoutError:
                        continue
        finally:
            if self._listener is not None:
                self._listener.cancel()

    def rouse(self) -> None:
        """Look again whether there is something to do, and in which queues. Called on the loop."""
        self._stop_listening()
        self._heard = True
        self._news.set()

    def cancel(self) -> None:
        """Cancel all that runs; it is handed back. Called on the loop."""
        for task in list(self._tasks):
            task.cancel()

    @property
    def busy(self) -> bool:
        """Does a plain function run in a thread, also one whose job was cancelled? No thread can be ended."""
        return self._threads.busy

    def _goes_on(self) -> bool:
        return bool(not self._stopping() or self._tasks or self._unsettled)

    @property
    def _unsettled(self) -> bool:
        return self._holdings.waiting or self._turn.owes

    async def _step(self) -> float:
        free = self._concurrency - len(self._tasks) if self._open() else 0
        if free and not self._heart.sure:
            return self._outage.pause_s(2)
        heard, self._heard = self._heard, False
        if not free and not heard and not self._unsettled:
            return LOOK_S
        call = self._turn.ask(free, last_idle=free > 0)
        sent_s = self._outage.now_s
        try:
            turned = await self._call(call)
        except Exception as error:  # away, read-only, a script that failed: nothing of it may end the loop
            self._turn.unanswered()
            self._outage.failed(error, sent_s)
            self._failures += 1
            return self._outage.pause_s(self._failures - 1)
        self._outage.over()
        self._failures = 0
        claims, left = self._turn.answered(turned)
        for claim in claims:
            task = asyncio.create_task(self._run(claim))
            self._tasks[task] = claim
            task.add_done_callback(self._ended)
        if self._holdings.waiting:
            return 0.0  # what ended while the same turn was asked again and again
        if free <= len(claims):
            # It can take no more, and would take tokens that are for others.
            return 0.0 if self._stop_listening() else LOOK_S
        if left or self._turn.void:
            return 0.0
        if self._holdings.idle:
            self._drained()
        return self._arm()

    def _stop_listening(self) -> bool:
        """Cancel the listener, if there is one. It may have taken a token: the next turn gives that back."""
        if self._listener is None:
            return False
        self._listener.cancel()
        self._listener, self._heard = None, True
        return True

    def _arm(self) -> float:
        due_s = self._turn.next_due_ms / 1000 if self._turn.next_due_ms >= 0 else LOOK_S
        if self._listener is None:
            self._listener = asyncio.create_task(self._hear(due_s))
        return max(due_s, 0.001)

    async def _hear(self, due_s: float) -> None:
        try:
            await self._listen(due_s)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            # If the server is away, the turn that follows tells it better.
            self._deaf += 1
            await asyncio.sleep(self._outage.deaf(error) if self._deaf > 1 else self._outage.pause_s(2))
        else:
            self._deaf = 0
        # A token may have been taken. If no slot is free by now, the next turn gives it back.
        self._heard = True
        if self._listener is asyncio.current_task():  # else it was replaced, and only now has ended
            self._listener = None
        self._news.set()

    async def _run(self, claim: Claim) -> None:
        began_s = time.monotonic()
        if not self._heart.sure or not self._open():
            self._holdings.end(claim, outcome.handed_back(claim))
            return
        if not self._holdings.holds(claim):
            return  # the lease is sure, but it is a new one: this job runs elsewhere
        try:
            run = self._executor.prepare(claim)
            settlement = (
                run
                if isinstance(run, Settlement)
                else await self._executor.aperform(
                    run, lambda run: self._threads.run(lambda: self._executor.perform(run))
                )
            )
        except asyncio.CancelledError:
            settlement = outcome.handed_back(claim)
        if not self._holdings.end(claim, settlement, time.monotonic() - began_s):
            log.warning(
                "job %s ended here, but its lease was lost before: the outcome is not recorded", claim.id
            )

    def _ended(self, task: "asyncio.Task[None]") -> None:
        del self._tasks[task]
        self._news.set()
