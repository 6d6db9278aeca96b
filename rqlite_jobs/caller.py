"""Sends calls of scripts to the server, blocking or not: the one place where a request may be repeated.

What to send is decided in `request`, what a failure means in `refusal`; the two drivers here are the same few lines
but for the word `await`.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from rqlite_jobs.connection import Connections
from rqlite_jobs.operations import Call
from rqlite_jobs.refusal import READ_ONLY, refusal, said
from rqlite_jobs.request import PlainRequest, Request, Requests

if TYPE_CHECKING:
    import redis

T = TypeVar("T")


class Caller(Requests):
    """Sends calls and waits for the answers, in the way of threads. Safe from any of them.

    Args:
        connections: to the server.
        rng: for nonces, lanes and jitter; its own by default.
        sleep: waits that many seconds between two tries.
        clock: seconds, monotonic.
    """

    def __init__(
        self,
        connections: Connections,
        rng: random.Random | None = None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(connections, rng)
        self._sleep = sleep
        self._clock = clock

    def run(self, call: Call[T], *, patient: bool = True) -> T:
        """Send a call and read its answer.

        Args:
            call: what to send.
            patient: send it again, for a while, if the server does not answer: up to 1 s if it cannot be reached
                at all, up to 20 s if the answer was lost.

        Raises:
            Unreachable: the server did not answer in time; the message says whether the call may have been done.
            ServerFull, ServerReadOnly: the server refused it whole.
            ScriptFailed: the script stopped with an error; tells the file and line in `lua/`.
        """
        answer: T = self._send(Request(self, call, patient, self._clock))
        return answer

    def command(self, *words: str | int, again: bool = False) -> Any:
        """Send a plain command and give back the raw reply; for what no script can do.

        Args:
            words: the command.
            again: it may be sent again if its answer was lost, for doing it twice is the same as doing it once.

        Raises:
            Unreachable: the server did not answer.
            RqjError: it refused; ServerFull, ServerReadOnly where that is why.
        """
        return self._send(PlainRequest(self, words, again, self._clock))

    def _send(self, request: Request[T] | PlainRequest) -> Any:
        import redis

        while True:
            resting, sent = self.connections.resting(), False
            connection = resting or self.connections.address.connection()
            try:
                if resting is None:
                    connection.connect()
                packed = (request.packed(),)
                sent = True
                connection.send_packed_command(packed, check_health=False)
                reply = connection.read_response(disable_decoding=True)
            except (redis.RedisError, OSError) as error:
                answer = refusal(error)
                if answer is None or not sent:
                    connection.disconnect()
                if answer is None:
                    self.connections.close()  # those at rest were of the same server, and would fail one by one
                    pause_s = request.lost(error, sent=sent)
                else:
                    if sent:
                        self._settle(connection, answer)
                    pause_s = request.refused(answer, sent=sent)
            except BaseException:
                connection.disconnect()
                raise
            else:
                self.connections.give(connection)
                return request.answered(reply)
            if pause_s:
                self._sleep(pause_s)

    def _settle(self, connection: Any, error: "redis.RedisError") -> None:
        # Behind the same name there may be another primary by now, so this connection is not kept.
        if said(error).startswith(READ_ONLY):
            connection.disconnect()
        else:
            self.connections.give(connection)


class AsyncCaller(Requests):
    """The same for an event loop; any number of loops, each with connections of its own."""

    def __init__(
        self,
        connections: Connections,
        rng: random.Random | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(connections, rng)
        self._sleep = sleep
        self._clock = clock

    async def run(self, call: Call[T], *, patient: bool = True) -> T:
        """Send a call and read its answer; see `Caller.run`."""
        answer: T = await self._send(Request(self, call, patient, self._clock))
        return answer

    async def command(self, *words: str | int, again: bool = False) -> Any:
        """Send a plain command; see `Caller.command`."""
        return await self._send(PlainRequest(self, words, again, self._clock))

    async def _send(self, request: Request[T] | PlainRequest) -> Any:
        import redis

        cancels = _cancels()
        while True:
            resting, sent = self.connections.resting_async(), False
            connection = resting or self.connections.address.async_connection()
            try:
                if resting is None:
                    await connection.connect()
                packed = (request.packed(),)
                sent = True
                await connection.send_packed_command(packed, check_health=False)
                if _cancels() > cancels:
                    # It sends with `asyncio.wait_for`, which before Python 3.12 forgets a cancellation that comes in
                    # the very moment it ends: whoever was cancelled would go on.
                    raise asyncio.CancelledError
                reply = await connection.read_response(disable_decoding=True)
            except (redis.RedisError, OSError) as error:
                answer = refusal(error)
                if answer is None or not sent:
                    await connection.disconnect()
                if answer is None:
                    await self.connections.aclose()
                    pause_s = request.lost(error, sent=sent)
                else:
                    if sent:
                        await self._settle(connection, answer)
                    pause_s = request.refused(answer, sent=sent)
            except BaseException:
                await connection.disconnect(nowait=True)
                raise
            else:
                self.connections.give_async(connection)
                return request.answered(reply)
            if pause_s:
                await self._sleep(pause_s)

    async def _settle(self, connection: Any, error: "redis.RedisError") -> None:
        if said(error).startswith(READ_ONLY):
            await connection.disconnect()
        else:
            self.connections.give_async(connection)


def _cancels() -> int:
    """How often the running task was cancelled."""
    task = asyncio.current_task()
    return task.cancelling() if task else 0
