"""What a job returned, for whoever waits for it: the value, or the error that says why there is none."""

import asyncio
import concurrent.futures
import math
import threading
import time
from collections.abc import Callable
from typing import Any, NoReturn, Protocol

from rqlite_jobs.answers import text
from rqlite_jobs.codec import Malformed, decode
from rqlite_jobs.declaration import Declaration
from rqlite_jobs.durations import Duration, to_ms, to_text
from rqlite_jobs.ending import Ending
from rqlite_jobs.errors import (
    JobCancelled,
    JobFailed,
    JobNotFound,
    ResultExpired,
    ResultTimeout,
    RqjError,
)
from rqlite_jobs.job import Job
from rqlite_jobs.link import Link

_HOW = {"expired": "has expired"}


class Home(Protocol):
    """What waiting needs of an app."""

    @property
    def link(self) -> Link:
        """The way to its jobs."""
        ...

    def declaration(self, name: str, /) -> Declaration | None:
        """What was declared under a name."""
        ...


def result_of(home: Home, job: Job[Any], timeout: Duration | None) -> Any:
    """Wait for what a job returns; see `Job.result`."""
    return value_of(home, job, ending_of(home, job, timeout))


async def aresult_of(home: Home, job: Job[Any], timeout: Duration | None) -> Any:
    """Wait for what a job returns: `result_of` for async code."""
    timeout_ms = _timeout_ms(timeout)
    began_s, link = time.monotonic(), home.link
    with link.mailbox.waiter(job.id) as waiter:
        # A few at a time: a thousand callers at once would open a thousand connections to ask.
        async with link.mailbox.door():
            ending = await link.arun(link.operations.wait(waiter.process, waiter.ticket, job.id))
        if ending.word == "waiting":
            link.mailbox.listen()
            left_s = None if timeout_ms is None else began_s + timeout_ms / 1000 - time.monotonic()
            try:
                ending = await asyncio.wait_for(asyncio.wrap_future(waiter.future), left_s)
            except TimeoutError:
                _too_late(job, timeout_ms)
    return value_of(home, job, ending)


def ending_of(
    home: Home,
    job: Job[Any],
    timeout: Duration | None,
    meanwhile: Callable[[], None] | None = None,
    every_s: float = 0.5,
) -> Ending:
    """Wait for the end of a job.

    Args:
        home: the app.
        job: which.
        timeout: how long at most; None: until it ends.
        meanwhile: called every `every_s` while it has not ended, for who shows that it waits.

    Raises:
        ResultTimeout: it has not ended by then.
    """
    timeout_ms = _timeout_ms(timeout)
    until_s, link = time.monotonic() + (math.inf if timeout_ms is None else timeout_ms / 1000), home.link
    with link.mailbox.waiter(job.id) as waiter:
        ending = link.run(link.operations.wait(waiter.process, waiter.ticket, job.id))
        if ending.word != "waiting":
            return ending
        link.mailbox.listen()
        while True:
            if meanwhile is not None:
                meanwhile()
            left_s = max(until_s - time.monotonic(), 0.0)
            step_s = left_s if meanwhile is None else min(left_s, every_s)
            try:
                return waiter.future.result(None if step_s > threading.TIMEOUT_MAX else step_s)
            except concurrent.futures.TimeoutError:
                if step_s == left_s:
                    _too_late(job, timeout_ms)


def value_of(home: Home, job: Job[Any], ending: Ending) -> Any:
    """The value that a job returned, models rebuilt by the annotation of its handler where that is declared.

    Raises:
        The errors of `Job.result`.
    """
    if ending.word == "done":
        return _restored(home, job, ending.text) if ending.text else None
    what = f"job {job.id} ({job.name})" if job.name else f"job {job.id}"
    if ending.word in ("dead", "malformed"):
        error = text(ending.text) or "its record cannot be read"
        hint = "job.refresh().traceback tells where; `rqj dead revive` runs it again."
        raise JobFailed(f"{what} is dead: {error}", hint=hint, job_id=job.id, error=error)
    if ending.word == "lost":
        hint = "result_ttl= says how long results are kept, and the worker's log why one could not be."
        raise ResultExpired(f"{what} is done, and its result is not kept.", hint=hint, job_id=job.id)
    if ending.word != "unknown":
        how = _HOW.get(ending.word, f"was {ending.word}")
        raise JobCancelled(f"{what} will not return anything: it {how}.", job_id=job.id, word=ending.word)
    if job.outcome is not None:
        hint = (
            "It was deleted, or is no more among the last that were done: result_ttl= keeps results longer."
        )
        raise ResultExpired(f"{what} was enqueued, and nothing of it is left.", hint=hint, job_id=job.id)
    raise JobNotFound(f"no {what} is known.", job_id=job.id)


def _restored(home: Home, job: Job[Any], raw: bytes) -> Any:
    try:
        payload = decode(raw)
        declared = home.declaration(payload.name)
        args = declared.returns.restore(payload)[0] if declared else payload.args
        (value,) = args
    except (Malformed, ValueError) as error:
        raise RqjError(f"what job {job.id} returned cannot be read here: {error}") from error
    return value


def _timeout_ms(timeout: Duration | None) -> int | None:
    return None if timeout is None else max(0, to_ms(timeout, what="timeout", signed=True))


def _too_late(job: Job[Any], timeout_ms: int | None) -> NoReturn:
    raise ResultTimeout(
        f"job {job.id} has not ended within {to_text(timeout_ms or 0)}.",
        hint="It goes on; ask again, or see what it does: job.refresh().",
        job_id=job.id,
    ) from None
