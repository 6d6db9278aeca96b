"""Handlers: functions that became jobs."""

import functools
import inspect
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    NoReturn,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    Unpack,
    cast,
    overload,
)

from rqlite_jobs.backoff import Retry
from rqlite_jobs.codec import Payload
from rqlite_jobs.declaration import Declaration
from rqlite_jobs.errors import RqjError, WrongArguments, a_type, shown
from rqlite_jobs.foreign import HANDLER_VERBS, no_attribute
from rqlite_jobs.job import Job, NewJob
from rqlite_jobs.lock import LockPolicy
from rqlite_jobs.options import JobOptions, Terms
from rqlite_jobs.producer import Home, Producer

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Handler(Generic[P, R]):
    """A function that became a job: calling it runs it here, `enqueue` has a worker run it.

    Made by `@app.job`. R is what a run yields: for an `async def`, what awaiting it yields.

    Attributes:
        name: the job's name.
        fn: the function.
        is_async: it is an `async def`.
        remote: another service runs it; no worker of this app does.
        signature: its parameters.
        retry: when it is tried again; None: as the app says.
        lock: what keeps it unique; None: nothing.
    """

    __name__: str
    __qualname__: str
    __wrapped__: Callable[..., Any]

    def __init__(self, home: Home, declared: Declaration, terms: Terms | None = None) -> None:
        functools.update_wrapper(cast("Callable[..., Any]", self), declared.fn)
        self._home = home
        self._declared = declared
        self._terms = terms or declared.terms
        self._producer = Producer(home)

    @property
    def name(self) -> str:
        """The job's name."""
        return self._declared.name

    @property
    def fn(self) -> Callable[..., Any]:
        """The function itself."""
        return self._declared.fn

    @property
    def is_async(self) -> bool:
        """Whether it is an `async def`."""
        return self._declared.is_async

    @property
    def remote(self) -> bool:
        """Whether another service runs it."""
        return self._declared.remote

    @property
    def signature(self) -> inspect.Signature:
        """Its parameters."""
        return self._declared.binder.signature

    @property
    def queue(self) -> str:
        """The queue its jobs go to; reads the settings if none was declared."""
        return self._terms.queue or self._home.settings.default_queue

    @property
    def retry(self) -> Retry | None:
        """When it is tried again; None: as the app says."""
        return self._declared.retry

    @property
    def lock(self) -> LockPolicy | None:
        """What keeps it unique; None: nothing."""
        return self._terms.lock

    @property
    def declared(self) -> Declaration:
        """What `@app.job` was told."""
        return self._declared

    def enqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        """Have a worker run it with these arguments.

        Returns:
            The job; with `outcome == "duplicate"` it is the one that holds the lock.

        Raises:
            WrongArguments: the arguments do not fit the signature.
            UnserializableArguments, PayloadTooLarge: they cannot be carried.
            LockConflict: the lock is held, and its policy says `raise`.
            Unreachable, ServerFull, ServerReadOnly: the server did not take it.

        Cost: one trip to the server.

        Example: `crunch_sales.enqueue(42)`.
        """
        return self._producer.enqueue(self._producer.prepare(self._declared, self._terms, args, kwargs))

    async def aenqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        """Have a worker run it with these arguments: `enqueue` for async code."""
        return await self._producer.aenqueue(
            self._producer.prepare(self._declared, self._terms, args, kwargs)
        )

    def s(self, /, *args: P.args, **kwargs: P.kwargs) -> "Signature[R]":
        """A call of it that is sent later, with `enqueue_many`.

        Raises:
            WrongArguments: the arguments do not fit the signature.

        Example: `app.enqueue_many([crunch_sales.s(1), send_mail.s("a@b.c")])`.
        """
        self._declared.binder.bind(args, kwargs)
        return Signature(self, args, kwargs)

    def enqueue_many(
        self, calls: "Iterable[tuple[Any, ...] | Mapping[str, Any] | Signature[R]]", /
    ) -> list[Job[R]]:
        """Enqueue many calls of it: all are bound and encoded before the first is sent.

        Args:
            calls: a tuple is positional arguments, a mapping keyword arguments, a signature is typed.

        Returns:
            The jobs, in order.

        Raises:
            The errors of `enqueue`; for a bad item nothing is sent. LockConflict after all were sent, with
            all `answers`.

        Cost: one trip for every 1,000 calls, or 200 with a lock, or 1 MiB.

        Example: `crunch_sales.enqueue_many([(1,), {"book_id": 2}, crunch_sales.s(3)])`.
        """
        return self._producer.enqueue_many(self._prepared(calls))

    async def aenqueue_many(
        self, calls: "Iterable[tuple[Any, ...] | Mapping[str, Any] | Signature[R]]", /
    ) -> list[Job[R]]:
        """Enqueue many calls of it: `enqueue_many` for async code."""
        return await self._producer.aenqueue_many(self._prepared(calls))

    def options(self, /, **options: Unpack[JobOptions]) -> Self:
        """The same handler with options for its next calls; they never share a call with arguments.

        Args:
            options: see `JobOptions`.

        Raises:
            UnknownOption: there is no option of this name.
            BadOption, BadDuration, BadName: a value that the option cannot have.

        Example: `crunch_sales.options(delay="10m", queue="slow").enqueue(42)`.
        """
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        made._terms = self._terms.but(options)
        if made._terms.lock is not None and made._terms.lock is not self._terms.lock:
            made._terms.lock.check(self.name, self.signature)
        return made

    def bind_payload(self, payload: Payload) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments that a payload of this job calls it with.

        Raises:
            WrongArguments: the payload does not fit the signature any more.
            ValueError: a model in it does not fit its annotation any more.
        """
        return self._declared.bind_payload(payload)

    def prepare(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> NewJob:
        """Bind and encode a call; nothing is sent. Raises what `enqueue` raises before its trip."""
        return self._producer.prepare(self._declared, self._terms, args, kwargs)

    def _prepared(self, calls: Iterable[Any]) -> list[NewJob]:
        jobs = []
        for place, call in enumerate(calls):
            try:
                if isinstance(call, Signature):
                    if call.handler._declared is not self._declared:
                        raise WrongArguments(
                            f"it is a call of job {call.handler.name!r}, given to job {self.name!r}.",
                            hint="app.enqueue_many takes calls of different jobs.",
                            job_name=self.name,
                        )
                    jobs.append(call.prepare())
                elif isinstance(call, tuple):
                    jobs.append(self.prepare(tuple(call), {}))
                elif isinstance(call, Mapping):
                    jobs.append(self.prepare((), dict(call)))
                else:
                    raise WrongArguments(
                        f"{shown(call)} is {a_type(call)}, and not the arguments of a call of "
                        f"job {self.name!r}.",
                        hint=f"Write a tuple, ({shown(call)},), a mapping of names, or {self.name}.s(...).",
                        job_name=self.name,
                    )
            except RqjError as error:
                error.add_note(f"This is item {place} of enqueue_many; nothing was sent.")
                raise
        return jobs

    def __repr__(self) -> str:
        return f"<job {self.name!r}{' of another service' if self.remote else ''}>"

    if not TYPE_CHECKING:  # a checker shall not take every attribute for one that exists

        def __getattr__(self, name: str) -> NoReturn:
            # Reached only for names that do not exist.
            raise no_attribute(self, name, self.__dict__.get("__name__", "handler"), HANDLER_VERBS)


class SyncHandler(Handler[P, R]):
    """A job made of a `def`; calling it runs it, here and now."""

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the function here."""
        found: R = self._declared.fn(*args, **kwargs)
        return found


class AsyncHandler(Handler[P, R]):
    """A job made of an `async def`; calling it gives its coroutine."""

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
        """Make the coroutine of the function."""
        found: Coroutine[Any, Any, R] = self._declared.fn(*args, **kwargs)
        return found


@dataclass(frozen=True, slots=True)
class Signature(Generic[R_co]):
    """A call that is not sent yet; made by `Handler.s`, sent by `enqueue_many`.

    Attributes:
        handler: whose call it is, with its options.
        args: positional arguments.
        kwargs: keyword arguments.
    """

    handler: Handler[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    def prepare(self) -> NewJob:
        """Encode it; nothing is sent."""
        return self.handler.prepare(self.args, self.kwargs)


class JobDecorator(Protocol):
    """What `@app.job(...)` gives: makes a handler of a function."""

    @overload
    def __call__(self, fn: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncHandler[P, R]: ...  # type: ignore[overload-overlap]  # pyright: ignore[reportOverlappingOverload]
    @overload
    def __call__(self, fn: Callable[P, R], /) -> SyncHandler[P, R]: ...
