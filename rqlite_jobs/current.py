"""The job that runs here: what its handler may ask of it, and tell about it."""

from contextvars import ContextVar
from typing import Protocol

from msgspec import Struct

from rqlite_jobs.errors import NoCurrentJob
from rqlite_jobs.progress import checked


class Reports(Protocol):
    """Who hears how far running jobs are: the worker, or `drain`."""

    def report(self, job: "CurrentJob", value: float, text: str) -> None:
        """Note how far a job is."""
        ...

    def lost(self, job: "CurrentJob") -> bool:
        """Does the job belong to somebody else by now?"""
        ...


class Running(Protocol):
    """A run that is under way."""

    def current(self) -> "CurrentJob":
        """Its job, for its handler."""
        ...


class CurrentJob(Struct, frozen=True):
    """The job that a handler runs as. `current_job()` gives it.

    Attributes:
        id: its id.
        name: the name of its handler.
        attempt: which attempt this is, 1 for the first; see `Job.attempts`.
        token: the right to settle this run: the fence and a random part.
        deadline: when the run must have ended, in seconds since 1970; None: there is no limit.
    """

    id: str
    name: str
    attempt: int
    token: str
    _reports: Reports
    deadline: float | None = None

    @property
    def fence(self) -> int:
        """A number that only grows from run to run in its namespace.

        A store that keeps the highest it has seen, and refuses a lower one, takes no writes of a run that was
        given up meanwhile.
        """
        return int(self.token.partition("-")[0])

    @property
    def lost(self) -> bool:
        """Was the lease lost? Then the job runs elsewhere by now, or will, and what this run does is not recorded."""
        return self._reports.lost(self)

    def progress(self, value: float, text: str = "") -> None:
        """Tell how far the job is; `job.refresh().progress` and `rqj jobs wait` show it.

        It does not wait for the server, so it is the same in a plain and in an async handler. A worker sends the
        newest of each of its jobs, all together, at most four times a second; the last one is never left out.
        `drain` sends each at once. It is gone when the run ends.

        Args:
            value: from 0 to 1.
            text: what it does just now; at most 200 characters, what is longer is cut.

        Raises:
            BadOption: no number from 0 to 1, or no text.

        Example: `current_job().progress(done / total, "pages")`.
        """
        self._reports.report(self, *checked(value, text))

    def __repr__(self) -> str:
        return f"CurrentJob(id={self.id!r}, name={self.name!r}, attempt={self.attempt!r})"


RUNNING: ContextVar[Running | None] = ContextVar("rqlite_jobs.running", default=None)
"""The run of this thread, or task; a task that it starts, and `asyncio.to_thread`, have it too."""


def current_job() -> CurrentJob:
    """The job that runs here, in this thread or task.

    Raises:
        NoCurrentJob: no job does.

    Example: `current_job().id`.
    """
    running = RUNNING.get()
    if running is None:
        raise NoCurrentJob(
            "no job runs here.",
            hint="Ask inside a handler that a worker or drain(app) runs. A plain call of the function is no job, and "
            "a thread that the handler starts does not know of it: give it the job.",
        )
    return running.current()
