"""Waiting for work without polling: one waiter of a child listens, the other idle slots wait for the waiter."""

import logging
import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from rqlite_jobs.address import TIMEOUT_S, Address
from rqlite_jobs.keys import Keys

log = logging.getLogger("rqlite_jobs.worker")

LISTEN_S = 4.0
"""How long one wait at the server lasts at most; then a turn looks whether something was missed."""
SLACK_S = 0.05
"""Two answers about the same due time differ by what each was under way."""
FAKE_LISTEN_S = 0.02
"""The same for a server inside this process, whose waits cannot be interrupted."""


class Waker:
    """Lets the idle slots of a child wait. Safe from any thread.

    Args:
        address: of the server.
        keys: of the namespace.
        queues: answers with the queues listened for.

    The waiter pops a wake-up token, never a job, so nothing is lost with it; the claim that follows passes the
    token on if there is more to do.
    """

    def __init__(self, address: Address, keys: Keys, queues: Callable[[], Sequence[str]]) -> None:
        self._address = address
        self._keys = keys
        self._queues = queues
        self._guard = threading.Condition()
        self._listening = False
        self._roused = 0
        self._due_s = float("inf")
        self._until_s = float("inf")
        self._idle = 0
        self._stopped = False
        self._connection: Any = None
        self._interrupted = False
        self._failures = 0

    def wait(self, longest_s: float) -> None:
        """Wait until there may be something to do.

        Args:
            longest_s: in how many seconds the next scheduled job is due, as far as the asker knows; infinite: none.
                Whoever knows of one keeps that time, whether it listens or not; and so does whoever listens next.

        Raises:
            redis.RedisError, OSError: listening failed, and not for the first time in a row.
        """
        until_s = time.monotonic() + longest_s
        with self._guard:
            self._due_s = until_s
            self._idle += 1
            roused = self._roused
            try:
                while self._listening and not self._stopped and roused == self._roused:
                    left_s = until_s - time.monotonic()
                    if left_s <= 0:
                        return
                    self._guard.wait(left_s if left_s < threading.TIMEOUT_MAX else None)
                if self._stopped or roused != self._roused:
                    return
                self._listening = True
            finally:
                self._idle -= 1
        try:
            self._listen(until_s)
        finally:
            with self._guard:
                self._listening = False
                self._guard.notify()  # another idle slot listens while this one works

    @property
    def idle(self) -> int:
        """How many slots wait."""
        return self._idle

    def expect(self, due_s: float) -> None:
        """A slot that goes to work knows in how many seconds a job is due: whoever listens must not sleep past that."""
        with self._guard:
            self._due_s = time.monotonic() + due_s
            if self._due_s + SLACK_S < self._until_s:
                self._interrupt()

    def rouse(self) -> None:
        """Send all idle slots back to work: they look whether they shall end, or what lies in hand."""
        with self._guard:
            self._roused += 1
            self._guard.notify_all()
            self._interrupt()

    def stop(self) -> None:
        """End all waiting, now and later."""
        with self._guard:
            self._stopped = True
        self.rouse()

    def _listen(self, until_s: float) -> None:
        connection = self._connection
        if connection is None:
            # Its own connection, for it hangs in a blocking command; it outwaits that by the usual timeout.
            connection = self._address.connection(LISTEN_S + TIMEOUT_S)
        try:
            connection.connect()
            with self._guard:
                if self._stopped:
                    connection.disconnect()
                    return
                self._connection = connection
                longest_s = FAKE_LISTEN_S if self._address.fake else LISTEN_S
                self._until_s = min(until_s, self._due_s, time.monotonic() + longest_s)
            keys = [self._keys.wake(queue) for queue in self._queues()]
            listen_s = max(0.001, self._until_s - time.monotonic())
            connection.send_command("BLPOP", *keys, f"{listen_s:.3f}")
            connection.read_response(disable_decoding=True)
        except BaseException as error:
            self._connection = None
            connection.disconnect()
            if self._was_interrupted(error) or self._stopped:
                return
            # If the server is away, the turn that follows at once tells it better; and a connection that was kept
            # may be of a server that is long gone.
            self._failures += 1
            if self._failures > 1 or not isinstance(error, Exception):
                raise
        else:
            self._failures = 0

    def _interrupt(self) -> None:
        # Shutting the socket down is the one thing that ends a blocking read at once; CLIENT UNBLOCK would
        # need a server that answers.
        sock = getattr(self._connection, "_sock", None)
        if isinstance(sock, socket.socket) and self._listening:
            self._interrupted = True
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                log.debug("the waiter's connection was closed already")

    def _was_interrupted(self, error: BaseException) -> bool:
        was, self._interrupted = self._interrupted, False
        return was and isinstance(error, Exception)
