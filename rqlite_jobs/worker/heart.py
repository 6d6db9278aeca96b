"""The heart of a child: its lease, the beat that keeps it, and what the beat brings back."""

import json
import logging
import os
import random
import socket
import string
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from rqlite_jobs.answers import Beat
from rqlite_jobs.config import Settings
from rqlite_jobs.operations import Call, Operations
from rqlite_jobs.worker.holdings import Holdings
from rqlite_jobs.worker.outage import Outage

log = logging.getLogger("rqlite_jobs.worker")

LOOK_S = 0.1
"""How often a hand is looked at, while something lies in it."""


class Heart:
    """Registers the child, beats for it, and knows whether its lease is sure.

    Args:
        operations: of the namespace.
        holdings: what the child has; the beat names it.
        settings: lease, beat, sweep, concurrency and max_crashes.
        queues: those it serves, in order.
        all_queues: it serves every other queue of the namespace too, behind these, as they come up.
        names: of the jobs that it knows.
        call: sends a call and answers.
        outage: where failures are told.
        flush: settles now what has ended, and tells whether that was answered; asked when a hand was given back,
            and again until it was.
        clock: seconds, monotonic.
        rng: for the worker's id.
        changed: called when the lease was lost, when there is a new one, when there are other queues to serve, and
            when jobs of other workers came back.

    A lease is *sure* while the last confirmed beat, counted from its sending, is younger than the lease: by this
    process's own clock it cannot be over at the server yet.
    """

    def __init__(
        self,
        operations: Operations,
        holdings: Holdings,
        settings: Settings,
        queues: Sequence[str],
        all_queues: bool,
        names: Sequence[str],
        call: Callable[[Call[Any]], Any],
        outage: Outage,
        flush: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = time.monotonic,
        rng: random.Random | None = None,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self._operations = operations
        self._holdings = holdings
        self._settings = settings
        self._own_queues = list(queues)
        self._all_queues = all_queues
        self._names = sorted(names)
        self._call = call
        self._outage = outage
        self.flush = flush
        self._clock = clock
        self._rng = rng or random.Random()
        self._changed = changed
        self._guard = threading.Lock()
        self._confirmed_s = float("-inf")
        self._next_beat_s = 0.0
        self._failures = 0
        self._owed = False
        self.worker = ""
        self.queues: list[str] = list(queues)
        self.watching = False
        """Does it look often, because something lies in hand? Else it must be woken when something does."""

    @property
    def sure(self) -> bool:
        """Is the lease certainly still running?"""
        return self.recent(self._confirmed_s)

    @property
    def now_s(self) -> float:
        """The time by which `recent` goes."""
        return self._clock()

    def recent(self, since_s: float) -> bool:
        """Is it less than a lease ago?"""
        return self._clock() < since_s + self._settings.lease_ms / 1000

    def register(self, call: Callable[[Call[Any]], Any] | None = None) -> None:
        """Get a lease under a new id.

        Args:
            call: sends this one call; None: as all others are sent.

        Raises:
            Unreachable, ServerReadOnly: there is no lease now; to be tried again.
        """
        worker = self._new_id()
        facts = {
            "host": socket.gethostname(),
            "pid": str(os.getpid()),
            "version": _version(),
            "queues": json.dumps(self._own_queues, ensure_ascii=False),
            "all_queues": "1" if self._all_queues else "0",
            "concurrency": str(self._settings.concurrency),
            "names": json.dumps(self._names, ensure_ascii=False),
        }
        sent_s = self._clock()
        _, queues = (call or self._call)(self._operations.register(worker, self._settings.lease_ms, facts))
        with self._guard:
            self.worker = worker
        if self._confirm(worker, sent_s, queues):
            self._next_beat_s = sent_s + self._settings.beat_ms / 1000
            self._changed()

    def lose(self, worker: str) -> None:
        """The lease of `worker` is gone: forget what was held under it. The next tick registers anew."""
        with self._guard:
            if not worker or worker != self.worker:
                return
            self.worker = ""
            self._confirmed_s = float("-inf")
            self._next_beat_s = 0.0
            # Before anybody lets go: what is held under a lease that comes next must not be dropped.
            dropped = self._holdings.drop()
        log.warning("the lease of worker %s is lost; jobs that run elsewhere now: %d", worker, len(dropped))
        self._changed()

    def tick(self) -> float:
        """Beat if it is time; answers in how many seconds to be called again."""
        if self._holdings.hand_back_stale():
            self._owed = True
        if self._owed:
            self._owed = not self.flush()
        now_s = self._clock()
        if now_s >= self._next_beat_s:
            sent_s = self._outage.now_s
            try:
                self._beat(now_s)
            except Exception as error:
                # Whatever it is, the heart must not stop: its lease carries running jobs.
                self._outage.failed(error, sent_s)
                # Never longer than a beat: a server that is back gives every worker one lease to be heard of again.
                pause_s = min(self._outage.pause_s(self._failures), self._settings.beat_ms / 1000)
                self._next_beat_s = self._clock() + pause_s
                self._failures += 1
            else:
                self._outage.over()
                self._failures = 0
        wait_s = max(self._next_beat_s - self._clock(), 0.001)
        # First this, then the look: what is laid into the hand in between finds that it must wake this heart.
        self.watching = False
        self.watching = self._owed or self._holdings.in_hand
        return min(wait_s, LOOK_S) if self.watching else wait_s

    def _beat(self, sent_s: float) -> None:
        if not self.worker:
            self.register()
            return
        settings, worker = self._settings, self.worker
        beat: Beat = self._call(
            self._operations.heartbeat(worker, settings.lease_ms, settings.max_crashes, self._holdings.ids())
        )
        if beat.lost:
            self.lose(worker)
            self.register()
            return
        if beat.recovered:
            log.warning("jobs of workers that died, back in their queues: %d", beat.recovered)
            self._changed()  # the token that tells of them may go to a waiter that is frozen, or cut off
        if not self._confirm(worker, sent_s, beat.queues):
            return
        # The earliest other lease is looked after when it ends, by whoever beats first then.
        next_s = settings.beat_ms / 1000
        if beat.next_end_ms:
            next_s = min(next_s, max((beat.next_end_ms - beat.now_ms + 1) / 1000, settings.sweep_ms / 1000))
        self._next_beat_s = sent_s + next_s

    def _confirm(self, worker: str, sent_s: float, queues: Sequence[str]) -> bool:
        """Take in an answer; False if a turn was told meanwhile that this worker's lease is lost."""
        with self._guard:
            if worker != self.worker:
                return False
            self._confirmed_s = sent_s
        if self._all_queues:
            known = set(self._own_queues)
            found = self._own_queues + sorted(queue for queue in queues if queue not in known)
            if found != self.queues:
                self.queues = found
                self._changed()
        return True

    def _new_id(self) -> str:
        letters = string.digits + string.ascii_lowercase
        host = "".join(c if c.isalnum() or c in "-." else "-" for c in socket.gethostname())[:40]
        return f"{host}-{os.getpid()}-{''.join(self._rng.choices(letters, k=6))}"


def _version() -> str:
    from rqlite_jobs import __version__

    return __version__
