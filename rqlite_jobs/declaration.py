"""What `@app.job` says of a function, and which functions it refuses."""

import functools
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from rqlite_jobs.backoff import Retry
from rqlite_jobs.binding import Binder
from rqlite_jobs.codec import Payload, ReturnShape, Shape
from rqlite_jobs.durations import Duration
from rqlite_jobs.errors import BadName, BadOption, shown
from rqlite_jobs.lock import LockPolicy
from rqlite_jobs.options import OPTIONS, Terms, check_retry, ttl_ms

# No colon: a lock key is the job's name, a colon, and its own part, and two jobs must never meet in one.
_NAME = re.compile(r"\w[\w.-]*")
_NAME_MAX_BYTES = 100


@dataclass(frozen=True, slots=True)
class Declaration:
    """A function that became a job, and its policies.

    Attributes:
        name: the job's name, one of its kind in an app.
        fn: the function.
        is_async: it is an `async def`.
        remote: another service runs it; no worker of this app does.
        retry: when it is tried again; None: as the app says.
        terms: on which its calls are enqueued, unless they say otherwise.
        result_ttl_ms: how long what it returns is kept, -1 for ever; None: as the app says.
        binder: its parameters, to bind calls to.
        shape: its parameters, for payloads.
        returns: what it returns, for results.
    """

    name: str
    fn: Callable[..., Any] = field(repr=False)
    is_async: bool
    remote: bool
    retry: Retry | None
    terms: Terms
    result_ttl_ms: int | None
    binder: Binder = field(repr=False, compare=False)
    shape: Shape = field(repr=False, compare=False)
    returns: ReturnShape = field(repr=False, compare=False)

    @classmethod
    def of(
        cls,
        fn: Callable[..., Any],
        *,
        name: str | None = None,
        queue: str | None = None,
        retry: Retry | None = None,
        lock: LockPolicy | None = None,
        expires_in: Duration | None = None,
        tags: list[str] | tuple[str, ...] | None = None,
        remote: bool = False,
        result_ttl: Duration | Literal["forever"] | None = None,
    ) -> Self:
        """Declare a function.

        Raises:
            BadOption, BadDuration: something that a worker could not call again, or a policy that does not fit it.
            BadName: a name that no job may have.
            BadDuration: a time to wait that is none.
        """
        check_function(fn)
        name = check_job(fn.__name__ if name is None else name)
        if not isinstance(remote, bool):
            raise BadOption(f"remote={shown(remote)} is neither True nor False.", option="remote")
        binder = Binder(name, fn, OPTIONS)
        made = cls(
            name=name,
            fn=fn,
            is_async=inspect.iscoroutinefunction(fn),
            remote=remote,
            retry=None if retry is None else check_retry(retry),
            terms=Terms().but({"queue": queue, "lock": lock, "expires_in": expires_in, "tags": tags}),
            result_ttl_ms=None if result_ttl is None else ttl_ms(result_ttl),
            binder=binder,
            shape=Shape(fn),
            returns=ReturnShape(fn),
        )
        if made.terms.lock is not None:
            made.terms.lock.check(name, binder.signature)
        return made

    def bind_payload(self, payload: Payload) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments to call the function with, models rebuilt by its annotations.

        Raises:
            WrongArguments: the payload does not fit the signature any more.
            Malformed: a model in it does not fit its annotation any more.
        """
        self.binder.bind(payload.args, payload.kwargs)
        return self.shape.restore(payload)


def check_job(name: object) -> str:
    """The name itself, if a job may have it: letters and digits of any script, `_`, `-` and `.`, at most 100 bytes.

    Raises:
        BadName: it may not.

    >>> check_job("crunch_sales")
    'crunch_sales'
    """
    if isinstance(name, str) and _NAME.fullmatch(name) and len(name.encode()) <= _NAME_MAX_BYTES:
        return name
    raise BadName(
        f"{shown(name)} cannot be the name of a job.",
        hint=f"Use letters, digits, '_', '-' and '.', at most {_NAME_MAX_BYTES} bytes: @app.job(name=\"...\").",
        name=name,
    )


def check_function(fn: object) -> None:
    """Refuse what a worker could not find or call again.

    Raises:
        BadOption: with what it is, and what to declare instead.
    """
    what = _why_not(fn)
    if what:
        raise BadOption(
            f"{shown(fn)} {what}, so a worker could not call it again.",
            hint="Declare a plain def or async def of a module, and call what you need from there.",
        )


def _why_not(fn: object) -> str:
    if inspect.isclass(fn):
        return "is a class"
    if isinstance(fn, staticmethod | classmethod) or inspect.ismethod(fn):
        return "is a method"
    if isinstance(fn, functools.partial):
        return "is a partial call"
    if inspect.isbuiltin(fn):
        return "is a builtin"
    if not callable(fn) or not isinstance(getattr(fn, "__name__", None), str):
        return "is no function"
    bare = inspect.unwrap(fn)
    if inspect.isgeneratorfunction(bare) or inspect.isasyncgenfunction(bare):
        return "is a generator"
    outside, _, _ = getattr(fn, "__qualname__", "").rpartition(".")
    if outside and not outside.endswith("<locals>"):
        return f"is defined in the body of the class {outside.rpartition('.')[2]!r}"
    try:
        inspect.signature(fn)
    except (ValueError, TypeError):
        return "does not tell its parameters"
    return ""
