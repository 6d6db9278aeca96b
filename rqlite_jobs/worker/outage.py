"""A server that does not answer: one line in the log when it goes, one when it is back."""

import logging
import random
import threading
import time
from collections.abc import Callable

from rqlite_jobs.durations import to_text
from rqlite_jobs.refusal import refusal, said

log = logging.getLogger("rqlite_jobs.worker")

PAUSE_S = (0.05, 2.0)
"""The first and the longest pause between two tries; they double, with jitter."""
DEAF_S = 1.0
"""How often a worker looks for jobs that may not listen."""


class Outage:
    """Whether the server is away, as all parts of a child see it together. Safe from any thread.

    Args:
        rng: for jitter, so that a hundred workers do not come back in one instant.
        clock: seconds, monotonic.
    """

    def __init__(self, rng: random.Random, clock: Callable[[], float] = time.monotonic) -> None:
        self._rng = rng
        self._clock = clock
        self._guard = threading.Lock()
        self._since_s: float | None = None
        self._over_s = float("-inf")
        self._deaf = False

    @property
    def lasts(self) -> bool:
        """Was the last request not answered?"""
        return self._since_s is not None

    @property
    def now_s(self) -> float:
        """The time by which `failed` is told when a request was sent."""
        return self._clock()

    def failed(self, error: BaseException, sent_s: float | None = None) -> None:
        """A request failed; the first of a row is logged.

        Args:
            error: how.
            sent_s: when it was sent; None: just now. One that was sent before the server answered again, to the server
                as it was, is no news of another outage.
        """
        with self._guard:
            if self._since_s is not None or (sent_s is not None and sent_s <= self._over_s):
                return
            self._since_s = self._clock()
        log.error("%s Trying again until it answers.", str(error).partition("\n")[0])

    def deaf(self, error: BaseException) -> float:
        """Listening for a wake-up failed; answers how many seconds to wait before the next turn.

        It is an outage, unless the server answered, and refuses to let us listen. Turns work all the same, so that is
        told once, and not once for every turn.
        """
        if refusal(error) is None:
            self.failed(error)
            return self.pause_s(2)
        with self._guard:
            told, self._deaf = self._deaf, True
        if not told:
            log.error(
                "this worker may not listen, and looks for jobs every second or so instead: %s", said(error)
            )
        return DEAF_S

    def over(self) -> None:
        """A request was answered; the first after a row of failures is logged."""
        if self._since_s is None:
            return
        with self._guard:
            since_s, self._since_s = self._since_s, None
            self._over_s = self._clock()
        if since_s is not None:
            log.warning("the server answers again, after %s.", to_text(int((self._clock() - since_s) * 1000)))

    def pause_s(self, tries: int) -> float:
        """How long to wait before the next try, after so many failures in a row."""
        first, longest = PAUSE_S
        return min(longest, first * 2.0 ** min(tries, 10)) * self._rng.uniform(0.5, 1.0)
