"""An app of the real world in a test: pointed at a fresh fake server, and back."""

import itertools
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, cast

from rqlite_jobs.address import Address, forget_fake
from rqlite_jobs.app import App
from rqlite_jobs.clock import Clock
from rqlite_jobs.link import Link


@contextmanager
def isolated(app: App, *, clock: Clock | None = None) -> Iterator[App]:
    """Point an app, with all its handlers, at an empty fake server of its own while this lasts.

    Its namespace and its other settings stay. Whatever the app's code does, in this thread or in others, goes to the
    fake server; the one before is as it was, and is what the app has again behind it, also after an exception. It
    may be nested. Where several threads isolate the same app at once, each has a server of its own.

    Args:
        app: any; it may have talked to its real server already.
        clock: whose time counts; None: the app's own.

    Raises:
        ServerMissing: fakeredis is not installed.

    Example: `with isolated(app, clock=FrozenClock(0)): ...`.
    """
    name = f"isolated-{os.getpid()}-{next(_numbers)}"
    Address.parse(f"fake://{name}")
    with _guard:
        before = app.link
        detour = before if isinstance(before, Detour) else Detour(before)
        link = detour.branch(f"fake://{name}", clock)
        detour.enter(link)
        app.link = cast(Link, detour)
    mine = _mine.get()
    _mine.set((*mine, link))
    try:
        yield app
    finally:
        _mine.set(tuple(one for one in _mine.get() if one is not link))
        with _guard:
            app.link = cast(Link, detour) if detour.leave(link) else detour.home
        forget_fake(name)


class Detour:
    """Stands where the link of an app was, and is whichever of its isolations is meant.

    Args:
        home: the link itself.

    That is the innermost one that this thread, or the task that made this one, is in; in any other thread the last
    that was begun. Not one for all: of two threads the first to leave would send the other to the real server.
    """

    def __init__(self, home: Link) -> None:
        self.home = home
        self._open: tuple[Link, ...] = ()

    @property
    def current(self) -> Link:
        """The link that is meant here."""
        mine = [link for link in _mine.get() if link in self._open]
        return (mine or self._open or (self.home,))[-1]

    def branch(self, url: str, clock: Clock | None) -> Link:
        """A link like the current one, to another server."""
        base = self.current
        flags = {name: value for name, value in base.flags.items() if name != "url"}
        return Link({**base.code, "url": url}, flags, None, clock or base.clock)

    def enter(self, link: Link) -> None:
        """A link is in use from now on."""
        self._open = (*self._open, link)

    def leave(self, link: Link) -> bool:
        """It is not any more; are others?"""
        self._open = tuple(one for one in self._open if one is not link)
        return bool(self._open)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.current, name)


_numbers = itertools.count(1)
_guard = threading.Lock()
_mine: ContextVar[tuple[Link, ...]] = ContextVar("rqj_isolated", default=())
