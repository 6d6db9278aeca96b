"""The App: declares jobs, and knows where they are kept."""

import functools
import importlib
from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any, Literal, NoReturn, ParamSpec, TypeVar, overload

from rqlite_jobs.address import Address
from rqlite_jobs.backoff import Retry
from rqlite_jobs.clock import Clock
from rqlite_jobs.declaration import Declaration
from rqlite_jobs.durations import Duration
from rqlite_jobs.errors import (
    BadName,
    BadOption,
    RqjError,
    UnknownJob,
    UnknownOption,
    WrongArguments,
    a_type,
    nearest,
    shown,
)
from rqlite_jobs.foreign import APP_VERBS, no_attribute
from rqlite_jobs.handler import AsyncHandler, Handler, JobDecorator, Signature, SyncHandler
from rqlite_jobs.job import Job, NewJob
from rqlite_jobs.link import Link, Linked
from rqlite_jobs.lock import LockPolicy
from rqlite_jobs.options import DECLARED, OPTIONS
from rqlite_jobs.producer import Producer
from rqlite_jobs.result import aresult_of, result_of
from rqlite_jobs.setting import SETTINGS

if TYPE_CHECKING:
    import redis
    import redis.asyncio

    from rqlite_jobs.control import Control
    from rqlite_jobs.inspector import Inspector

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

_DECLARED = ("name", *DECLARED, "remote")


class App(Linked):
    """A set of jobs and the namespace they are kept in. Making one does nothing: no file is read, no server asked.

    Args:
        namespace: whose jobs these are; None: as the settings say, `default` if they do not.
        url: address of the server; None: as the settings say (`RQJ_URL`), else the embedded server.
        redis: a redis-py client, blocking or async, whose address, credentials, TLS and db are taken; the
            connections are made anew.
        imports: modules that declare the jobs, for worker and command line; producers do not import them.
        clock: whose time the scripts go by; None: the server's. For tests.
        settings: any other setting, by name: `retry=`, `lease=` ...

    Raises:
        BadName, BadOption, BadDuration, UnknownOption: an argument that makes no sense.

    Example: `app = App("bookstore")`.
    """

    def __init__(
        self,
        namespace: str | None = None,
        *,
        url: str | None = None,
        redis: "redis.Redis | redis.asyncio.Redis | None" = None,
        imports: Iterable[str] = (),
        clock: Clock | None = None,
        **settings: Any,
    ) -> None:
        if url is not None and redis is not None:
            raise BadOption("App was given url= and redis=.", hint="Give one of them.", option="redis")
        if redis is not None:
            Address.of_client(redis)
        if isinstance(imports, str):
            raise BadOption(
                f"imports={imports!r} is text.", hint=f"Write imports=({imports!r},).", option="imports"
            )
        code = {**settings, "namespace": namespace, "url": url}
        for name, value in code.items():
            if name not in SETTINGS:
                raise UnknownOption(
                    f"App has no setting {name!r}.", hint=nearest(name, SETTINGS), option=name
                )
            if value is not None:
                SETTINGS[name].parse(name, value)
        self.imports = tuple(imports)
        self.handlers: dict[str, Handler[..., Any]] = {}
        super().__init__(Link(code, client=redis, clock=clock))
        self._producer = Producer(self)

    @property
    def inspect(self) -> "Inspector":
        """Readers: jobs, queues, locks, workers, numbers."""
        from rqlite_jobs.inspector import Inspector

        return Inspector(self)

    @property
    def control(self) -> "Control":
        """What operators do: cancel, delete, revive, retry, purge, pause, resume, release, recover."""
        from rqlite_jobs.control import Control

        return Control(self)

    @overload
    def job(self, fn: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncHandler[P, R]: ...  # type: ignore[overload-overlap]  # pyright: ignore[reportOverlappingOverload]
    @overload
    def job(self, fn: Callable[P, R], /) -> SyncHandler[P, R]: ...
    @overload
    def job(
        self,
        /,
        *,
        name: str | None = None,
        queue: str | None = None,
        retry: Retry | None = None,
        lock: LockPolicy | None = None,
        expires_in: Duration | None = None,
        tags: list[str] | tuple[str, ...] | None = None,
        remote: bool = False,
        result_ttl: "Duration | Literal['forever'] | None" = None,
    ) -> JobDecorator: ...
    def job(self, fn: Any = None, /, **declared: Any) -> Any:
        """Make a job of a function.

        Args:
            fn: a `def` or `async def` of a module.
            name: the job's name; the function's own if None.
            queue: where its jobs go; None: to the default queue.
            retry: when a failed one is tried again; None: as the setting `retry` says.
            lock: what keeps its jobs unique; None: nothing.
            expires_in: how long its jobs may wait to be started; None: for ever.
            tags: words about its jobs, for those who look at them.
            remote: True: another service runs it, and the body of the function is empty.
            result_ttl: how long what it returns is kept at least; None: as the setting `result_ttl` says.

        Raises:
            BadName: no job can have this name, or one of this app has it.
            BadOption: something that a worker could not call again, or a policy that does not fit.
            UnknownOption: there is no such option.

        Example: `@app.job(queue="sales", retry=Retry(max_attempts=5), lock=until_executed())`.
        """
        for option in declared:
            if option not in _DECLARED:
                hint = nearest(option, _DECLARED)
                if option in OPTIONS:
                    hint = f"It is an option of a call: handler.options({option}=...).enqueue(...)."
                raise UnknownOption(f"@app.job has no option {option!r}.", hint=hint, option=option)
        if fn is None:
            return functools.partial(self._declare, **declared)
        if isinstance(fn, str):
            raise BadOption(f"@app.job({fn!r}) is no function.", hint=f"Write @app.job(name={fn!r}).")
        return self._declare(fn, **declared)

    def handler(self, name: str, /) -> Handler[..., Any]:
        """The handler of a name.

        Raises:
            UnknownJob: nothing was declared under this name.

        Example: `app.handler("crunch_sales").enqueue(42)`.
        """
        found = self.handlers.get(name)
        if found is None:
            hint = (
                nearest(name, sorted(self.handlers))
                or "It has none: is the module that declares them imported?"
            )
            raise UnknownJob(f"the app has no job {shown(name)}.", hint=hint, job_name=str(name))
        return found

    def declaration(self, name: str, /) -> Declaration | None:
        """What was declared under a name, or None."""
        found = self.handlers.get(name)
        return found.declared if found else None

    def retry_of(self, handler: Handler[..., Any]) -> Retry:
        """When a job of this handler is tried again: as it says itself, else as the settings say."""
        return handler.retry or self.settings.retry

    def enqueue_many(self, calls: Iterable[Signature[R]], /) -> list[Job[R]]:
        """Enqueue calls of any jobs of this app; see `Handler.enqueue_many`.

        Args:
            calls: made by `Handler.s`.

        Example: `app.enqueue_many([crunch_sales.s(1), crunch_sales.options(delay="5s").s(2)])`.
        """
        return self._producer.enqueue_many(self._prepared(calls))

    async def aenqueue_many(self, calls: Iterable[Signature[R]], /) -> list[Job[R]]:
        """Enqueue calls of any jobs of this app: `enqueue_many` for async code."""
        return await self._producer.aenqueue_many(self._prepared(calls))

    def job_by_id(self, id: str, /) -> Job[Any]:
        """Read a job.

        Raises:
            JobNotFound: nothing of it is known.
        """
        return self.inspect.job(id)

    async def ajob_by_id(self, id: str, /) -> Job[Any]:
        """Read a job: `job_by_id` for async code."""
        return await self.inspect.ajob(id)

    def cancel_job(self, id: str, /) -> bool:
        """Keep a job from running; True: it will never start. False: it is running, has ended, or is not known."""
        return self.run(self.operations.cancel([id])) == ["cancelled"]

    async def acancel_job(self, id: str, /) -> bool:
        """Keep a job from running: `cancel_job` for async code."""
        return await self.arun(self.operations.cancel([id])) == ["cancelled"]

    def result_of(self, job: Job[R], timeout: Duration | None = None, /) -> R:
        """Wait for what a job returns: `job.result(timeout)`."""
        found: R = result_of(self, job, timeout)
        return found

    async def aresult_of(self, job: Job[R], timeout: Duration | None = None, /) -> R:
        """Wait for what a job returns: `result_of` for async code."""
        found: R = await aresult_of(self, job, timeout)
        return found

    def load_imports(self) -> None:
        """Import the modules given as `imports`, so that all jobs are declared."""
        for module in self.imports:
            importlib.import_module(module)

    if not TYPE_CHECKING:  # a checker shall not take every attribute for one that exists

        def __getattr__(self, name: str) -> NoReturn:
            raise no_attribute(self, name, "app", APP_VERBS)

    def __repr__(self) -> str:
        return f"App({self.link.code.get('namespace') or ''!r})"

    def _declare(self, fn: Callable[..., Any], **declared: Any) -> Handler[..., Any]:
        if isinstance(fn, Handler):
            raise BadOption(f"{fn!r} is a job already.", hint="Declare its function: handler.fn.")
        made = Declaration.of(fn, **declared)
        if made.name in self.handlers:
            raise BadName(
                f"the app has a job {made.name!r} already.",
                hint=f'Give this one a name of its own: @app.job(name="{made.name}_2").',
                name=made.name,
            )
        handler: Handler[..., Any] = (AsyncHandler if made.is_async else SyncHandler)(self, made)
        self.handlers[made.name] = handler
        return handler

    def _prepared(self, calls: Iterable[Any]) -> list[NewJob]:
        jobs = []
        for place, call in enumerate(calls):
            try:
                jobs.append(self._checked(call).prepare())
            except RqjError as error:
                error.add_note(f"This is item {place} of enqueue_many; nothing was sent.")
                raise
        return jobs

    def _checked(self, call: Any) -> Signature[Any]:
        if not isinstance(call, Signature):
            raise WrongArguments(
                f"{shown(call)} is {a_type(call)}, and no call of a job.",
                hint="Write handler.s(...), or handler.enqueue_many(...) for many calls of one job.",
            )
        if self.declaration(call.handler.name) is not call.handler.declared:
            raise WrongArguments(f"{call.handler!r} is a job of another app.", job_name=call.handler.name)
        return call
