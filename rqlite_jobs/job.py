"""The job, as its caller holds it."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct, field

from rqlite_jobs.durations import Duration
from rqlite_jobs.errors import RqjError
from rqlite_jobs.progress import Progress
from rqlite_jobs.record import NewJob as NewJob
from rqlite_jobs.record import Record as Record
from rqlite_jobs.record import new_id as new_id

R_co = TypeVar("R_co", covariant=True)


class Source(Protocol):
    """Where a `Job` asks about itself: the App."""

    def job_by_id(self, id: str, /) -> "Job[Any]":
        """Read a job."""
        ...

    async def ajob_by_id(self, id: str, /) -> "Job[Any]":
        """Read a job."""
        ...

    def cancel_job(self, id: str, /) -> bool:
        """Cancel a job; True: it will never start."""
        ...

    async def acancel_job(self, id: str, /) -> bool:
        """Cancel a job; True: it will never start."""
        ...

    def result_of(self, job: "Job[Any]", timeout: Duration | None = None, /) -> Any:
        """Wait for what a job returns."""
        ...

    async def aresult_of(self, job: "Job[Any]", timeout: Duration | None = None, /) -> Any:
        """Wait for what a job returns."""
        ...


class Job(Struct, Generic[R_co], frozen=True):
    """A job as it was when it was enqueued or read. It never changes; `refresh` reads it anew.

    Attributes:
        id: its id, 20 characters unless the caller chose one.
        name: the name of its handler; empty where its record could not be read.
        queue: the queue it is in.
        args: positional arguments of the call.
        kwargs: keyword arguments of the call.
        tags: words about it, chosen by the caller.
        outcome: what became of the enqueue (`enqueued`, `duplicate`, `rejected`); None on a job read later.
        holder_id: the job that holds the lock, or has the id, in every outcome but `enqueued`.
        state: `ready`, `scheduled`, `running`, `dead`, `done`, `cancelled`, `expired`.
        attempts: starts that were neither handed back nor snoozed.
        crashes: those attempts that ended with their process.
        last_error: the repr of the last exception, at most 4 KiB.
        traceback: its traceback, at most 32 KiB.
        lock_key: the key of its lock, None without one.
        run_at: when it is due, while it is scheduled.
        enqueued_at: when the server took it.
        started_at: when its running attempt started.
        finished_at: when it was done, or died.
        progress: how far it said it is, while it runs; None if it said nothing.
        result_expires_at: until when its result is kept, if it is done and has a `result_ttl`; None for one without,
            and for one that is kept until it is deleted.
    """

    id: str
    name: str = ""
    queue: str = ""
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    outcome: str | None = None
    holder_id: str | None = None
    state: str = ""
    attempts: int = 0
    crashes: int = 0
    last_error: str | None = None
    traceback: str | None = None
    lock_key: str | None = None
    run_at: datetime | None = None
    enqueued_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    tags: tuple[str, ...] = ()
    progress: Progress | None = None
    result_expires_at: datetime | None = None
    _app: Source | None = None

    def refresh(self) -> "Job[R_co]":
        """Read the job as it is now.

        Raises:
            JobNotFound: nothing of it is left.
            Unreachable: the server does not answer.
        """
        return self._source().job_by_id(self.id)

    async def arefresh(self) -> "Job[R_co]":
        """Read the job as it is now: `refresh` for async code."""
        return await self._source().ajob_by_id(self.id)

    def cancel(self) -> bool:
        """Keep the job from running.

        Returns:
            True: it will never start. False: it is running, has ended, or is not known.

        Raises:
            Unreachable: the server does not answer.
        """
        return self._source().cancel_job(self.id)

    async def acancel(self) -> bool:
        """Keep the job from running: `cancel` for async code."""
        return await self._source().acancel_job(self.id)

    def result(self, timeout: Duration | None = None) -> R_co:
        """Wait for what the job returns. It is told when the job ends; nothing is polled.

        Args:
            timeout: how long; None: until it ends.

        Raises:
            ResultTimeout: it has not ended by then.
            JobFailed: it is dead.
            JobCancelled: it was cancelled, deleted, or expired.
            ResultExpired: it was there, and what it returned is not kept, or not any more.
            JobNotFound: nothing of it is known.

        Cost: two commands; one thread and connection serve all that wait in a process.

        Example: `crunch_sales.enqueue(42).result("5s")`.
        """
        found: R_co = self._source().result_of(self, timeout)
        return found

    async def aresult(self, timeout: Duration | None = None) -> R_co:
        """Wait for what the job returns: `result` for async code."""
        found: R_co = await self._source().aresult_of(self, timeout)
        return found

    def __eq__(self, other: object) -> bool:
        # Without the app: the same job read through two apps is the same.
        return isinstance(other, Job) and all(
            getattr(self, name) == getattr(other, name) for name in self.__struct_fields__ if name != "_app"
        )

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        # Without the arguments: they may be secret, and reprs end in logs.
        facts = [f"{name}={getattr(self, name)!r}" for name in ("id", "name", "queue", "state")]
        if self.outcome:
            facts.append(f"outcome={self.outcome!r}")
        return f"Job({', '.join(facts)})"

    def _source(self) -> Source:
        if self._app is None:
            raise RqjError(f"{self!r} belongs to no app.", hint="Read it with app.job_by_id(id).")
        return self._app
