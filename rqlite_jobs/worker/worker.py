"""The worker: what `rqj worker` runs, and what a program can run by itself."""

import asyncio
import logging
import threading
import time
from collections.abc import Sequence
from typing import Never

from rqlite_jobs.app import App
from rqlite_jobs.durations import Duration, to_text
from rqlite_jobs.errors import BadOption, UnknownOption, nearest
from rqlite_jobs.inspector.checkup import examine
from rqlite_jobs.keys import check_queue
from rqlite_jobs.worker.child import Child
from rqlite_jobs.worker.ground import check_ground
from rqlite_jobs.worker.signals import handled

log = logging.getLogger("rqlite_jobs.worker")

_GIVEN = ("concurrency", "lease", "beat", "sweep", "stop_after", "max_crashes", "allow_eviction")


class Worker:
    """Runs the jobs of an app until it is stopped.

    Args:
        app: whose jobs.
        queues: the queues it serves, in this order. None: every queue that the app's jobs name, and every one
            that jobs were ever put into, new ones within a beat.
        concurrency: how many jobs run at once.
        burst: end when nothing is ready or due.
        lease: how long a silent worker keeps its jobs, a duration.
        beat: how often it says that it lives; by default a third of the lease.
        sweep: how soon at the earliest it looks after another worker's lease.
        stop_after: how long running jobs may finish when it is stopped.
        max_crashes: after how many crashes a job is buried.
        allow_eviction: work on a server that may evict keys when its memory is full.

    What is None is taken from the settings.

    Raises:
        BadOption, BadDuration, BadName, UnknownOption: an argument that no worker can have.

    >>> Worker(app, ["mail"], concurrency=2, burst=True).run()    # doctest: +SKIP
    """

    def __init__(
        self,
        app: App,
        queues: Sequence[str] | None = None,
        concurrency: int | None = None,
        burst: bool = False,
        *,
        lease: Duration | None = None,
        beat: Duration | None = None,
        sweep: Duration | None = None,
        stop_after: Duration | None = None,
        max_crashes: int | None = None,
        allow_eviction: bool | None = None,
        **unknown: Never,
    ) -> None:
        for name in unknown:
            known = ("queues", "burst", *_GIVEN)
            raise UnknownOption(f"Worker has no argument {name!r}.", hint=nearest(name, known), option=name)
        self._app = app
        if isinstance(queues, str):
            raise BadOption(
                f"queues={queues!r} of a Worker is one text, which would be a queue for each of its letters.",
                hint=f"Write queues=[{queues!r}].",
                option="queues",
            )
        self._queues = [check_queue(queue) for queue in queues or ()]
        self._burst = burst
        given = (concurrency, lease, beat, sweep, stop_after, max_crashes, allow_eviction)
        self._settings = app.settings.but(**dict(zip(_GIVEN, given, strict=True)))
        self._guard = threading.Lock()
        self._child: Child | None = None
        self._stops = 0
        self._stop_asked = threading.Event()
        self.abandoned = False
        """Did it leave while handlers were still running, in threads that cannot be ended?"""

    def run(self) -> None:
        """Work until stopped (by `stop`, or by TERM or INT in the main thread), or to the end of a burst.

        On the way out running jobs may finish for `stop_after`; what is not done then is handed back, with no
        attempt counted. A second stop hands back at once. TSTP makes it quiet: it claims nothing more.

        Raises:
            Unreachable: the server did not answer at the start. Later it is waited for.
            RqjError: the server is one that a worker must not serve; see `rqj doctor`.
        """
        self._app.load_imports()
        check_ground(examine(self._app, allow_eviction=self._settings.allow_eviction))
        child = Child(self._app, self._settings, self._queues, self._burst)
        with self._guard:
            self._child = child
        if self._stop_asked.is_set():
            child.stop()
        with handled(self.stop, child.quiet):
            child.start()
            while not self._stop_asked.is_set() and not child.wait(0.5):
                continue
            self._finish(child)
        log.info("worker %s has left", child.heart.worker or "without a lease")

    async def arun(self) -> None:
        """The same from async code; the jobs run in threads of their own. No signals are handled."""
        await asyncio.to_thread(self.run)

    def stop(self) -> None:
        """Stop gracefully; called again, at once. May be called from any thread, or before `run`."""
        with self._guard:
            self._stops += 1
        self._stop_asked.set()
        child = self._child
        if child is not None:
            child.stop()

    def _finish(self, child: Child) -> None:
        if self._stop_asked.is_set():
            child.stop()
        deadline_s = time.monotonic() + self._settings.stop_after_ms / 1000
        if self._stop_asked.is_set() and (held := child.held):
            log.info(
                "stopping: %d %s may finish for %s; a second signal hands back at once",
                held, "job" if held == 1 else "jobs", to_text(self._settings.stop_after_ms),
            )  # fmt: skip
        while time.monotonic() < deadline_s and self._stops < 2 and not child.wait(0.05):
            continue
        if not child.wait(0):
            after = "" if self._stops >= 2 else f" after {to_text(self._settings.stop_after_ms)}"
            log.warning("handing back what is not done%s", after)
        self.abandoned = not child.leave()
