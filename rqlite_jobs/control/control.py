"""The control of a namespace: what its operators do to jobs, queues, locks and workers."""

from collections.abc import Iterable

from rqlite_jobs.control import verbs
from rqlite_jobs.durations import Duration
from rqlite_jobs.steps import Stepper, Steps


class Control(Stepper):
    """Acts on one namespace; `app.control` is one. Each has a twin with the prefix `a` for async code.

    Args:
        app: whose namespace it is.

    What takes ids takes any number, one as text or many, and acts on 100 of them a trip; it answers with a word for
    each, and an id that is not in a state for the act is answered with that state. Every method takes `by`, the name of
    who asks (None: the user of this process and its host): what was done stands in `app.inspect.changelog()` with it,
    cut to 100 characters. Every method raises `Unreachable` if the server does not answer, and `BadOption` for an id
    or a name that is not text.

    Example: `app.control.retry(job.id for job in app.inspect.scheduled())`.
    """

    def cancel(self, ids: str | Iterable[str], /, *, by: str | None = None) -> dict[str, str]:
        """Keep jobs that wait from ever starting.

        Returns:
            id -> `cancelled`; `gone`, it was cancelled before; `running done dead expired malformed unknown`, what it
            is instead; `unsound`, a key of its queue has a foreign type.
        """
        return self._run(verbs.each(ids, lambda some: self._ops.cancel(some, by)))

    async def acancel(self, ids: str | Iterable[str], /, *, by: str | None = None) -> dict[str, str]:
        """Keep jobs that wait from ever starting: `cancel` for async code."""
        return await self._arun(verbs.each(ids, lambda some: self._ops.cancel(some, by)))

    def delete(self, ids: str | Iterable[str], /, *, by: str | None = None) -> dict[str, str]:
        """Delete jobs with all that is known of them, wherever they are; running ones are left alone.

        Returns:
            id -> `deleted`; `running cancelled expired unknown`, what it is instead; `unsound`, see `cancel`.
        """
        return self._run(verbs.each(ids, lambda some: self._ops.delete(some, by)))

    async def adelete(self, ids: str | Iterable[str], /, *, by: str | None = None) -> dict[str, str]:
        """Delete jobs: `delete` for async code."""
        return await self._arun(verbs.each(ids, lambda some: self._ops.delete(some, by)))

    def revive(self, ids: str | Iterable[str], /, *, by: str | None = None) -> dict[str, str]:
        """Bring dead jobs back: ready, with attempts beginning at 0 and without the end that `expires_in` set.

        Returns:
            id -> `revived`; `duplicate`, another job holds its lock by now; `ready scheduled running done cancelled
            expired malformed unknown`, what it is instead; `unsound`, see `cancel`.
        """
        return self._run(verbs.each(ids, lambda some: verbs.first(self._ops.revive(some, by))))

    async def arevive(self, ids: str | Iterable[str], /, *, by: str | None = None) -> dict[str, str]:
        """Bring dead jobs back: `revive` for async code."""
        return await self._arun(verbs.each(ids, lambda some: verbs.first(self._ops.revive(some, by))))

    def retry(self, ids: str | Iterable[str], /, *, by: str | None = None) -> dict[str, str]:
        """Let jobs that wait for their next attempt go now; their attempts go on as they are.

        Returns:
            id -> `retried`; `delayed`, it has not failed, and waits for the time it was given; `ready running done dead
            cancelled expired malformed unknown`, what it is instead; `unsound`, see `cancel`.
        """
        return self._run(verbs.each(ids, lambda some: self._ops.retry(some, by)))

    async def aretry(self, ids: str | Iterable[str], /, *, by: str | None = None) -> dict[str, str]:
        """Let jobs that wait for their next attempt go now: `retry` for async code."""
        return await self._arun(verbs.each(ids, lambda some: self._ops.retry(some, by)))

    def purge(self, queue: str, /, *, by: str | None = None) -> int:
        """Delete what waits in a queue when this is called, ready and scheduled, with its locks; running jobs go on.

        Returns:
            How many jobs there were.

        Raises:
            QueueNotFound: no job was ever put into this queue.

        Cost: one trip for each 1,000 jobs.
        """
        return self._run(verbs.purge(self._ops, queue, by))

    async def apurge(self, queue: str, /, *, by: str | None = None) -> int:
        """Delete what waits in a queue: `purge` for async code."""
        return await self._arun(verbs.purge(self._ops, queue, by))

    def pause(self, queue: str, /, *, for_: Duration | None = None, by: str | None = None) -> str:
        """Start no more jobs of a queue; it takes new ones, and those that run go on.

        Args:
            queue: which one.
            for_: how long; None: until it is resumed.
            by: who asks; readers are told as long as it is paused.

        Returns:
            `paused`, also where it was paused before: the last word counts.

        Raises:
            QueueNotFound: no job was ever put into this queue.
            BadDuration: a time that is none.

        Example: `app.control.pause("mail", for_="10m")`.
        """
        return self._run(verbs.pause(self._ops, queue, verbs.pause_ms(for_), by))

    async def apause(self, queue: str, /, *, for_: Duration | None = None, by: str | None = None) -> str:
        """Start no more jobs of a queue: `pause` for async code."""
        return await self._arun(verbs.pause(self._ops, queue, verbs.pause_ms(for_), by))

    def resume(self, queue: str, /, *, by: str | None = None) -> str:
        """Start jobs of a queue again.

        Returns:
            `resumed`; or `running`, it was not paused.

        Raises:
            QueueNotFound: no job was ever put into this queue.
        """
        return self._run(verbs.pause(self._ops, queue, None, by))

    async def aresume(self, queue: str, /, *, by: str | None = None) -> str:
        """Start jobs of a queue again: `resume` for async code."""
        return await self._arun(verbs.pause(self._ops, queue, None, by))

    def release(
        self, lock_keys: str | Iterable[str], /, *, force: bool = False, by: str | None = None
    ) -> dict[str, str]:
        """Free locks. A job whose lock is freed goes on without it, so the same work may run twice.

        Args:
            lock_keys: which, as `app.inspect.locks()` has them.
            force: free also a lock whose job waits or runs.

        Returns:
            key -> `released`; `held`, its job waits or runs, and `force` was not given; `free`, nobody held it.
        """
        return self._run(self._release(lock_keys, force, by))

    async def arelease(
        self, lock_keys: str | Iterable[str], /, *, force: bool = False, by: str | None = None
    ) -> dict[str, str]:
        """Free locks: `release` for async code."""
        return await self._arun(self._release(lock_keys, force, by))

    def recover(self, *, by: str | None = None) -> int:
        """Give the jobs of workers whose lease is over back to their queues, as any living worker does by itself.

        Returns:
            How many went back.
        """
        return self._run(verbs.recover(self._ops, by))

    async def arecover(self, *, by: str | None = None) -> int:
        """Give the jobs of dead workers back: `recover` for async code."""
        return await self._arun(verbs.recover(self._ops, by))

    def _release(self, lock_keys: str | Iterable[str], force: bool, by: str | None) -> Steps[dict[str, str]]:
        return verbs.each(lock_keys, lambda some: verbs.first(self._ops.release(some, force, by)))
