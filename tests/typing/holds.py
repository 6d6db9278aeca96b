"""What type checkers must accept, and which types they must find: the signatures that users meet."""

from collections.abc import Callable, Coroutine, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, assert_type

from rqlite_jobs import (
    App,
    AsyncHandler,
    CurrentJob,
    Duration,
    Handler,
    Job,
    JobCancelled,
    JobFailed,
    LockConflict,
    LockPolicy,
    NoCurrentJob,
    Progress,
    ResultExpired,
    ResultTimeout,
    Retry,
    Signature,
    SyncHandler,
    current_job,
    until_executed,
    until_expired,
)
from rqlite_jobs.inspector import ChangeRow, HistoryRow, Page, Reason
from rqlite_jobs.testing import FrozenClock, adrain, assert_enqueued, assert_not_enqueued, drain, isolated
from rqlite_jobs.testing.plugin import Isolate

app = App("bookstore", url="redis://localhost", lease="15s", retry=Retry(5))
assert_type(App(), App)


@app.job
def crunch_sales(book_id: int, *, full: bool = False) -> float:
    return 1.0


@app.job
async def send_mail(to: str) -> bytes:
    return b""


@app.job(queue="sales", retry=Retry(max_attempts=5), lock=until_executed(on_conflict="raise"))
def locked(book_id: int) -> list[int]:
    return [book_id]


@app.job(name="other", lock=until_expired("1h", key="book:{book_id}"))
async def locked_async(book_id: int) -> dict[str, int]:
    return {}


@app.job(expires_in="1h", tags=["night"])
def nightly(book_id: int) -> str:
    return ""


assert_type(nightly.enqueue(1), Job[str])


@app.job(remote=True)
def remote(data: bytes) -> str: ...  # type: ignore[empty-body]


@app.job()
def nothing() -> None: ...


@app.job
def odd(self: int, args: str, kwargs: bytes, delay: float, id: int = 0) -> tuple[int, str]:
    return 1, ""


@app.job
def variadic(*numbers: int, **named: str) -> int:
    return 1


# What the decorator gives.

assert_type(crunch_sales(42, full=True), float)
not_awaited = [send_mail("a@b.c")]
assert_type(not_awaited, list[Coroutine[Any, Any, bytes]])
assert_type(locked(1), list[int])
assert_type(remote.enqueue(b""), Job[str])
assert_type(nothing.enqueue(), Job[None])
sync: Handler[[int], list[int]] = locked
plain: SyncHandler[[int], list[int]] = locked
later: AsyncHandler[[str], bytes] = send_mail
function: Callable[[int], list[int]] = locked
coroutine: Callable[[str], Coroutine[Any, Any, bytes]] = send_mail


async def await_it() -> None:
    assert_type(await send_mail("a@b.c"), bytes)


# Enqueuing.

assert_type(crunch_sales.enqueue(42), Job[float])
assert_type(crunch_sales.enqueue(book_id=42, full=True), Job[float])
assert_type(send_mail.enqueue("a@b.c"), Job[bytes])
assert_type(locked_async.enqueue(1), Job[dict[str, int]])
assert_type(odd.enqueue(self=1, args="", kwargs=b"", delay=1.0), Job[tuple[int, str]])
assert_type(odd.enqueue(1, "", b"", 1.0, id=3), Job[tuple[int, str]])
assert_type(variadic.enqueue(1, 2, 3, a="x", self="y"), Job[int])


async def enqueue_it() -> None:
    assert_type(await crunch_sales.aenqueue(42), Job[float])
    assert_type(await send_mail.aenqueue(to="a@b.c"), Job[bytes])
    assert_type(await crunch_sales.aenqueue_many([(1,)]), list[Job[float]])
    assert_type(await app.aenqueue_many([crunch_sales.s(1)]), list[Job[float]])
    job = await crunch_sales.aenqueue(1)
    assert_type(await job.arefresh(), Job[float])
    assert_type(await job.acancel(), bool)
    assert_type(await job.aresult("5s"), float)
    assert_type(await app.ajob_by_id("x"), Job[Any])


# Results.

assert_type(crunch_sales.enqueue(42).result(), float)
assert_type(crunch_sales.enqueue(42).refresh().result(timeout=timedelta(seconds=5)), float)
assert_type(send_mail.enqueue("a@b.c").result("5s"), bytes)
assert_type(locked_async.enqueue(1).result(5), dict[str, int])
assert_type(remote.enqueue(b"").result(), str)
assert_type(app.job_by_id("x").result(), Any)
errors: list[type[Exception]] = [JobFailed, JobCancelled, ResultExpired, ResultTimeout]


@app.job(result_ttl="1h")
def kept() -> int:
    return 1


@app.job(result_ttl="forever")
async def kept_for_ever() -> str:
    return ""


assert_type(kept.enqueue().result(), int)
assert_type(kept_for_ever.options(result_ttl=0).enqueue().result(), str)
assert_type(kept.options(result_ttl="forever").enqueue(), Job[int])

# The job that runs, and how far it is.


@app.job
def tells() -> str:
    job = current_job()
    assert_type(job, CurrentJob)
    assert_type((job.id, job.name, job.attempt, job.fence), tuple[str, str, int, int])
    assert_type((job.token, job.lost, job.deadline), tuple[str, bool, float | None])
    assert_type(job.progress(0.4, "pages"), None)
    job.progress(1, text="all")
    return job.id


progress = tells.enqueue().refresh().progress
assert_type(progress, Progress | None)
if progress:
    assert_type((progress.value, progress.text, progress.at), tuple[float, str, datetime])
assert_type(tells.enqueue().refresh().result_expires_at, datetime | None)
outside: type[RuntimeError] = NoCurrentJob

# Options.

assert_type(crunch_sales.options(delay="10m", queue="slow").enqueue(42), Job[float])
assert_type(crunch_sales.options(delay=0.5).enqueue(42, full=True), Job[float])
assert_type(send_mail.options(delay=timedelta(hours=1)).enqueue("a@b.c"), Job[bytes])
assert_type(send_mail.options(run_at=datetime(2031, 7, 1, tzinfo=UTC)).enqueue("a@b.c"), Job[bytes])
assert_type(locked.options(lock=None, retry=Retry(1)).options(queue="slow").enqueue(1), Job[list[int]])
assert_type(crunch_sales.options(delay="1s")(42), float)
assert_type(crunch_sales.options(id="x", expires_in="1h", tags=["a"]).enqueue(1), Job[float])
assert_type(crunch_sales.options(tags=("a", "b"), expires_in=60).enqueue(1), Job[float])
same: SyncHandler[[int], list[int]] = locked.options(queue="slow")
async_too: AsyncHandler[[str], bytes] = send_mail.options(queue="slow")

# Many calls.

assert_type(crunch_sales.s(1, full=True), Signature[float])
assert_type(crunch_sales.options(delay="5s").s(2), Signature[float])
assert_type(crunch_sales.enqueue_many([(1,), {"book_id": 2}, crunch_sales.s(3)]), list[Job[float]])
assert_type(crunch_sales.enqueue_many((n,) for n in range(3)), list[Job[float]])
assert_type(app.enqueue_many([crunch_sales.s(1), crunch_sales.options(delay="5s").s(2)]), list[Job[float]])
calls: list[Signature[Any]] = [crunch_sales.s(1), send_mail.s("a@b.c")]
assert_type(app.enqueue_many(calls), list[Job[Any]])
wider: Signature[float | str] = crunch_sales.s(1)

# By name, and by id.

assert_type(app.handler("crunch_sales"), Handler[..., Any])
assert_type(app.handler("crunch_sales").enqueue(42, full=True), Job[Any])
assert_type(app.job_by_id("0VcUihW700GZpYcWDhTS"), Job[Any])

# Control.

assert_type(app.control.cancel("x"), dict[str, str])
assert_type(app.control.retry(one.id for one in app.inspect.jobs()), dict[str, str])
assert_type(app.control.pause("mail", for_="10m", by="ann"), str)
assert_type(app.control.resume("mail"), str)
assert_type(app.control.release("k", force=True), dict[str, str])
assert_type(app.control.purge("mail", by="ann"), int)
assert_type(app.control.delete("x", by="ann"), dict[str, str])
assert_type(app.control.recover(by=None), int)
assert_type(app.inspect.changelog(act="pause", id="x", cursor="", limit=10), Page[ChangeRow])
assert_type([row.lock_keys for row in app.inspect.changelog()], list[tuple[str, ...]])


async def control_it() -> None:
    assert_type(await app.control.arevive(["x"]), dict[str, str])
    assert_type(await app.control.adelete("x"), dict[str, str])
    assert_type(await app.control.arecover(), int)
    assert_type(await app.control.aresume("mail", by="ann"), str)
    assert_type(await app.inspect.achangelog(), Page[ChangeRow])


# Inspection.

assert_type(app.inspect.history("day", last=7), Page[HistoryRow])
assert_type(app.inspect.jobs("dead", tag="night", arg={"book_id": 42}, text="ada"), Page[Job[Any]])
assert_type(app.inspect.jobs().looked, int | None)
assert_type(app.inspect.why("x"), Reason)
assert_type(app.inspect.why("x").until, datetime | None)
assert_type(app.inspect.stats().waiting_since, Mapping[str, datetime])
assert_type([row.done for row in app.inspect.history()], list[int])


async def inspect_it() -> None:
    assert_type(await app.inspect.ahistory(), Page[HistoryRow])
    assert_type(await app.inspect.ajobs(arg={"book_id": 42}), Page[Job[Any]])
    assert_type(await app.inspect.awhy("x"), Reason)


# The handle.

job = crunch_sales.enqueue(42)
assert_type(job.refresh(), Job[float])
assert_type(job.cancel(), bool)
assert_type(job.id, str)
assert_type(job.outcome, str | None)
assert_type(job.holder_id, str | None)
assert_type(job.attempts, int)
assert_type(job.tags, tuple[str, ...])
assert_type(job.run_at, datetime | None)
wider_job: Job[float | str] = job

# Policies.

assert_type(Retry().delay_after(3), float)
assert_type(until_executed(), LockPolicy)
assert_type(until_executed(key=lambda book_id: f"book:{book_id}", ttl="1h", on_conflict="reject"), LockPolicy)
assert_type(until_expired(60, on_conflict="log"), LockPolicy)
duration: Duration = "1h30m"

try:
    locked.enqueue(1)
except LockConflict as conflict:
    assert_type(conflict.holder_id, str)
    assert_type(conflict.lock_key, str)

# The testing kit.

assert_type(assert_enqueued(crunch_sales, 42, full=True), Job[float])
assert_type(assert_enqueued(send_mail, "a@b.c"), Job[bytes])
assert_not_enqueued(crunch_sales)
assert_not_enqueued(crunch_sales, 42)
clock = FrozenClock(0)
with isolated(app, clock=clock) as same_app:
    assert_type(same_app, App)
    assert_type(drain(app), int)


async def in_a_loop() -> None:
    assert_type(await adrain(app, limit=10), int)


def test_with_the_fixture(rqj_isolated: Isolate) -> None:
    assert_type(rqj_isolated(app, clock=FrozenClock(0)), App)
