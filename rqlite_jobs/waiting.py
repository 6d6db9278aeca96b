"""Waiting for the ends of jobs without polling: one list and one thread for all callers of a process."""

import asyncio
import concurrent.futures
import contextlib
import itertools
import os
import threading
import time
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from rqlite_jobs.address import TIMEOUT_S, Address
from rqlite_jobs.answers import id_text
from rqlite_jobs.caller import Caller
from rqlite_jobs.ending import Ending
from rqlite_jobs.keys import Keys
from rqlite_jobs.operations import Operations

LISTEN_S = 30
"""How long one blocking pop lasts at most; then the thread looks whether somebody waits still."""
FAKE_LISTEN_S = 0.02
"""The same for a server inside this process, whose waits cannot be interrupted."""
PAUSE_S = (0.05, 1.0)
"""The first and the longest pause while the server is away; they double."""
DOOR_MAX = 16
"""How many callers of one event loop ask at the same time how their job stands."""


_Doors = weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore]


@dataclass(slots=True, eq=False)
class Waiter:
    """One caller that waits for one job.

    Attributes:
        process: the list that is to get the end.
        ticket: a number; who came later has a higher one.
        future: gets the end. It may be awaited with `asyncio.wrap_future`.
    """

    process: str
    ticket: int
    future: "concurrent.futures.Future[Ending]" = field(default_factory=concurrent.futures.Future)

    def tell(self, ending: Ending) -> None:
        """Hand over the end, unless the caller gave up."""
        with contextlib.suppress(concurrent.futures.InvalidStateError):
            self.future.set_result(ending)


class Mailbox:
    """Where the ends of jobs arrive that this process waits for. Safe from any thread, and over a fork.

    Args:
        address: of the server.
        keys: of the namespace.
        caller: asks again for those that still wait, when the connection was lost.
        operations: of the namespace.

    Its thread lives as long as somebody waits. An end has the ticket of the last who asked for it by then, and is for
    those up to that one: an id may come again, and who waits for its new job must not be told how the old one ended.
    """

    def __init__(self, address: Address, keys: Keys, caller: Caller, operations: Operations) -> None:
        self._address = address
        self._keys = keys
        self._caller = caller
        self._operations = operations
        self._guard = threading.Lock()
        self._waiting: dict[str, list[Waiter]] = {}
        self._tickets = itertools.count(1)
        self._listening = False
        self._process = ""
        self._connection: Any = None
        self._doors: _Doors = weakref.WeakKeyDictionary()
        _all.add(self)

    @contextlib.contextmanager
    def waiter(self, id: str) -> Iterator[Waiter]:
        """Wait for the end of a job: whoever enters asks `wait` next, with the `process` of what it gets.

        If the job has not ended, `listen` comes after that. What is told before it lies in the list.
        """
        with self._guard:
            if not self._listening and not self._waiting:
                self._process = os.urandom(8).hex()
            mine = Waiter(self._process, next(self._tickets))
            self._waiting.setdefault(id, []).append(mine)
        try:
            yield mine
        finally:
            with self._guard:
                others = self._waiting.get(id, [])
                if mine in others:
                    others.remove(mine)
                if not others:
                    self._waiting.pop(id, None)

    def listen(self) -> None:
        """See to it that somebody takes ends out of the list."""
        with self._guard:
            if self._listening:
                return
            threading.Thread(
                target=self._listen, args=(self._process,), name="rqj-results", daemon=True
            ).start()
            self._listening = True  # not before: there may be no thread to be had

    def door(self) -> asyncio.Semaphore:
        """What lets a few callers of the running loop through at a time."""
        loop = asyncio.get_running_loop()
        found = self._doors.get(loop)
        if found is None:
            found = self._doors[loop] = asyncio.Semaphore(DOOR_MAX)
        return found

    def _listen(self, process: str) -> None:
        """Take ends out of the list until nobody waits; the body of the thread."""
        failures, lost = 0, False
        while True:
            with self._guard:
                if not self._waiting:
                    self._listening = False
                    return
            try:
                if lost:
                    self._ask_again(process)
                    lost = False
                # Nothing for so long: the process may have stood still while its list ran out, or so many others
                # wait for the job that it is told nothing any more. A wait that is answered sooner costs nothing.
                lost = not self._take(process) and not self._address.fake
                failures = 0
            except Exception:  # away, or not what it was: those who wait have timeouts, and it may come back
                self._drop()
                lost = True
                time.sleep(min(PAUSE_S[0] * 2.0 ** min(failures, 10), PAUSE_S[1]))
                failures += 1

    def _take(self, process: str) -> bool:
        """Wait for one end, and hand it over; False if none came."""
        listen_s = FAKE_LISTEN_S if self._address.fake else LISTEN_S
        connection = self._connection
        if connection is None:
            connection = self._address.connection(LISTEN_S + TIMEOUT_S)
            connection.connect()
            self._connection = connection
        # From the right: the newest lie on the left.
        connection.send_command("BRPOP", self._keys.answers(process), str(listen_s))
        reply = connection.read_response(disable_decoding=True)
        if reply is None:
            return False
        id_, ticket, word, text = reply[1].split(b"\0", 3)
        self._tell(id_text(id_), int(ticket), Ending(word.decode(), text))
        return True

    def _ask_again(self, process: str) -> None:
        """Ask for all that wait: their ends may have been told to a connection that was lost."""
        with self._guard:
            last = {id: waiters[-1].ticket for id, waiters in self._waiting.items()}
        for id, ticket in last.items():
            ending = self._caller.run(self._operations.wait(process, ticket, id), patient=False)
            if ending.word != "waiting":
                self._tell(id, ticket, ending)

    def _tell(self, id: str, ticket: int, ending: Ending) -> None:
        """Hand an end over to all who waited for it when it came."""
        with self._guard:
            waiters = self._waiting.pop(id, [])
            if later := [one for one in waiters if one.ticket > ticket]:
                self._waiting[id] = later
        for one in waiters:
            if one.ticket <= ticket:
                one.tell(ending)

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(Exception):
                connection.disconnect()

    def _forget(self) -> None:
        # The parent's thread, list and connection are the parent's.
        self._guard = threading.Lock()
        self._waiting = {}
        self._listening = False
        self._process = ""
        self._connection = None
        self._doors = weakref.WeakKeyDictionary()


_all: weakref.WeakSet[Mailbox] = weakref.WeakSet()


def _after_fork() -> None:
    for mailbox in list(_all):
        mailbox._forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
