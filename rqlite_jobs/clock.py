"""Whose time it is: the server's, or a number that a test chose."""

from typing import Protocol


class Clock(Protocol):
    """Says what time a script shall go by.

    Only the server's time, or a test's, is ever compared: the clocks of the hosts may disagree.
    """

    def now_ms(self) -> int:
        """Answer milliseconds since 1970, or -1 to let the script ask the server."""
        ...


class ServerClock:
    """The clock of production: every script reads the server's own time.

    >>> ServerClock().now_ms()
    -1
    """

    __slots__ = ()

    def now_ms(self) -> int:
        """Answer -1, which makes the script ask the server."""
        return -1

    def __repr__(self) -> str:
        return "ServerClock()"
