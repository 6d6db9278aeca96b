"""The connections of one process to one server: taken for one request, given back, never shared across a fork."""

import asyncio
import os
import weakref
from collections import deque
from typing import Any

from rqlite_jobs.address import Address

_KEPT_MAX = 64


class Connections:
    """Connections at rest, blocking ones and, for each event loop, async ones.

    Args:
        address: where the server is.

    Taking and giving are safe from any thread: a `deque` does each in one step. After a fork the child starts
    with none, for a socket shared with its parent would mix up their answers. At most 64 are kept at rest.
    """

    def __init__(self, address: Address) -> None:
        self.address = address
        self._resting: deque[Any] = deque(maxlen=_KEPT_MAX)
        self._awaiting: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, deque[Any]] = (
            weakref.WeakKeyDictionary()
        )
        _all.add(self)

    def resting(self) -> Any:
        """A blocking connection that is connected, or None if none is at rest."""
        try:
            return self._resting.pop()
        except IndexError:
            return None

    def give(self, connection: Any) -> None:
        """Give back a blocking connection whose last answer was read to its end."""
        self._resting.append(connection)

    def resting_async(self) -> Any:
        """An async connection of the running loop that is connected, or None if none is at rest."""
        resting = self._awaiting.get(asyncio.get_running_loop())
        while resting:
            connection = resting.pop()
            reader = getattr(connection, "_reader", None)
            if reader is None or not getattr(reader, "at_eof", bool)():
                return connection
            # The server hung up meanwhile, and the loop has noticed: no request need be lost on it.
            connection._close()
        return None

    def give_async(self, connection: Any) -> None:
        """Give back an async connection to the running loop."""
        loop = asyncio.get_running_loop()
        resting = self._awaiting.get(loop)
        if resting is None:
            resting = self._awaiting[loop] = deque(maxlen=_KEPT_MAX)
        resting.append(connection)

    def close(self) -> None:
        """Close the blocking connections at rest."""
        while (connection := self.resting()) is not None:  # others may close, or take, at the same time
            connection.disconnect()

    async def aclose(self) -> None:
        """Close the connections at rest, blocking ones and those of the running loop."""
        self.close()
        resting = self._awaiting.pop(asyncio.get_running_loop(), deque())
        while resting:
            await resting.pop().disconnect()

    def _forget(self) -> None:
        # Dropped, not closed: the parent goes on with the same sockets.
        self._resting = deque(maxlen=_KEPT_MAX)
        self._awaiting = weakref.WeakKeyDictionary()


_all: weakref.WeakSet[Connections] = weakref.WeakSet()


def _after_fork() -> None:
    for connections in list(_all):
        connections._forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
