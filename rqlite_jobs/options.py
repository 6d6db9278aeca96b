"""The options of a call: a closed list, read and checked where they are written."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Self, TypedDict

from rqlite_jobs.backoff import Retry
from rqlite_jobs.durations import Duration, instant_ms, to_ms
from rqlite_jobs.errors import BadOption, UnknownOption, a_type, nearest, shown
from rqlite_jobs.foreign import OPTION_WORDS
from rqlite_jobs.keys import check_queue
from rqlite_jobs.lock import LockPolicy


class JobOptions(TypedDict, total=False):
    """What `handler.options(...)` takes. None is as if it were not given, but for `lock`."""

    queue: str | None
    """The queue that the job goes to, instead of the handler's."""

    delay: Duration | None
    """How long from now it becomes due, by the server's clock. 0 and negative: now. Not together with `run_at`.
    Example: `delay="10m"`."""

    run_at: datetime | None
    """When it becomes due. It has to have a zone; what is past is now. Not together with `delay`."""

    retry: Retry | None
    """When it is tried again, instead of the handler's policy. It travels as data: no functions, `only`, `never`."""

    lock: LockPolicy | None
    """What keeps it unique, instead of the handler's policy. None: nothing does."""


OPTIONS: tuple[str, ...] = ("queue", "delay", "run_at", "retry", "lock")
"""The names of all options of a call."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms on which calls of a handler are enqueued: its declaration, and the options given since.

    Attributes:
        queue: where the job goes; None: to the default queue.
        delay_ms: when it is due, from now; None: now, or at `run_at_ms`.
        run_at_ms: when it is due, in ms since 1970.
        payload: options that travel in the payload, for the worker; None without any.
        lock: what keeps it unique.
    """

    queue: str | None = None
    delay_ms: int | None = None
    run_at_ms: int | None = None
    payload: Mapping[str, Any] | None = None
    lock: LockPolicy | None = None

    def but(self, options: Mapping[str, Any]) -> Self:
        """The same terms with these options.

        Args:
            options: see `JobOptions`.

        Raises:
            UnknownOption: there is no option of this name.
            BadOption, BadDuration, BadName: a value that the option cannot have.

        >>> Terms().but({"delay": "10m"}).delay_ms
        600000
        """
        changes: dict[str, Any] = {}
        for name, value in options.items():
            if name not in OPTIONS:
                hint = (
                    f"Here it is {OPTION_WORDS[name]!r}." if name in OPTION_WORDS else nearest(name, OPTIONS)
                )
                raise UnknownOption(f"there is no option {name!r} of a call.", hint=hint, option=name)
            if name == "lock":
                changes["lock"] = check_lock(value)
            elif value is None:
                continue
            elif name == "queue":
                changes["queue"] = check_queue(value)
            elif name == "retry":
                changes["payload"] = {"r": check_retry(value).to_wire()}
            elif name == "delay":
                # Not 0: a job that is due now needs no look at the clock, and is answered more shortly.
                changes["delay_ms"] = max(0, to_ms(value, what="delay", signed=True)) or None
            else:
                changes["run_at_ms"] = instant_ms(value)
        made = replace(self, **changes)
        both = options.get("delay") is not None and options.get("run_at") is not None
        if both or (made.delay_ms is not None and made.run_at_ms is not None):
            raise BadOption("delay and run_at exclude each other.", hint="Give one of them.", option="run_at")
        return made


def check_lock(lock: object) -> LockPolicy | None:
    """The policy itself, if it is one, or None.

    Raises:
        BadOption: it is something else.
    """
    if lock is None or isinstance(lock, LockPolicy):
        return lock
    found = f"lock={shown(lock)} is {a_type(lock)}, not a lock policy."
    raise BadOption(found, hint="Write lock=until_executed(), or lock=None for none.", option="lock")


def check_retry(retry: object) -> Retry:
    """The policy itself, if it is one.

    Raises:
        BadOption: it is something else.
    """
    if isinstance(retry, Retry):
        return retry
    found = f"retry={shown(retry)} is {a_type(retry)}, not a Retry."
    attempts = retry if type(retry) is int and retry > 0 else 5
    raise BadOption(found, hint=f"Write retry=Retry(max_attempts={attempts}).", option="retry")
