"""Everything that rqlite-jobs raises, and what a handler may raise.

RqjError
├── WrongArguments           (TypeError)        a call that does not fit the handler's signature
├── UnserializableArguments  (TypeError)        an argument that no payload can carry
├── UnknownOption            (TypeError)        an option or setting of that name does not exist
├── BadDuration              (ValueError)       not a length of time
├── BadOption                (ValueError)       an option or setting with a value it cannot have
├── BadUrl                   (ValueError)       an address of no known form
├── BadName                  (ValueError)       a name of a namespace, queue or job that is not allowed
├── PayloadTooLarge          (ValueError)       arguments above the setting payload_max
├── UnknownJob               (LookupError)      no handler of that name in the app
├── JobNotFound              (LookupError)      no job of that id
├── QueueNotFound            (LookupError)      no queue of that name
├── LockNotFound             (LookupError)      no lock of that key
├── ResultExpired            (LookupError)      the job was there, and what it returned is not kept any more
├── ResultTimeout            (TimeoutError)     the job has not ended in the time given
├── Unreachable              (ConnectionError)  the server does not answer
├── NoCurrentJob             (RuntimeError)     current_job() where no job runs
├── JobFailed                                   the job is dead, so it has no result
├── JobCancelled                                the job was taken away before it ended
├── LockConflict                                the lock is held and the policy says "raise"
├── ServerFull                                  the server is over its memory limit
├── ServerReadOnly                              the server takes no writes now
├── ServerMissing                               no address given and no server to start
├── ScriptFailed                                a script stopped with an error
├── FormatMismatch                              the data was written by another format version
├── NotConfirmed                                a destructive command was not confirmed
└── AppNotFound                                 the module or attribute with the App was not found

Signal                                          a handler raises these to say how its run ends
├── RetryIn                                     failed: try again after this delay
├── Snooze                                      not now: come back later, no attempt used
└── Bury                                        hopeless: straight to the dead
"""

from datetime import timedelta
from typing import Any

from rqlite_jobs.wording import a_type as a_type
from rqlite_jobs.wording import nearest as nearest
from rqlite_jobs.wording import shown as shown


class RqjError(Exception):
    """Something went wrong in rqlite-jobs.

    Args:
        message: what was tried and what was found; one line. Without it, the first line of the docstring.
        hint: what to do about it; one line, or empty.
        facts: the attributes that the class declares, by name (`job_id="..."`).

    `str(error)` is the message, and the hint on a second line if there is one.

    >>> print(UnknownJob("app 'shop' has no job 'crunch'.", hint="Did you mean 'crunch_sales'?"))
    app 'shop' has no job 'crunch'.
    Did you mean 'crunch_sales'?
    """

    message: str
    hint: str

    def __init__(self, message: str = "", *, hint: str = "", **facts: Any) -> None:
        if not message:
            message = (type(self).__doc__ or type(self).__name__).strip().partition("\n")[0]
        super().__init__(message)
        self.message = message
        self.hint = hint
        for name, value in facts.items():
            if not hasattr(type(self), name):
                raise TypeError(f"{type(self).__name__} has no fact named {name!r}")
            setattr(self, name, value)

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message


class WrongArguments(RqjError, TypeError):
    """The call does not fit the signature of the handler."""

    job_name: str = ""


class UnserializableArguments(RqjError, TypeError):
    """An argument has a type that no payload can carry."""

    job_name: str = ""
    argument: str = ""


class UnknownOption(RqjError, TypeError):
    """There is no option or setting of this name."""

    option: str = ""


class BadDuration(RqjError, ValueError):
    """This is not a length of time."""


class BadOption(RqjError, ValueError):
    """An option or setting has a value that it cannot have."""

    option: str = ""


class BadUrl(RqjError, ValueError):
    """This address has no form that is known."""


class BadName(RqjError, ValueError):
    """A name of a namespace, queue or job is not allowed."""

    name: str = ""


class PayloadTooLarge(RqjError, ValueError):
    """The arguments of a job are larger than the setting payload_max."""

    job_name: str = ""
    size: int = 0
    limit: int = 0


class UnknownJob(RqjError, LookupError):
    """The app has no job of this name."""

    job_name: str = ""


class JobNotFound(RqjError, LookupError):
    """No job of this id is known."""

    job_id: str = ""


class QueueNotFound(RqjError, LookupError):
    """No queue of this name is known."""

    queue: str = ""


class LockNotFound(RqjError, LookupError):
    """No lock of this key exists."""

    lock_key: str = ""


class ResultExpired(RqjError, LookupError):
    """The job was there, and what it returned is not kept, or not any more."""

    job_id: str = ""


class ResultTimeout(RqjError, TimeoutError):
    """The job has not ended in the time given."""

    job_id: str = ""


class NoCurrentJob(RqjError, RuntimeError):
    """`current_job()` was asked where no job runs."""


class JobFailed(RqjError):
    """The job is dead, so it has no result; `error` is the repr of what was raised last, as text."""

    job_id: str = ""
    error: str = ""


class JobCancelled(RqjError):
    """The job was taken away before it ended; `word` says how: `cancelled`, `expired`, `deleted` ..."""

    job_id: str = ""
    word: str = ""


class Unreachable(RqjError, ConnectionError):
    """The server does not answer."""


class LockConflict(RqjError):
    """The lock of a job is held by another job.

    `holder_id` is the job that holds it and `lock_key` the key. After `enqueue_many`, `answers` has the `Job`
    of every item in order, and the first two tell of the first conflict.
    """

    holder_id: str = ""
    lock_key: str = ""
    answers: tuple[Any, ...] = ()


class ServerFull(RqjError):
    """The server is over its memory limit and takes no new jobs."""


class ServerReadOnly(RqjError):
    """The server takes no writes at the moment."""


class ServerMissing(RqjError):
    """No address of a server was given, and there is none to start."""


class ScriptFailed(RqjError):
    """A script stopped with an error.

    `script` is the verb, `file` and `line` the place in `lua/` where it stopped, `text` the source there.
    """

    script: str = ""
    file: str = ""
    line: int = 0
    text: str = ""


class FormatMismatch(RqjError):
    """The namespace was written by a version with another format."""


class NotConfirmed(RqjError):
    """Nothing was changed, because the command was not confirmed."""


class AppNotFound(RqjError):
    """The module, or the App in it, was not found."""


class Signal(Exception):
    """Raised by a handler to say how its run ends; never an error of rqlite-jobs."""


class RetryIn(Signal):
    """This attempt failed; try again after a delay, if the policy has an attempt left.

    Args:
        delay: a duration; zero or negative is at once.

    Raises:
        BadDuration: the delay is none. It is raised in the handler, so the job shows it as its error.

    Example: `raise RetryIn("30s")`.
    """

    def __init__(self, delay: str | float | timedelta) -> None:
        super().__init__(delay)
        self.delay = delay
        self.delay_ms = _delay_ms(delay, "RetryIn")


class Snooze(Signal):
    """Not now: come back after a delay. It counts neither as a failure nor as an attempt.

    Args:
        delay: a duration; zero or negative is at once.

    Raises:
        BadDuration: the delay is none. It is raised in the handler, so the job shows it as its error.

    Example: `raise Snooze("10m")`.
    """

    def __init__(self, delay: str | float | timedelta) -> None:
        super().__init__(delay)
        self.delay = delay
        self.delay_ms = _delay_ms(delay, "Snooze")


class Bury(Signal):
    """Trying again is hopeless: put the job among the dead now.

    Args:
        reason: one line for the operator; it becomes the job's last error.

    Example: `raise Bury("the customer is gone")`.
    """

    def __init__(self, reason: str = "buried by its handler") -> None:
        super().__init__(reason)
        self.reason = str(reason)


def _delay_ms(delay: str | float | timedelta, signal: str) -> int:
    """Read the delay of a signal where it is raised, so that a slip shows up in the handler that made it."""
    from rqlite_jobs.durations import to_ms  # not at the top: durations raises the errors of this module

    return max(0, to_ms(delay, what=f"the delay of {signal}", signed=True))
