"""The inspector: questions about one namespace, answered by scripts that write nothing."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from rqlite_jobs import steps
from rqlite_jobs.inspector import changes, questions
from rqlite_jobs.inspector.changes import ChangeRow
from rqlite_jobs.inspector.filter import Filter, check_arg
from rqlite_jobs.inspector.jobs import Home
from rqlite_jobs.inspector.rows import HistoryRow, LockRow, Page, QueueRow, Stats, WorkerRow
from rqlite_jobs.inspector.why import Reason, why
from rqlite_jobs.job import Job


class Asked(Home, steps.Asked, Protocol):
    """The app that an inspector asks."""


class Inspector(steps.Stepper):
    """Typed readers of one namespace; `app.inspect` is one. Each has a twin with the prefix `a` for async code.

    Args:
        app: whose namespace it is.

    Every method raises `Unreachable` if the server does not answer.

    Example: `for row in app.inspect.queues(): print(row.name, row.ready)`.
    """

    def __init__(self, app: Asked) -> None:
        super().__init__(app)
        self._home = app

    def job(self, id: str, /) -> Job[Any]:
        """Read one job, with its arguments and traceback.

        Raises:
            JobNotFound: no job of this id is known.
        """
        return self._run(questions.job(self._home, self._ops, id))

    async def ajob(self, id: str, /) -> Job[Any]:
        """Read one job: `job` for async code."""
        return await self._arun(questions.job(self._home, self._ops, id))

    def look(self, ids: Sequence[str], /) -> tuple[Job[Any], ...]:
        """Read jobs by id, in order; one that is not known has the state `unknown`. A trip for each 20."""
        return self._run(questions.look(self._home, self._ops, ids))

    async def alook(self, ids: Sequence[str], /) -> tuple[Job[Any], ...]:
        """Read jobs by id: `look` for async code."""
        return await self._arun(questions.look(self._home, self._ops, ids))

    def why(self, id: str, /) -> Reason:
        """Say why a job is where it is, and what would make it go on.

        Raises:
            JobNotFound: no job of this id is known.

        Cost: three trips, so of three instants close to each other.
        """
        return self._run(why(self._home, self._ops, id))

    async def awhy(self, id: str, /) -> Reason:
        """Say why a job is where it is: `why` for async code."""
        return await self._arun(why(self._home, self._ops, id))

    def jobs(
        self,
        state: str | None = None,
        *,
        queue: str | None = None,
        name: str | None = None,
        error: str | None = None,
        tag: str | None = None,
        arg: Mapping[str, Any] | None = None,
        text: str | None = None,
        cursor: str = "",
        limit: int = 100,
    ) -> Page[Job[Any]]:
        """Read a page of jobs, without tracebacks.

        Args:
            state: `running ready scheduled dead done`; None: all of them, in that order. Refused duplicates are
                among the dead.
            queue: only of this queue.
            name: only of the job declared under this name.
            error: only with this text in their last error, upper and lower case alike.
            tag: only with this tag.
            arg: only called with these arguments, by the name of the parameter: where the app declares the job, however
                they were given; else as they stand in the call, and "0" is the first one given by position.
            text: only with this text in their payload (name, arguments, tags, as JSON), upper and lower case alike.
            cursor: `next` of the page before, with the same filters.
            limit: how many, 1 to 1,000.

        What runs next comes first; of the dead and the done, what ended last. A page with a filter may be short, or
        empty, and still have a `next`: it looks at 10,000 records at most, and says how far it came (`looked`,
        `among`). Jobs that move meanwhile may be missed, or come twice; the last page always comes.

        Raises:
            QueueNotFound: no job was ever put into this queue.
            BadOption: no such state, or no such cursor, or a limit out of bounds.

        Cost: two trips, and one more for each 200 records looked at and each 20 whose payload is over 2 KiB,
        however far down the page is.

        Example: `app.inspect.jobs("dead", name="send_email", arg={"to": "ada@example.org"})`.
        """
        wanted = Filter(queue, name, error, tag, check_arg(arg), text)
        return self._run(questions.jobs(self._home, self._ops, state, wanted, cursor, limit))

    async def ajobs(
        self,
        state: str | None = None,
        *,
        queue: str | None = None,
        name: str | None = None,
        error: str | None = None,
        tag: str | None = None,
        arg: Mapping[str, Any] | None = None,
        text: str | None = None,
        cursor: str = "",
        limit: int = 100,
    ) -> Page[Job[Any]]:
        """Read a page of jobs: `jobs` for async code."""
        wanted = Filter(queue, name, error, tag, check_arg(arg), text)
        return await self._arun(questions.jobs(self._home, self._ops, state, wanted, cursor, limit))

    def dead(self, *, cursor: str = "", limit: int = 100) -> Page[Job[Any]]:
        """Read a page of the dead, the last first: `jobs("dead")`."""
        return self.jobs("dead", cursor=cursor, limit=limit)

    async def adead(self, *, cursor: str = "", limit: int = 100) -> Page[Job[Any]]:
        """Read a page of the dead: `dead` for async code."""
        return await self.ajobs("dead", cursor=cursor, limit=limit)

    def scheduled(self, *, cursor: str = "", limit: int = 100) -> Page[Job[Any]]:
        """Read a page of the scheduled, queue by queue, the next first: `jobs("scheduled")`."""
        return self.jobs("scheduled", cursor=cursor, limit=limit)

    async def ascheduled(self, *, cursor: str = "", limit: int = 100) -> Page[Job[Any]]:
        """Read a page of the scheduled: `scheduled` for async code."""
        return await self.ajobs("scheduled", cursor=cursor, limit=limit)

    def queues(self) -> Page[QueueRow]:
        """Read all queues that jobs were ever put into, by name."""
        return self._run(questions.queues(self._ops))

    async def aqueues(self) -> Page[QueueRow]:
        """Read all queues: `queues` for async code."""
        return await self._arun(questions.queues(self._ops))

    def locks(self, *, cursor: str = "", limit: int = 100) -> Page[LockRow]:
        """Read a page of the locks that are held, those with an end first.

        Raises:
            BadOption: no such cursor, or a limit out of bounds.
        """
        return self._run(questions.locks(self._ops, cursor, limit))

    async def alocks(self, *, cursor: str = "", limit: int = 100) -> Page[LockRow]:
        """Read a page of locks: `locks` for async code."""
        return await self._arun(questions.locks(self._ops, cursor, limit))

    def lock(self, key: str, /) -> LockRow:
        """Read who holds one lock.

        Raises:
            LockNotFound: nobody does.
        """
        return self._run(questions.lock(self._ops, key))

    async def alock(self, key: str, /) -> LockRow:
        """Read who holds one lock: `lock` for async code."""
        return await self._arun(questions.lock(self._ops, key))

    def workers(self) -> Page[WorkerRow]:
        """Read all workers, by the end of their lease."""
        return self._run(questions.workers(self._ops))

    async def aworkers(self) -> Page[WorkerRow]:
        """Read all workers: `workers` for async code."""
        return await self._arun(questions.workers(self._ops))

    def stats(self) -> Stats:
        """Read all numbers at one instant."""
        return self._run(questions.stats(self._ops))

    async def astats(self) -> Stats:
        """Read all numbers: `stats` for async code."""
        return await self._arun(questions.stats(self._ops))

    def history(self, by: str = "minute", *, last: int = 60) -> Page[HistoryRow]:
        """Read what each of the last minutes or days has counted, the newest, which is not over yet, last.

        Args:
            by: `minute`, up to 1,440 of them; or `day`, up to 366.
            last: how many.

        The days and minutes are those of UTC, and of the server's clock. All rows from the beginning add up to the
        totals of `stats`.

        Raises:
            BadOption: it is not kept by this, or not for so long.

        Cost: a trip for each 120 of them that counted something; each takes the server some 10 us.

        Example: `sum(row.done for row in app.inspect.history("minute", last=10))`.
        """
        return self._run(questions.history(self._ops, by, last))

    async def ahistory(self, by: str = "minute", *, last: int = 60) -> Page[HistoryRow]:
        """Read what the last minutes or days have counted: `history` for async code."""
        return await self._arun(questions.history(self._ops, by, last))

    def changelog(
        self, *, act: str | None = None, id: str | None = None, cursor: str = "", limit: int = 100
    ) -> Page[ChangeRow]:
        """Read a page of the changelog, the newest line first: who did what, and what befell jobs and locks.

        Args:
            act: only this: `cancel delete bury revive retry purge pause resume release recover` of operators and
                workers, `expire reject takeover` by themselves.
            id: only lines that name this job.
            cursor: `next` of the page before.
            limit: how many, 1 to 1,000.

        A page with a filter may be short, or empty, and still have a `next`: it looks at 10,000 lines at most.

        Raises:
            BadOption: no such act, or no such cursor, or a limit out of bounds.

        Cost: a trip; with a filter one for each 500 lines looked at.
        """
        return self._run(changes.changelog(self._ops, act, id, cursor, limit))

    async def achangelog(
        self, *, act: str | None = None, id: str | None = None, cursor: str = "", limit: int = 100
    ) -> Page[ChangeRow]:
        """Read a page of the changelog: `changelog` for async code."""
        return await self._arun(changes.changelog(self._ops, act, id, cursor, limit))

    def now(self) -> datetime:
        """Ask for the server's time; that of the app's clock, if it has one of its own."""
        return self._run(questions.now(self._ops))

    async def anow(self) -> datetime:
        """Ask for the server's time: `now` for async code."""
        return await self._arun(questions.now(self._ops))
