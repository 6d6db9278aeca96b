"""Connections that lose what they are told to lose, so that the caller that ships is the one that asks again."""

from collections.abc import Sequence
from typing import Any

import redis

from rqlite_jobs.address import Address
from rqlite_jobs.connection import Connections

ANSWERED, LOST, MISSED = "answered", "lost", "missed"
"""What can become of a request: answered; carried out, and its answer lost; lost on the way there."""


class Wire(Connections):
    """Connections to a server, and what became of each request.

    Attributes:
        fates: what will become of the next requests, the next one first; with none left they are answered.
        arrived: the arguments of the requests that the server has carried out or refused, in order; not those that
            it did not know the script of.
        last: the arguments of the request sent last, whatever became of it.
    """

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        self.fates: list[str] = []
        self.arrived: list[list[bytes]] = []
        self.last: list[bytes] = []

    def resting(self) -> Any:
        """A connection over which the next request goes; always one that is connected."""
        try:
            return self._resting.pop()
        except IndexError:
            return _Line(self.address.connection(), self)

    def close(self) -> None:
        """Keep the connections: what was lost was lost on purpose, and new ones would cost time."""

    def ask(self, packed: bytes) -> Any:
        """Send a request as it is, once; the raw reply, an error included."""
        line = self.resting()
        line.send_packed_command([packed])
        try:
            return line.read_response(disable_decoding=True)
        except redis.ResponseError as error:
            return error
        finally:
            self.give(line)


class _Line:
    """One connection; the methods are those that the caller uses."""

    def __init__(self, inner: Any, wire: Wire) -> None:
        self._inner = inner
        self._wire = wire
        self._fate = ANSWERED
        self._args: list[bytes] = []
        inner.connect()

    def disconnect(self) -> None:
        # Nothing is under way here: a lost answer was read, a lost request never sent. See `Wire.close`.
        self._wire.give(self)

    def send_packed_command(self, packed: Sequence[bytes], **options: Any) -> None:
        self._args = self._wire.last = _arguments(b"".join(packed))
        self._fate = self._wire.fates.pop(0) if self._wire.fates else ANSWERED
        if self._fate != MISSED:
            self._inner.send_packed_command(packed, **options)

    def read_response(self, **options: Any) -> Any:
        if self._fate == MISSED:
            raise redis.ConnectionError("lost on the way there")
        try:
            reply = self._inner.read_response(**options)
        except redis.exceptions.NoScriptError:
            if self._fate == LOST:  # it was not carried out; that is for the one that follows
                self._wire.fates.insert(0, LOST)
            raise
        except redis.ResponseError as error:
            reply = error
        self._wire.arrived.append(self._args)
        if self._fate == LOST:
            raise redis.ConnectionError("carried out, and the answer lost")
        if isinstance(reply, redis.ResponseError):
            raise reply
        return reply


def _arguments(packed: bytes) -> list[bytes]:
    """The script's arguments in a packed EVALSHA or EVAL."""
    words, at = [], packed.index(b"\r\n") + 2
    while at < len(packed):
        end = packed.index(b"\r\n", at)
        size = int(packed[at + 1 : end])
        words.append(packed[end + 2 : end + 2 + size])
        at = end + 2 + size + 2
    return words[3 + int(words[2]) :]
