"""Retry: how often a failing job is tried, and how long it waits in between."""

import logging
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self, TypeAlias

from rqlite_jobs.durations import MAX_MS, Duration, to_ms
from rqlite_jobs.errors import BadOption, shown

Delay: TypeAlias = Duration | Sequence[Duration] | Callable[[int, BaseException | None], Duration] | None
Errors: TypeAlias = type[BaseException] | tuple[type[BaseException], ...]

_JITTER = 0.25
_log = logging.getLogger("rqlite_jobs.backoff")


@dataclass(frozen=True, slots=True)
class Retry:
    """When a failed job is tried again: by default three attempts, 2 and 4 s apart.

    Attributes:
        max_attempts: how often the job may run, the first time included; at least 1. Attempts that ended with
            their process are not counted.
        delay: what to wait after failure n. None: base**n seconds, at most `cap`. A duration: always that. A
            sequence: its nth, the last one again and again. A function: what it makes of n and the error.
        base: the base of base**n, at least 1.
        cap: the longest that base**n can get. It does not touch a `delay`.
        jitter: True adds a random 0-25 % to base**n and to a `delay` that is one duration, so that jobs which
            failed together do not come back together. Nothing is ever tried earlier than its delay.
        only: try again after these exceptions only; others bury the job at once. (): after any.
        never: do not try again after these, whatever `only` says.

    Raises:
        BadOption, BadDuration: a value that makes no sense.

    >>> [Retry().delay_after(n) for n in (1, 2, 3, 12, 10_000)]
    [2.0, 4.0, 8.0, 3600.0, 3600.0]
    >>> Retry(10, delay=["5s", "1m"]).delay_after(7)
    60.0
    """

    max_attempts: int = 3
    _: KW_ONLY
    delay: Delay = None
    base: float = 2.0
    cap: Duration = "1h"
    jitter: bool = True
    only: Errors = ()
    never: Errors = ()

    def __post_init__(self) -> None:
        _check_whole("max_attempts", self.max_attempts)
        _check_base(self.base)
        _check_bool("jitter", self.jitter)
        to_ms(self.cap, what="the cap of Retry")
        object.__setattr__(self, "delay", _check_delay(self.delay))
        for option in ("only", "never"):
            object.__setattr__(self, option, _check_errors(option, getattr(self, option)))

    def delay_after(self, n: int, error: BaseException | None = None) -> float:
        """Answer how many seconds to wait after failure `n`, without jitter.

        Args:
            n: which failure it was, from 1; any number, however large.
            error: what the attempt raised; only a function given as `delay` looks at it.

        Raises:
            Whatever a function given as `delay` raises, and BadDuration if it returns no duration.
        """
        return self._wait_ms(max(n, 1), error) / 1000

    def delay_ms(self, failures: int, error: BaseException | None, rng: random.Random) -> int:
        """Answer how many ms to wait before the next attempt, with jitter. It never raises.

        Args:
            failures: how many attempts have failed so far, this one included.
            error: what the last one raised.
            rng: where the jitter comes from; only `random()` is called.

        A function given as `delay` that raises or returns no duration is logged, and base**n stands in for
        it: a mistake in a policy must not cost the job.
        """
        n = max(failures, 1)
        try:
            wait_ms = self._wait_ms(n, error)
        except Exception:
            _log.exception("the delay function of a Retry failed; waiting %s s**%d instead", self.base, n)
            wait_ms = self._power_ms(n)
        chosen = isinstance(self.delay, tuple) or callable(self.delay)  # then the user has chosen each wait
        if self.jitter and not chosen:
            wait_ms = math.ceil(wait_ms * (1 + _JITTER * rng.random()))
        return min(wait_ms, MAX_MS)

    def wants(self, error: BaseException) -> bool:
        """Tell whether the job may be tried again after this error, attempts left or not."""
        if isinstance(error, self.never):
            return False
        return not self.only or isinstance(error, self.only)

    def to_wire(self) -> dict[str, Any]:
        """Write the policy as JSON values, defaults left out: how `options(retry=...)` travels with one job.

        Raises:
            BadOption: it has a function, `only` or `never`, and no payload carries code.
        """
        for option in ("only", "never"):
            if getattr(self, option):
                raise _not_per_call(f"{option}=")
        if callable(self.delay):
            raise _not_per_call("a function as delay=")
        wire: dict[str, Any] = {}
        if self.max_attempts != 3:
            wire["n"] = self.max_attempts
        if isinstance(self.delay, tuple):
            wire["d"] = [to_ms(delay) for delay in self.delay]
        elif self.delay is not None:
            wire["d"] = to_ms(self.delay)  # type: ignore[arg-type]
        if self.base != 2.0:
            wire["b"] = self.base
        if to_ms(self.cap) != 3_600_000:
            wire["c"] = to_ms(self.cap)
        if not self.jitter:
            wire["j"] = 0
        return wire

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_wire` wrote.

        Raises:
            BadOption, BadDuration: it is something else.
        """
        delay = data.get("d")
        if isinstance(delay, list):
            delay = [_seconds(ms) for ms in delay]
        elif delay is not None:
            delay = _seconds(delay)
        return cls(
            data.get("n", 3),
            delay=delay,
            base=data.get("b", 2.0),
            cap=_seconds(data.get("c", 3_600_000)),
            jitter=bool(data.get("j", 1)),
        )

    def _wait_ms(self, n: int, error: BaseException | None) -> int:
        if self.delay is None:
            return self._power_ms(n)
        if isinstance(self.delay, tuple):
            return to_ms(self.delay[min(n, len(self.delay)) - 1])
        if callable(self.delay):
            return max(
                0, to_ms(self.delay(n, error), what="what the delay function of Retry returned", signed=True)
            )
        return to_ms(self.delay)  # type: ignore[arg-type]

    def _power_ms(self, n: int) -> int:
        """The smaller of base**n and the cap; base**n is computed only where it is below the cap."""
        cap_ms = to_ms(self.cap)
        # In logarithms first: 2.0**1025 raises OverflowError, and 2**10_000 is a number of 3,000 digits.
        if self.base > 1 and min(n, 2**62) * math.log2(self.base) > math.log2(max(cap_ms, 1)):
            return cap_ms
        return min(math.ceil(self.base**n * 1000), cap_ms)


def _check_whole(option: str, value: object) -> None:
    if type(value) is not int or value < 1:
        raise BadOption(
            f"{option}={shown(value)} of Retry is not a whole number of at least 1.",
            hint="1 means: never again after the first failure.",
            option=option,
        )


def _check_base(base: object) -> None:
    if isinstance(base, bool) or not isinstance(base, int | float) or not 1 <= base < math.inf:
        raise BadOption(
            f"base={shown(base)} of Retry is not a number of at least 1.",
            hint="2.0 doubles the wait each time; 1.0 keeps it at one second.",
            option="base",
        )


def _check_bool(option: str, value: object) -> None:
    if not isinstance(value, bool):
        raise BadOption(f"{option}={shown(value)} of Retry is neither True nor False.", option=option)


def _check_delay(delay: Delay) -> Delay:
    """Refuse what is no delay; a sequence comes back as a tuple, which nobody can change later."""
    if delay is None or callable(delay):
        return delay
    if isinstance(delay, list | tuple):
        if not delay:
            raise BadOption(
                "delay=[] of Retry has no duration in it.", hint='Write delay=["5s", "1m"].', option="delay"
            )
        for item in delay:
            to_ms(item, what="a delay of Retry")
        return tuple(delay)
    to_ms(delay, what="the delay of Retry")  # type: ignore[arg-type]
    return delay


def _check_errors(option: str, errors: Any) -> tuple[type[BaseException], ...]:
    found: tuple[Any, ...] = (
        tuple(errors) if isinstance(errors, list | tuple | set | frozenset) else (errors,)
    )
    for item in found:
        if not isinstance(item, type) or not issubclass(item, BaseException):
            raise BadOption(
                f"{option}={shown(errors)} of Retry has {shown(item)} in it, which is no exception class.",
                hint=f"Write {option}=(ConnectionError, TimeoutError).",
                option=option,
            )
    return found


def _not_per_call(what: str) -> BadOption:
    return BadOption(
        f"a retry= given with a call cannot have {what}, because it travels as data.",
        hint="Put it on the declaration: @app.job(retry=...).",
        option="retry",
    )


def _seconds(ms: Any) -> float:
    if type(ms) is not int:
        raise BadOption(f"{shown(ms)} is no number of milliseconds.", option="retry")
    return ms / 1000
