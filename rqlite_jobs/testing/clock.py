"""A clock that moves only when it is told to."""

import math

from rqlite_jobs.durations import Duration, to_ms
from rqlite_jobs.errors import BadOption, shown


class FrozenClock:
    """The time of an app in a test: `App("test", url="fake://test", clock=FrozenClock(0))`.

    Args:
        seconds: where it stands, in seconds since 1970.

    Raises:
        BadOption: not a number, or before 1970.

    >>> clock = FrozenClock(0)
    >>> clock.advance("2s")
    >>> clock.now_ms()
    2000
    """

    __slots__ = ("_now_ms",)

    def __init__(self, seconds: float = 0) -> None:
        if type(seconds) not in (int, float) or not 0 <= seconds < math.inf:
            raise BadOption(
                f"a clock cannot stand at {shown(seconds)}.",
                hint="Give seconds since 1970: FrozenClock(0), or FrozenClock(some_datetime.timestamp()).",
                option="seconds",
            )
        self._now_ms = round(seconds * 1000)

    def now_ms(self) -> int:
        """Answer where it stands, in milliseconds since 1970."""
        return self._now_ms

    def advance(self, duration: Duration) -> None:
        """Move it forward.

        Args:
            duration: by how much, `"2s"` or a number of seconds; never backward, as the server's own does not go.

        Raises:
            BadDuration: no duration, or a negative one.
        """
        self._now_ms += to_ms(duration, what="the step of a FrozenClock")

    def __repr__(self) -> str:
        return f"FrozenClock({self._now_ms / 1000:g})"
