"""A child: everything that serves one lease, built from the ground up and stopped from the top down.

It can be run by itself, in the process that asks for it; a supervisor that starts many is another matter.
"""

import asyncio
import contextlib
import logging
import random
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from rqlite_jobs.address import TIMEOUT_S
from rqlite_jobs.app import App
from rqlite_jobs.config import Settings
from rqlite_jobs.operations import Call
from rqlite_jobs.worker.executor import Executor
from rqlite_jobs.worker.heart import Heart
from rqlite_jobs.worker.holdings import Holdings
from rqlite_jobs.worker.loop import Loop
from rqlite_jobs.worker.outage import Outage
from rqlite_jobs.worker.reporter import Reporter
from rqlite_jobs.worker.slot import Slot
from rqlite_jobs.worker.turn import Turn
from rqlite_jobs.worker.turner import Turner
from rqlite_jobs.worker.waker import LISTEN_S, Waker

log = logging.getLogger("rqlite_jobs.worker")

T = TypeVar("T")

HANG_S = 1.0
"""After how long a request that failed is one to a server that hangs, and is not waited for twice on the way out."""


class Child:
    """Serves jobs under one lease: a heart, and slots that are threads, or tasks where the app has async handlers.

    Args:
        app: whose jobs it runs.
        settings: how, with what the worker was given in them.
        queues: those it serves, in order; empty: all.
        burst: end when nothing is ready or due.

    `start`, then `wait`; `stop` may come from any thread; `leave` at the end.
    """

    def __init__(self, app: App, settings: Settings, queues: Sequence[str] = (), burst: bool = False) -> None:
        self._app = app
        self._settings = settings
        self._burst = burst
        self._rng = random.Random()
        self._stopping = threading.Event()
        self._quiet = False
        self._ended = threading.Event()
        self._outage = Outage(self._rng)
        self._holdings = Holdings(on_hand=self._watch_hand)
        own = list(queues) or _own_queues(app, settings)
        self.heart = Heart(
            app.operations, self._holdings, settings, own, not queues, list(app.handlers), self._call, self._outage,
            self._flush, rng=self._rng, changed=self._changed,
        )  # fmt: skip
        self._reporter = Reporter(app.operations, self._holdings, self.heart, self._call)
        self._executor = Executor(app, self._rng, self._reporter)
        self._waker = Waker(app.address, app.keys, lambda: self.heart.queues)
        self._flush_turn = self._new_turn()
        self._heart_loop = Loop("rqj-heart", self.heart.tick)
        self._living = 0
        self._guard = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._turner: Turner | None = None

    def start(self) -> None:
        """Register, and begin to work.

        Raises:
            Unreachable, ServerReadOnly: the server gave no lease; nothing was started.
        """
        # Patient, as no other call of a child is: an answer that is lost here must not end the worker before it began,
        # and leave a lease behind that nobody holds.
        self.heart.register(self._app.run)
        log.info(
            "worker %s serves %s, %d at once", self.heart.worker, ", ".join(self.heart.queues),
            self._settings.concurrency,
        )  # fmt: skip
        self._heart_loop.start()
        serving = {f"rqj-slot-{number + 1}": self._serve_slot for number in range(self._settings.concurrency)}
        if any(handler.is_async for handler in self._app.handlers.values()):
            serving = {"rqj-loop": self._serve_loop}
        self._living = len(serving)  # before the first begins: it may have ended before the second does
        for name, serve in serving.items():
            self._spawn(name, serve)

    def stop(self) -> None:
        """Claim nothing more, and end when what runs has ended."""
        self._stopping.set()
        self._rouse()

    def quiet(self) -> None:
        """Claim nothing more, and stay."""
        if not self._quiet:
            log.info(
                "worker %s is quiet: it finishes what it runs and claims nothing more", self.heart.worker
            )
        self._quiet = True
        self._rouse()

    @property
    def held(self) -> int:
        """How many jobs it runs, has in hand, or has not settled yet."""
        return len(self._holdings.ids())

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until all slots have ended; False if they have not in that time."""
        return self._ended.wait(timeout_s)

    def leave(self) -> bool:
        """Settle what has ended, hand everything else back, end the lease; False if handlers still run here."""
        all_ended = self._ended.is_set()
        if not all_ended and self._turner is not None:
            self._on_loop(self._turner.cancel)
            all_ended = self._ended.wait(1.0)
        began_s = time.monotonic()
        self._heart_loop.stop()
        self._waker.stop()
        self._reporter.stop()
        worker = self.heart.worker
        try:
            self._holdings.hand_back_all()
            failures = 0
            while failures < 2 and (self._holdings.waiting or self._flush_turn.owes):
                self._go_on(began_s)
                failures += not self._flush()
            if worker:
                self._go_on(began_s)
                self._end_lease(worker)
        except Exception as error:
            why = str(error).partition("\n")[0]
            log.warning(
                "left without telling the server, which gives the jobs back when the lease ends: %s", why
            )
        self._holdings.drop()
        return all_ended and not (self._turner is not None and self._turner.busy)

    def _go_on(self, began_s: float) -> None:
        # Each request to a server that hangs takes its whole timeout; a supervisor that stopped this worker would not
        # wait for several.
        if self._outage.lasts and time.monotonic() - began_s > HANG_S:
            raise TimeoutError("it does not answer")

    def _end_lease(self, worker: str) -> None:
        failed, left = False, 1
        while left:
            began_s = time.monotonic()
            try:
                _, left = self._call(self._app.operations.leave(worker, self.heart.queues))
            except ConnectionError:
                # A connection that was closed while it rested fails at once, and the next is a new one.
                if failed or time.monotonic() - began_s > HANG_S:
                    raise
                failed = True

    def _open(self) -> bool:
        return not self._stopping.is_set() and not self._quiet

    def _call(self, call: Call[T]) -> T:
        # Not patient: a slot repeats by itself, so that it can be stopped in between.
        return self._app.run(call, patient=False)

    def _new_turn(self) -> Turn:
        return Turn(self._app.operations, self._holdings, self.heart, self._app.caller.nonce)

    def _flush(self) -> bool:
        sent_s = self._outage.now_s
        try:
            self._flush_turn.answered(self._call(self._flush_turn.ask(0)))
        except Exception as error:
            self._flush_turn.unanswered()
            self._outage.failed(error, sent_s)
            return False
        return True

    def _changed(self) -> None:
        if not self.heart.worker:
            self._heart_loop.wake()
        else:
            self._rouse()  # there may be jobs under the new lease, or in the new queues

    def _watch_hand(self) -> None:
        if not self.heart.watching:
            self._heart_loop.wake()

    def _rouse(self) -> None:
        if self._stopping.is_set():
            self._waker.stop()
        else:
            self._waker.rouse()
        if self._turner is not None:
            self._on_loop(self._turner.rouse)

    def _on_loop(self, act: Callable[[], None]) -> None:
        assert self._loop is not None
        with contextlib.suppress(RuntimeError):  # it is closed by now: there is nobody to act upon
            self._loop.call_soon_threadsafe(act)

    def _drained(self) -> None:
        if self._burst and self._holdings.idle:
            self.stop()

    def _spawn(self, name: str, serve: Callable[[], None]) -> None:
        def run() -> None:
            try:
                serve()
            except Exception:
                log.exception("a slot failed; this is a fault of rqlite-jobs")
            finally:
                with self._guard:
                    self._living -= 1
                    if self._living == 0:
                        self._ended.set()

        threading.Thread(target=run, name=name, daemon=True).start()

    def _serve_slot(self) -> None:
        slot = Slot(
            self._new_turn(), self._holdings, self.heart, self._executor.execute, self._call, self._outage,
            self._open, lambda: self._waker.idle == 0,
        )  # fmt: skip
        while True:
            wait_s = slot.step()
            if slot.begins:
                self._waker.expect(slot.due_s)
            if self._stopping.is_set() and wait_s:
                if not self._holdings.waiting and not slot.owes:
                    return
                if not slot.idle:
                    time.sleep(wait_s)  # the server is away: what has ended here is told when it is back
            elif slot.idle and self._open():
                self._drained()
                try:
                    self._waker.wait(wait_s)
                except Exception as error:
                    self._stopping.wait(self._outage.deaf(error))
            elif wait_s:
                # One that may not claim does not listen either: it would take tokens that are for others.
                self._stopping.wait(wait_s if wait_s < threading.TIMEOUT_MAX else None)

    def _serve_loop(self) -> None:
        with asyncio.Runner() as runner:
            serving = runner.get_loop().create_task(self._aserve())
            while not serving.done():
                # A task that a handler made and that exits stops the loop. By then its exception is kept for the
                # handler that awaits it, which fails by it; everybody else's job goes on.
                with contextlib.suppress(SystemExit, KeyboardInterrupt):
                    runner.get_loop().run_until_complete(serving)

    async def _aserve(self) -> None:
        async def call(call: Call[Any]) -> Any:
            return await self._app.arun(call, patient=False)

        self._loop = asyncio.get_running_loop()
        self._turner = Turner(
            self._new_turn(), self._holdings, self.heart, self._executor, call, self._listen, self._outage,
            self._open, self._stopping.is_set, self._drained, self._settings.concurrency,
        )  # fmt: skip
        await self._turner.serve()

    async def _listen(self, longest_s: float) -> None:
        listen_s = max(0.001, min(longest_s, LISTEN_S))
        connection: Any = self._app.address.async_connection(LISTEN_S + TIMEOUT_S)
        try:
            await connection.connect()
            keys = [self._app.keys.wake(queue) for queue in self.heart.queues]
            await connection.send_command("BLPOP", *keys, f"{listen_s:.3f}")
            # Before Python 3.12 a cancellation that comes while something is sent is swallowed on the way, and the
            # answer may be seconds away.
            task = asyncio.current_task()
            if task is None or not task.cancelling():
                await connection.read_response(disable_decoding=True)
        finally:
            await connection.disconnect(nowait=True)


def _own_queues(app: App, settings: Settings) -> list[str]:
    named = {handler.queue or settings.default_queue for handler in app.handlers.values()}
    return sorted({settings.default_queue, *named})
