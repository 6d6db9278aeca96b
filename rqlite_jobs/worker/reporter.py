"""The reporter of a child: tells the server how far running jobs are, without making them wait."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from rqlite_jobs.current import CurrentJob
from rqlite_jobs.errors import ServerReadOnly, Unreachable
from rqlite_jobs.operations import Call, Operations
from rqlite_jobs.worker.heart import Heart
from rqlite_jobs.worker.holdings import Holdings
from rqlite_jobs.worker.loop import Loop

log = logging.getLogger("rqlite_jobs.worker")

EVERY_S = 0.25
"""How long it waits, at least, between two calls."""
AWAY_S = 2.0
"""The same after a call that was not answered."""
REST_S = 3600.0
"""How long it sleeps when no job says anything; a job that does wakes it."""


class Reporter:
    """Keeps the newest that each running job said, and sends all of it in one call, at most every `EVERY_S`.

    Args:
        operations: of the namespace.
        holdings: what the child has: only of that anything is sent.
        heart: who the worker is.
        call: sends a call and answers.
        clock: seconds, monotonic.

    Its thread is started by the first job that says anything. Safe from any thread.
    """

    def __init__(
        self,
        operations: Operations,
        holdings: Holdings,
        heart: Heart,
        call: Callable[[Call[Any]], Any],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._operations = operations
        self._holdings = holdings
        self._heart = heart
        self._call = call
        self._clock = clock
        self._guard = threading.Lock()
        self._news: dict[str, tuple[CurrentJob, float, str]] = {}
        self._stale: dict[str, str] = {}
        self._loop: Loop | None = None
        self._awake = False
        self._next_s = 0.0
        self._warned = False

    def report(self, job: CurrentJob, value: float, text: str) -> None:
        """Note how far a job is, to be sent soon."""
        with self._guard:
            self._news[job.id] = (job, value, text)
            if self._awake:
                return  # it looks again by itself
            self._awake = True
            if self._loop is None:
                self._loop = Loop("rqj-progress", self.tick)
                self._loop.start()
                return
        self._loop.wake()

    def lost(self, job: CurrentJob) -> bool:
        """Was the lease lost, or did the server say that the run is over?"""
        return self._stale.get(job.id) == job.token or not self._holdings.holds_token(job.id, job.token)

    def tick(self) -> float:
        """Send what there is, if it is time; answers in how many seconds to be called again."""
        wait_s = self._next_s - self._clock()
        if wait_s > 0:
            return wait_s
        with self._guard:
            news = [one for one in self._news.values() if self._holdings.holds_token(one[0].id, one[0].token)]
            self._news = {}
            worker = self._heart.worker
            if not news or not worker:
                self._awake = False
                return REST_S
        said = [(job.id, job.token, value, text) for job, value, text in news]
        try:
            words = self._call(self._operations.report(worker, said))
        except (Unreachable, ServerReadOnly):
            # The slots tell of the outage. What a job said since goes before what it said then.
            with self._guard:
                self._news = {job.id: (job, value, text) for job, value, text in news} | self._news
            self._next_s = self._clock() + AWAY_S
            return AWAY_S
        except Exception as error:  # a server that refuses it: nothing of it may end a job, or the thread
            if not self._warned:
                log.warning("how far jobs are is not told: %s", str(error).partition("\n")[0])
            self._warned = True
        else:
            over = {
                job.id: job.token for (job, _, _), word in zip(news, words, strict=True) if word == "stale"
            }
            if over:
                held = self._holdings.holds_token
                self._stale = {id: token for id, token in self._stale.items() if held(id, token)} | over
        self._next_s = self._clock() + EVERY_S
        return EVERY_S

    def stop(self) -> None:
        """End its thread, if there is one."""
        if self._loop is not None:
            self._loop.stop(0.0)
