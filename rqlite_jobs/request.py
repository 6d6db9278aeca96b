"""One call on its way to the server: what to send, and when to send it again. No I/O here.

A request is EVALSHA; where the server does not know the script, EVAL. Whether it may be sent again when its answer
was lost, and how, is said by the `Call`: see `repeat` there.
"""

import os
import random
import weakref
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from rqlite_jobs.connection import Connections
from rqlite_jobs.keys import ScriptKeys
from rqlite_jobs.operations import Arg, Call
from rqlite_jobs.refusal import SOON, Refusals, said
from rqlite_jobs.script import Script, script
from rqlite_jobs.wire import command, pack

if TYPE_CHECKING:
    import redis

T = TypeVar("T")

CONNECT_PATIENCE_S = 1.0
"""How long a server that refuses connections is asked again: nothing was sent, so nothing is unknown."""
REPEAT_PATIENCE_S = 20.0
"""How long a request whose answer was lost is sent again; far below the 120 s that a lane keeps its answer."""
PAUSE_S = (0.02, 0.5)
"""The first and the longest pause between two tries; they double, with jitter."""


class Requests:
    """What a request is made of, for both drivers: packed bytes, lanes, and what errors mean.

    Args:
        connections: to the server.
        rng: for nonces, lanes and jitter; its own by default, seeded anew in a forked child.
    """

    def __init__(self, connections: Connections, rng: random.Random | None = None) -> None:
        self.connections = connections
        self.refusals = Refusals(connections.address.shown)
        self.rng = rng or random.Random()
        self._lanes: deque[str] = deque()
        self._heads: dict[tuple[str, ScriptKeys], tuple[bytes, int]] = {}
        _all.add(self)

    def nonce(self) -> str:
        """64 random bits, as 16 hexadecimal digits."""
        return f"{self.rng.getrandbits(64):016x}"

    def take_lane(self) -> str:
        """A lane that no other request of this process is on."""
        try:
            return self._lanes.pop()
        except IndexError:
            return self.nonce()

    def give_lane(self, lane: str) -> None:
        """Give back a lane whose request was answered at the first try.

        One that had to ask again is not given back: a first request still under way in some buffer would find the
        lane's next nonce there, and do its work a second time.
        """
        self._lanes.append(lane)

    def pack(self, call: Call[Any], lane: str, nonce: str, *, whole: bool = False) -> bytes:
        """The bytes of a request: EVALSHA, or EVAL with the `whole` script."""
        source = script(call.verb)
        head, count = self._head(source, call.keys, whole)
        args: list[Arg] = [lane, nonce, *call.args] if call.repeat == "laned" else list(call.args)
        return command(count + len(args), head, pack(args))

    def _head(self, source: Script, keys: ScriptKeys, whole: bool) -> tuple[bytes, int]:
        plain = self.connections.address.fake  # it does not know the first line, `#!lua`
        if whole:
            words = ["EVAL", source.plain_text if plain else source.text, str(len(keys.names)), *keys.names]
            return pack(words), len(words)
        made = self._heads.get((source.verb, keys))
        if made is None:
            sha = source.plain_sha if plain else source.sha
            words = ["EVALSHA", sha, str(len(keys.names)), *keys.names]
            made = pack(words), len(words)
            if len(self._heads) > 200:
                self._heads.clear()
            self._heads[source.verb, keys] = made
        return made

    def pause_s(self, tries: int) -> float:
        """How long to wait before the next try."""
        first, longest = PAUSE_S
        return min(longest, first * 2.0 ** min(tries, 10)) * self.rng.uniform(0.5, 1.0)

    def _forget(self) -> None:
        self._lanes = deque()  # the parent goes on in the old ones
        self.rng.seed(os.urandom(16))


class _Patience:
    """How long a server that does not answer is asked again.

    Args:
        requests: who asks.
        patient: ask again at all.
        clock: seconds, monotonic.
    """

    def __init__(self, requests: Requests, patient: bool, clock: Callable[[], float]) -> None:
        self._requests = requests
        self._patient = patient
        self._clock = clock
        self._began_s = clock()
        self._tries = 0
        self._unsure = False

    def _soon(self, error: "redis.RedisError") -> bool:
        """Did the server say that it will answer soon, and is there time to wait for that?"""
        waits = self._patient and self._clock() - self._began_s < REPEAT_PATIENCE_S
        return waits and said(error).startswith(SOON)

    def lost(self, error: BaseException, *, sent: bool) -> float:
        """The server was not reached: how many seconds to wait before it is asked again, or the error.

        Args:
            error: what the connection raised.
            sent: the request had been sent by then, in part at least: it may have been carried out.
        """
        self._unsure = self._unsure or sent
        patience_s = REPEAT_PATIENCE_S if self._unsure else CONNECT_PATIENCE_S
        if self._patient and self._clock() - self._began_s < patience_s:
            return self._pause_s()
        self._requests.refusals.unreachable(error, sent=self._unsure)

    def _pause_s(self) -> float:
        """How long to wait before the next try."""
        self._tries += 1
        return self._requests.pause_s(self._tries - 1)


class Request(_Patience, Generic[T]):
    """One call on its way: what to send next, and what a failure means. It does no I/O and knows no driver.

    Args:
        requests: whose call it is.
        call: what is asked.
        patient: ask again, for a while, if the server does not answer.
        clock: seconds, monotonic.
    """

    def __init__(self, requests: Requests, call: Call[T], patient: bool, clock: Callable[[], float]) -> None:
        super().__init__(requests, patient, clock)
        self._call = self._asked = call
        self._lane = requests.take_lane() if call.repeat == "laned" else ""
        self._nonce = requests.nonce() if call.repeat == "laned" else ""
        self._whole = False

    def packed(self) -> bytes:
        """What to send."""
        return self._requests.pack(self._asked, self._lane, self._nonce, whole=self._whole)

    def answered(self, reply: Any) -> T:
        """The answer that the reply holds."""
        if self._lane and not self._unsure:
            self._requests.give_lane(self._lane)
        return self._call.read(reply)

    def refused(self, error: "redis.RedisError", *, sent: bool) -> float:
        """The server said no: how many seconds to wait before it is asked again, or the error that this means."""
        if said(error).startswith("NOSCRIPT") and not self._whole:
            self._whole = True
            return 0.0
        if self._soon(error):
            return self._pause_s()
        if sent:
            self._requests.refusals.of_call(self._call, error)
        self._requests.refusals.of_connection(error)

    def lost(self, error: BaseException, *, sent: bool) -> float:
        """The server was not reached; see `_Patience.lost`. What was sent is asked for again as such."""
        if sent:
            self._asked = self._call.again()
        return super().lost(error, sent=sent)


class PlainRequest(_Patience):
    """One plain command on its way.

    Args:
        requests: who asks.
        words: the command.
        again: ask again, for a while, if the server does not answer.
        clock: seconds, monotonic.
    """

    def __init__(
        self, requests: Requests, words: tuple[str | int, ...], again: bool, clock: Callable[[], float]
    ) -> None:
        super().__init__(requests, again, clock)
        self._words = words

    def packed(self) -> bytes:
        """What to send."""
        return command(len(self._words), pack(self._words))

    def answered(self, reply: Any) -> Any:
        """The reply, raw."""
        return reply

    def refused(self, error: "redis.RedisError", *, sent: bool) -> float:
        """The server said no; see `Request.refused`."""
        if self._soon(error):
            return self._pause_s()
        if sent:
            self._requests.refusals.of_command(self._words, error)
        self._requests.refusals.of_connection(error)


_all: weakref.WeakSet[Requests] = weakref.WeakSet()


def _after_fork() -> None:
    for requests in list(_all):
        requests._forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
