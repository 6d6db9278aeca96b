"""Where the jobs of an app are: its settings, the operations on its namespace, and the way to the server.

Nothing of it exists before it is first used; each part is made once, by one thread, and a forked child goes on
with what its parent had (the connections apart, which see to that themselves).
"""

import os
import threading
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from rqlite_jobs.address import Address
from rqlite_jobs.caller import AsyncCaller, Caller
from rqlite_jobs.clock import Clock, ServerClock
from rqlite_jobs.config import Settings
from rqlite_jobs.connection import Connections
from rqlite_jobs.embedded import Embedded
from rqlite_jobs.errors import FormatMismatch, ServerFull
from rqlite_jobs.keys import NAMESPACES, Keys
from rqlite_jobs.operations import FORMAT, Call, Operations
from rqlite_jobs.script import script
from rqlite_jobs.waiting import Mailbox

if TYPE_CHECKING:
    import redis
    import redis.asyncio

T = TypeVar("T")

REOPEN_S = 60.0
"""How often a namespace is opened again by a process that goes on writing: its server may have been emptied."""


class Once(Generic[T]):
    """An attribute that is made when it is first asked for, and plain from then on.

    Not `functools.cached_property`: before Python 3.12 that holds one lock for all instances, which a fork may copy
    while it is held.
    """

    def __init__(self, make: "Callable[[Any], T]") -> None:
        self._make = make
        self._name = make.__name__
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, link: None, owner: type) -> "Once[T]": ...
    @overload
    def __get__(self, link: "Link", owner: type) -> T: ...
    def __get__(self, link: "Link | None", owner: type) -> "Once[T] | T":
        if link is None:
            return self
        with link.guard:
            if self._name not in link.__dict__:
                link.__dict__[self._name] = self._make(link)
            made: T = link.__dict__[self._name]
            return made


class Link:
    """The way from an app to its jobs.

    Args:
        code: settings given in code, by name; None as a value means: not given.
        flags: settings of a command line, which go before them.
        client: a redis-py client whose address is taken instead of a URL.
        clock: whose time the scripts go by; the server's by default.
    """

    def __init__(
        self,
        code: Mapping[str, Any],
        flags: Mapping[str, Any] | None = None,
        client: "redis.Redis | redis.asyncio.Redis | None" = None,
        clock: Clock | None = None,
    ) -> None:
        self.code = dict(code)
        self.flags = dict(flags or {})
        self.client = client
        self.clock: Clock = clock or ServerClock()
        self.guard = threading.RLock()
        self._open_until_s = float("-inf")
        _all.add(self)

    @Once
    def settings(self) -> Settings:
        """All settings, read from wherever they are given."""
        return Settings.load(self.code, flags=self.flags)

    @Once
    def keys(self) -> Keys:
        """The keys of the namespace."""
        return Keys(self.settings.namespace)

    @Once
    def operations(self) -> Operations:
        """What can be asked of the namespace."""
        return Operations(self.keys, self.settings, self.clock)

    @Once
    def address(self) -> Address:
        """Where the server is; the embedded one is started if it has to be."""
        if self.client is not None and not self.flags.get("url"):
            return Address.of_client(self.client)
        url = self.settings.url
        scheme, _, rest = (url or "").partition("://")
        if url is None or scheme == "embedded":
            folder = Path(rest).expanduser() if rest else self.settings.data_dir
            url = Embedded(folder, allowed=self.settings.embedded).url()
        return Address.parse(url)

    @Once
    def connections(self) -> Connections:
        """The connections of this process to the server."""
        return Connections(self.address)

    @Once
    def caller(self) -> Caller:
        """Sends calls from threads."""
        return Caller(self.connections)

    @Once
    def async_caller(self) -> AsyncCaller:
        """Sends calls from event loops."""
        return AsyncCaller(self.connections)

    @Once
    def mailbox(self) -> Mailbox:
        """Where the ends of jobs arrive that this process waits for."""
        return Mailbox(self.address, self.keys, self.caller, self.operations)

    def run(self, call: Call[T], *, patient: bool = True) -> T:
        """Send a call; before the first one that writes, and again once a minute, open the namespace.

        Raises:
            FormatMismatch: the namespace is of another version.
            The errors of `Caller.run`.
        """
        if self._must_open(call):
            # A full server must not keep a worker from starting: it is the worker that makes room.
            with suppress(ServerFull):
                self.caller.command("SADD", NAMESPACES, self.keys.namespace, again=patient)
            self._check_format(self.caller.run(self.operations.open(), patient=patient))
        return self.caller.run(call, patient=patient)

    async def arun(self, call: Call[T], *, patient: bool = True) -> T:
        """Send a call from an event loop: `run` for async code."""
        if self._must_open(call):
            with suppress(ServerFull):
                await self.async_caller.command("SADD", NAMESPACES, self.keys.namespace, again=patient)
            self._check_format(await self.async_caller.run(self.operations.open(), patient=patient))
        return await self.async_caller.run(call, patient=patient)

    def _must_open(self, call: Call[Any]) -> bool:
        """Is the namespace to be opened first?

        A worker registers when it starts, and when its lease is gone: maybe with everything else on that server,
        and then the namespace would be in no list. Producers learn nothing of that, so they ask by the clock.
        """
        if monotonic() < self._open_until_s and call.verb != "register":
            return False
        return not script(call.verb).read_only

    def _check_format(self, found: int) -> None:
        if found != FORMAT:
            raise FormatMismatch(
                f"the namespace {self.keys.namespace!r} has format {found}, and this version of rqlite-jobs "
                f"knows format {FORMAT}.",
                hint="Upgrade rqlite-jobs here, or use another namespace.",
            )
        self._open_until_s = monotonic() + REOPEN_S


class Linked:
    """Something with a link, and what one may ask of it.

    Attributes:
        link: the way to its jobs. Tests put another one here, and back.
    """

    def __init__(self, link: Link) -> None:
        self.link = link

    @property
    def namespace(self) -> str:
        """The namespace its jobs are kept in."""
        return self.link.keys.namespace

    @property
    def settings(self) -> Settings:
        """Its settings, read when they are first asked for."""
        return self.link.settings

    @property
    def keys(self) -> Keys:
        """The names of its keys in the server."""
        return self.link.keys

    @property
    def operations(self) -> Operations:
        """Everything that can be asked of its namespace, as calls for `run`."""
        return self.link.operations

    @property
    def clock(self) -> Clock:
        """Whose time its scripts go by."""
        return self.link.clock

    @property
    def address(self) -> Address:
        """Where its server is; starts the embedded one if need be."""
        return self.link.address

    @property
    def caller(self) -> Caller:
        """Sends calls from threads."""
        return self.link.caller

    @property
    def async_caller(self) -> AsyncCaller:
        """Sends calls from event loops."""
        return self.link.async_caller

    def run(self, call: Call[T], *, patient: bool = True) -> T:
        """Send a call and give back its answer; the first one that writes opens the namespace.

        Args:
            call: one of `operations`.
            patient: send it again, for a while, if the server does not answer.

        Raises:
            Unreachable, ServerFull, ServerReadOnly, ServerMissing: the server did not take it.
            FormatMismatch: the namespace was written by a version with another format.
        """
        return self.link.run(call, patient=patient)

    async def arun(self, call: Call[T], *, patient: bool = True) -> T:
        """Send a call from an event loop: `run` for async code."""
        return await self.link.arun(call, patient=patient)

    def set_flags(self, **flags: Any) -> None:
        """Settings of a command line: they go before those in code. Not once it has talked to a server."""
        link = self.link
        self.link = Link(link.code, {**link.flags, **flags}, link.client, link.clock)


_all: weakref.WeakSet[Link] = weakref.WeakSet()


def _after_fork() -> None:
    # A lock that another thread held at the fork would never be let go in the child.
    for link in list(_all):
        link.guard = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
