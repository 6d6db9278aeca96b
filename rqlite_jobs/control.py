"""The control of a namespace: what its operators do to jobs, queues, locks and workers."""

import getpass
import platform
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar, cast

from rqlite_jobs.answers import Survey
from rqlite_jobs.config import Settings
from rqlite_jobs.durations import Duration, to_ms
from rqlite_jobs.errors import BadDuration, BadOption, QueueNotFound, a_type, nearest, shown
from rqlite_jobs.operations import Call, Operations

T = TypeVar("T")
Steps: TypeAlias = Generator[Call[Any], Any, T]

STEP = 100
"""How many jobs one script call touches; the server answers nobody else meanwhile."""
_BY_MAX = 100


class Asked(Protocol):
    """The app whose namespace is controlled."""

    @property
    def settings(self) -> Settings:
        """Its settings."""
        ...

    @property
    def operations(self) -> Operations:
        """The calls of its namespace."""
        ...

    def run(self, call: Call[T], /) -> T:
        """Send a call."""
        ...

    async def arun(self, call: Call[T], /) -> T:
        """Send a call."""
        ...


class Control:
    """Acts on one namespace; `app.control` is one. Each has a twin with the prefix `a` for async code.

    Args:
        app: whose namespace it is.

    What takes ids takes any number, one as text or many, and acts on 100 of them a trip; it answers with a word for
    each, and an id that is not in a state for the act is answered with that state. Every method raises `Unreachable`
    if the server does not answer.

    Example: `app.control.retry(job.id for job in app.inspect.scheduled())`.
    """

    def __init__(self, app: Asked) -> None:
        self._app = app

    def cancel(self, ids: str | Iterable[str], /) -> dict[str, str]:
        """Keep jobs that wait from ever starting.

        Returns:
            id -> `cancelled`; `gone`, it was cancelled before; `running done dead expired malformed unknown`, what it
            is instead; `unsound`, a key of its queue has a foreign type.
        """
        return self._run(self._each(ids, self._ops.cancel))

    async def acancel(self, ids: str | Iterable[str], /) -> dict[str, str]:
        """Keep jobs that wait from ever starting: `cancel` for async code."""
        return await self._arun(self._each(ids, self._ops.cancel))

    def delete(self, ids: str | Iterable[str], /) -> dict[str, str]:
        """Delete jobs with all that is known of them, wherever they are; running ones are left alone.

        Returns:
            id -> `deleted`; `running cancelled expired unknown`, what it is instead; `unsound`, see `cancel`.
        """
        return self._run(self._each(ids, self._ops.delete))

    async def adelete(self, ids: str | Iterable[str], /) -> dict[str, str]:
        """Delete jobs: `delete` for async code."""
        return await self._arun(self._each(ids, self._ops.delete))

    def revive(self, ids: str | Iterable[str], /) -> dict[str, str]:
        """Bring dead jobs back: ready, with attempts beginning at 0 and without the end that `expires_in` set.

        Returns:
            id -> `revived`; `duplicate`, another job holds its lock by now; `ready scheduled running done cancelled
            expired malformed unknown`, what it is instead; `unsound`, see `cancel`.
        """
        return self._run(self._each(ids, self._revive))

    async def arevive(self, ids: str | Iterable[str], /) -> dict[str, str]:
        """Bring dead jobs back: `revive` for async code."""
        return await self._arun(self._each(ids, self._revive))

    def retry(self, ids: str | Iterable[str], /) -> dict[str, str]:
        """Let jobs that wait for their next attempt go now; their attempts go on as they are.

        Returns:
            id -> `retried`; `delayed`, it has not failed, and waits for the time it was given; `ready running done dead
            cancelled expired malformed unknown`, what it is instead; `unsound`, see `cancel`.
        """
        return self._run(self._each(ids, self._ops.retry))

    async def aretry(self, ids: str | Iterable[str], /) -> dict[str, str]:
        """Let jobs that wait for their next attempt go now: `retry` for async code."""
        return await self._arun(self._each(ids, self._ops.retry))

    def purge(self, queue: str, /) -> int:
        """Delete what waits in a queue when this is called, ready and scheduled, with its locks; running jobs go on.

        Returns:
            How many jobs there were.

        Raises:
            QueueNotFound: no job was ever put into this queue.

        Cost: one trip for each 1,000 jobs.
        """
        return self._run(self._purge(queue))

    async def apurge(self, queue: str, /) -> int:
        """Delete what waits in a queue: `purge` for async code."""
        return await self._arun(self._purge(queue))

    def pause(self, queue: str, /, *, for_: Duration | None = None, by: str | None = None) -> str:
        """Start no more jobs of a queue; it takes new ones, and those that run go on.

        Args:
            queue: which one.
            for_: how long; None: until it is resumed.
            by: who asks, for those who wonder; None: the user of this process and its host.

        Returns:
            `paused`, also where it was paused before: the last word counts.

        Raises:
            QueueNotFound: no job was ever put into this queue.
            BadDuration: a time that is none.

        Example: `app.control.pause("mail", for_="10m")`.
        """
        return self._run(self._pause(queue, _pause_ms(for_), by))

    async def apause(self, queue: str, /, *, for_: Duration | None = None, by: str | None = None) -> str:
        """Start no more jobs of a queue: `pause` for async code."""
        return await self._arun(self._pause(queue, _pause_ms(for_), by))

    def resume(self, queue: str, /) -> str:
        """Start jobs of a queue again.

        Returns:
            `resumed`; or `running`, it was not paused.

        Raises:
            QueueNotFound: no job was ever put into this queue.
        """
        return self._run(self._pause(queue, None, ""))

    async def aresume(self, queue: str, /) -> str:
        """Start jobs of a queue again: `resume` for async code."""
        return await self._arun(self._pause(queue, None, ""))

    def release(self, lock_keys: str | Iterable[str], /, *, force: bool = False) -> dict[str, str]:
        """Free locks. A job whose lock is freed goes on without it, so the same work may run twice.

        Args:
            lock_keys: which, as `app.inspect.locks()` has them.
            force: free also a lock whose job waits or runs.

        Returns:
            key -> `released`; `held`, its job waits or runs, and `force` was not given; `free`, nobody held it.
        """
        return self._run(self._each(lock_keys, lambda some: _first(self._ops.release(some, force))))

    async def arelease(self, lock_keys: str | Iterable[str], /, *, force: bool = False) -> dict[str, str]:
        """Free locks: `release` for async code."""
        return await self._arun(self._each(lock_keys, lambda some: _first(self._ops.release(some, force))))

    def recover(self) -> int:
        """Give the jobs of workers whose lease is over back to their queues, as any living worker does by itself.

        Returns:
            How many went back.
        """
        return self._run(self._recover())

    async def arecover(self) -> int:
        """Give the jobs of dead workers back: `recover` for async code."""
        return await self._arun(self._recover())

    @property
    def _ops(self) -> Operations:
        return self._app.operations  # asked anew: an app may be pointed elsewhere by a test

    def _each(
        self, ids: str | Iterable[str], act: Callable[[Sequence[str]], Call[list[str]]]
    ) -> Steps[dict[str, str]]:
        """Act on things in bounded steps: each once, however often it is named."""
        named = list(dict.fromkeys(_texts(ids)))
        words: dict[str, str] = {}
        for at in range(0, len(named), STEP):
            some = named[at : at + STEP]
            answers: list[str] = yield act(some)
            words |= zip(some, answers, strict=True)
        return words

    def _revive(self, ids: Sequence[str]) -> Call[list[str]]:
        return _first(self._ops.revive(ids))

    def _purge(self, queue: str) -> Steps[int]:
        survey: Survey = yield self._ops.survey()
        known = {one.name: one.ready + one.scheduled for one in survey.queues}
        if queue not in known:
            raise _no_queue(queue, known)
        # Not until it is empty: a producer that is faster than we are would keep us here.
        left, purged = known[queue], 0
        while left > 0:
            ready, scheduled, behind = yield self._ops.purge(queue)
            purged += ready + scheduled
            left = min(left - ready - scheduled, behind)  # a step that meets only tombs takes none
        return purged

    def _pause(self, queue: str, for_ms: int | None, by: str | None) -> Steps[str]:
        word: str = yield self._ops.pause(queue, for_ms, who() if by is None else by[:_BY_MAX])
        if word == "unknown":
            survey: Survey = yield self._ops.survey()
            raise _no_queue(queue, [one.name for one in survey.queues])
        return word

    def _recover(self) -> Steps[int]:
        recovered = 0
        while True:
            answer: tuple[int, int] = yield self._ops.recover(self._app.settings.max_crashes)
            done, left = answer
            recovered += done
            if not left or not done:  # nothing done and something left: others are at it
                return recovered

    def _run(self, steps: Steps[T]) -> T:
        try:
            call = next(steps)
            while True:
                call = steps.send(self._app.run(call))
        except StopIteration as end:
            return cast(T, end.value)

    async def _arun(self, steps: Steps[T]) -> T:
        try:
            call = next(steps)
            while True:
                call = steps.send(await self._app.arun(call))
        except StopIteration as end:
            return cast(T, end.value)


def who() -> str:
    """The user of this process and its host, for those who wonder later: `ann@shop-1`."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError, ImportError):  # a user id without a name, as containers have
        user = "somebody"
    return f"{user}@{platform.node() or 'unknown'}"[:_BY_MAX]


def _texts(ids: str | Iterable[str]) -> Iterable[str]:
    for one in (ids,) if isinstance(ids, str) else ids:
        if not isinstance(one, str):
            raise BadOption(
                f"{shown(one)} is {a_type(one)}, not text.", hint="Give ids as text: job.id.", option="ids"
            )
        yield one


def _first(call: Call[list[tuple[str, str]]]) -> Call[list[str]]:
    """A call that answers with a word and a holder, as one that answers with the word."""
    return Call(
        call.verb, call.keys, call.args, lambda reply: [word for word, _ in call.read(reply)], call.repeat
    )


def _pause_ms(for_: Duration | None) -> int:
    if for_ is None:
        return 0
    if found := to_ms(for_, what="for_"):
        return found
    raise BadDuration(
        "a pause of 0 is none.", hint='Give it a time: for_="10m"; without it, it lasts until resumed.'
    )


def _no_queue(queue: str, known: Iterable[str]) -> QueueNotFound:
    return QueueNotFound(
        f"no job was ever put into a queue {shown(queue)}.",
        hint=nearest(queue, list(known)) or "There is no queue yet.",
        queue=queue,
    )
