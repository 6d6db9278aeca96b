"""The other half of `holds.py`: what readers, control, workers, handles and errors give."""

import inspect
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, assert_type

import rqlite_jobs
from rqlite_jobs import (
    App,
    AppNotFound,
    BadDuration,
    BadName,
    BadOption,
    BadUrl,
    Bury,
    FormatMismatch,
    Handler,
    Job,
    JobNotFound,
    LockNotFound,
    NotConfirmed,
    PayloadTooLarge,
    QueueNotFound,
    Retry,
    RetryIn,
    RqjError,
    ScriptFailed,
    ServerFull,
    ServerMissing,
    ServerReadOnly,
    Signal,
    Snooze,
    UnknownJob,
    UnknownOption,
    Unreachable,
    UnserializableArguments,
    WrongArguments,
)
from rqlite_jobs.inspector import (
    Inspector,
    LockRow,
    Page,
    PauseRow,
    QueueRow,
    Stats,
    WorkerRow,
    call_text,
    job_of,
    to_json,
)
from rqlite_jobs.testing import FrozenClock
from rqlite_jobs.worker import Worker

app = App("bookstore", url="redis://localhost")
assert_type(rqlite_jobs.__version__, str)

# Readers.

look: Inspector = app.inspect
assert_type(look.job("x"), Job[Any])
assert_type(look.jobs("dead", queue="sales", name="crunch", error="time", limit=10), Page[Job[Any]])
assert_type(look.look(["x", "y"]), tuple[Job[Any], ...])
assert_type(look.dead(), Page[Job[Any]])
assert_type(look.scheduled(cursor="c"), Page[Job[Any]])
assert_type(look.queues(), Page[QueueRow])
assert_type(look.locks(limit=5), Page[LockRow])
assert_type(look.lock("k"), LockRow)
assert_type(look.workers(), Page[WorkerRow])
assert_type(look.stats(), Stats)
assert_type(look.now(), datetime)
assert_type(look.stats().ready, int)
assert_type(look.stats().paused, Mapping[str, PauseRow])
for row in look.queues():
    assert_type(row, QueueRow)
    assert_type(row.waiting_since, datetime | None)
    assert_type(row.pause, PauseRow | None)
assert_type(look.locks().next, str)
assert_type(look.locks().items[0].left_ms, int | None)
assert_type(call_text(look.job("x")), str)
as_data: Any = to_json(look.stats())
made: Callable[..., Job[Any]] = job_of


async def read_it() -> None:
    assert_type(await look.ajob("x"), Job[Any])
    assert_type(await look.ajobs("ready"), Page[Job[Any]])
    assert_type(await look.alook(["x"]), tuple[Job[Any], ...])
    assert_type(await look.adead(), Page[Job[Any]])
    assert_type(await look.ascheduled(), Page[Job[Any]])
    assert_type(await look.aqueues(), Page[QueueRow])
    assert_type(await look.alocks(), Page[LockRow])
    assert_type(await look.alock("k"), LockRow)
    assert_type(await look.aworkers(), Page[WorkerRow])
    assert_type(await look.astats(), Stats)
    assert_type(await look.anow(), datetime)


# Control, what `holds.py` leaves out.

assert_type(app.control.delete(["x"]), dict[str, str])
assert_type(app.control.revive("x"), dict[str, str])
assert_type(app.control.recover(), int)


async def control_it() -> None:
    assert_type(await app.control.acancel("x"), dict[str, str])
    assert_type(await app.control.aretry("x"), dict[str, str])
    assert_type(await app.control.arelease("k"), dict[str, str])
    assert_type(await app.control.apause("mail", for_=60), str)
    assert_type(await app.control.aresume("mail"), str)
    assert_type(await app.control.apurge("mail"), int)
    assert_type(await app.acancel_job("x"), bool)
    assert_type(await app.aresult_of(await app.ajob_by_id("x"), 5), Any)


assert_type(app.cancel_job("x"), bool)
assert_type(app.result_of(app.job_by_id("x"), "5s"), Any)

# A handle, read.

job = look.job("x")
assert_type(job.name, str)
assert_type(job.queue, str)
assert_type(job.state, str)
assert_type(job.crashes, int)
assert_type(job.last_error, str | None)
assert_type(job.traceback, str | None)
assert_type(job.lock_key, str | None)
assert_type(job.enqueued_at, datetime | None)
assert_type(job.started_at, datetime | None)
assert_type(job.finished_at, datetime | None)

# What an app and its handlers tell of themselves.

assert_type(app.namespace, str)
assert_type(app.load_imports(), None)
handler: Handler[..., Any] = app.handler("crunch")
assert_type(handler.fn, Callable[..., Any])
assert_type(handler.is_async, bool)
assert_type(handler.signature, inspect.Signature)
assert_type(app.retry_of(handler), Retry)

# Workers, and clocks.

worker = Worker(app, ["sales"], concurrency=2, burst=True, lease="15s", beat=5, stop_after="30s")
assert_type(worker.run(), None)
assert_type(worker.stop(), None)
clock = FrozenClock(0)
assert_type(clock.advance("2s"), None)
assert_type(clock.now_ms(), int)


async def work() -> None:
    assert_type(await worker.arun(), None)


# What a handler raises, and what is raised at users.


def handle(trouble: int) -> Signal:
    return (RetryIn("30s"), Snooze(60), Bury("why"))[trouble]


errors: list[type[RqjError]] = [AppNotFound, BadUrl, FormatMismatch, NotConfirmed, ServerFull, ServerMissing]
of_types: list[type[TypeError]] = [UnknownOption, UnserializableArguments, WrongArguments]
of_values: list[type[ValueError]] = [BadDuration, BadName, BadOption, BadUrl, PayloadTooLarge]
of_lookups: list[type[LookupError]] = [JobNotFound, LockNotFound, QueueNotFound, UnknownJob]
of_connections: list[type[ConnectionError]] = [Unreachable]

try:
    app.job_by_id("x")
except JobNotFound as not_found:
    assert_type(not_found.job_id, str)
except ScriptFailed as failed:
    assert_type(failed.line, int)
except ServerReadOnly as error:
    assert_type(error.message, str)
    assert_type(error.hint, str)
