"""Results: what is kept and why not, what callers are told, and who waits for whom."""

import asyncio
import enum
import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from rqlite_jobs import (
    App,
    BadDuration,
    Bury,
    Job,
    JobCancelled,
    JobFailed,
    JobNotFound,
    ResultExpired,
    ResultTimeout,
    RqjError,
    until_executed,
)
from rqlite_jobs.config import Settings
from rqlite_jobs.ending import Ending
from rqlite_jobs.models import Unbuilt
from rqlite_jobs.result import value_of
from rqlite_jobs.testing import FrozenClock, adrain, drain, isolated
from rqlite_jobs.waiting import Waiter
from tests.servers import FakeServer
from tests.worker.site import until

DEADLINE = "20s"


class Hue(enum.Enum):
    RED = "red"


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock(1000)


@pytest.fixture
def app(clock: FrozenClock) -> App:
    pytest.importorskip("fakeredis", reason="fakeredis is not installed")
    return App("test", url=FakeServer().url, clock=clock)


@pytest.fixture
def echo(app: App) -> Any:
    @app.job
    def echo(x: Any) -> Any:
        if x == "bad":
            raise Bury("no good")
        return x

    return echo


def waits(app: App, count: int) -> bool:
    with app.link.mailbox._guard:
        return sum(map(len, app.link.mailbox._waiting.values())) == count


@pytest.fixture
def waiting(app: App) -> Iterator[Any]:
    """Starts a thread that waits for a job; gives what it found."""
    threads = []

    def start(job: Job[Any]) -> list[Any]:
        found: list[Any] = []

        def wait() -> None:
            try:
                found.append(job.result(DEADLINE))
            except RqjError as error:
                found.append(error)

        threads.append(threading.Thread(target=wait))
        threads[-1].start()
        until(lambda: app.caller.command("HEXISTS", app.keys.fixed("waiters"), job.id), "it waits")
        return found

    yield start
    for thread in threads:
        thread.join(20)


def joined(found: list[Any]) -> Any:
    until(lambda: found, "it is woken")
    return found[0]


# Who waits is handed it.


def test_a_waiting_caller_is_handed_the_result(app: App, echo: Any, waiting: Any) -> None:
    found = waiting(echo.enqueue((1, "a")))
    drain(app)
    assert joined(found) == (1, "a")
    until(lambda: not app.link.mailbox._listening, "its thread ends")


def test_also_where_it_is_not_kept(app: App, echo: Any, waiting: Any) -> None:
    job = echo.options(result_ttl=0).enqueue(7)
    found = waiting(job)
    drain(app)
    assert joined(found) == 7
    with pytest.raises(ResultExpired):
        job.result(DEADLINE)


@pytest.mark.parametrize("how", ["cancel", "delete"])
def test_a_job_taken_away(app: App, echo: Any, waiting: Any, how: str) -> None:
    job = echo.enqueue(7)
    found = waiting(job)
    app.run(getattr(app.operations, how)([job.id]))
    error = joined(found)
    assert isinstance(error, JobCancelled)
    assert (error.word, error.job_id) == ("cancelled" if how == "cancel" else "deleted", job.id)


def test_a_job_that_dies(app: App, echo: Any, waiting: Any) -> None:
    job = echo.enqueue("bad")
    found = waiting(job)
    drain(app)
    assert isinstance(joined(found), JobFailed)
    with pytest.raises(JobFailed, match="no good"):
        job.result(DEADLINE)


def test_a_job_that_expires(app: App, echo: Any, clock: FrozenClock) -> None:
    job = echo.options(expires_in="1s").enqueue(7)
    clock.advance("2s")
    drain(app)
    with pytest.raises(JobCancelled, match="expired"):
        job.result(DEADLINE)


def test_many_wait_for_one_job_and_for_others(app: App, echo: Any) -> None:
    async def main() -> None:
        jobs = [await echo.aenqueue(number) for number in range(20)]
        tasks = [asyncio.create_task(job.aresult(DEADLINE)) for job in [*jobs, *jobs]]
        while not waits(app, 40):
            await asyncio.sleep(0.001)
        await adrain(app)
        assert await asyncio.gather(*tasks) == [*range(20), *range(20)]

    asyncio.run(main())


def test_a_caller_that_gives_up_is_forgotten(app: App, echo: Any) -> None:
    job = echo.enqueue(7)
    with pytest.raises(ResultTimeout, match="within 10ms") as caught:
        job.result(0.01)
    assert isinstance(caught.value, TimeoutError)
    with pytest.raises(ResultTimeout):
        job.result(0)

    assert waits(app, 0)
    drain(app)
    assert job.result(DEADLINE) == 7


def test_a_cancelled_caller_is_forgotten(real_app: App) -> None:
    """On a real server: a request to a fake one takes no cancellation while it is on its way."""

    @real_app.job
    def f() -> int:
        return 7

    async def main() -> None:
        job = await f.aenqueue()
        task = asyncio.create_task(job.aresult())
        while not waits(real_app, 1):
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert waits(real_app, 0)


def test_a_told_end_of_an_earlier_job_is_not_that_of_a_later_one(app: App, echo: Any, waiting: Any) -> None:
    first = echo.options(id="x").enqueue(1)
    with pytest.raises(ResultTimeout):
        first.result(0.01)
    until(lambda: not app.link.mailbox._listening, "nobody listens")
    assert first.cancel()
    found = waiting(echo.options(id="x").enqueue(2))
    drain(app)
    assert joined(found) == 2


def test_each_is_told_the_end_of_the_job_that_it_waits_for(app: App, echo: Any, waiting: Any) -> None:
    """Also where the first end is still on its way when somebody waits for the second job of that id."""
    mailbox, go_on = app.link.mailbox, threading.Event()
    take = mailbox._take

    def late(process: str) -> bool:
        go_on.wait(20)
        return take(process)

    mailbox._take = late  # type: ignore[method-assign]
    first = echo.options(id="x").enqueue(1)
    told = waiting(first), waiting(first)
    until(lambda: app.caller.command("HGET", app.keys.fixed("waiters"), "x").endswith(b"/2"), "both wait")
    assert first.cancel()
    later = waiting(echo.options(id="x").enqueue(2))
    go_on.set()
    assert [joined(one).word for one in told] == ["cancelled"] * 2
    drain(app)
    assert joined(later) == 2


def test_who_waits_longer_is_told_with_the_last_of_a_process(app: App, echo: Any, waiting: Any) -> None:
    job = echo.enqueue(3)
    told = [waiting(job) for _ in range(3)]
    drain(app)
    assert [joined(one) for one in told] == [3, 3, 3]


def test_a_waiter_is_told_once(app: App) -> None:
    waiter = Waiter("p", 1)
    waiter.tell(Ending("done", b""))
    waiter.tell(Ending("dead", b""))
    assert waiter.future.result(0).word == "done"


def test_no_timeout_that_is_none(echo: Any) -> None:
    with pytest.raises(BadDuration, match="timeout"):
        echo.enqueue(1).result("soon")


# Asked later.


def test_none_is_none_and_what_is_lost_is_an_error(app: App, echo: Any) -> None:
    nothing, kept, lost = echo.enqueue(None), echo.enqueue(0), echo.enqueue(1)
    drain(app)
    assert (nothing.result(DEADLINE), kept.result(DEADLINE), lost.result(DEADLINE)) == (None, 0, 1)
    app.run(app.operations.delete([lost.id]))
    with pytest.raises(ResultExpired, match="nothing of it is left"):
        lost.result(DEADLINE)


def test_an_id_that_never_was(app: App) -> None:
    with pytest.raises(JobNotFound):
        Job("nobody", _app=app).result()
    with pytest.raises(JobNotFound):
        asyncio.run(Job[int]("nobody", _app=app).aresult())


def test_a_duplicate_waits_for_the_holder(app: App) -> None:
    @app.job(lock=until_executed())
    def one(x: int) -> int:
        return x

    first, second = one.enqueue(5), one.enqueue(5)
    assert second.outcome == "duplicate"
    drain(app)
    assert (first.result(DEADLINE), second.result(DEADLINE)) == (5, 5)


def test_in_a_namespace_of_its_own(app: App, echo: Any) -> None:
    with isolated(app):
        job = echo.enqueue(3)
        drain(app)
        assert job.result(DEADLINE) == 3


# How long.


@pytest.mark.parametrize(
    ("setting", "declared", "option", "expected"),
    [
        (None, None, None, None), ("1h", None, None, 3_600_000), ("forever", "2s", None, 2000), ("0", "2s", 0, 0),
        (None, 0, "forever", -1), (None, "forever", None, -1), (None, None, 1.5, 1500), ("forever", None, None, -1),
    ],
)  # fmt: skip
def test_the_call_goes_before_the_declaration_before_the_settings(
    setting: Any, declared: Any, option: Any, expected: int | None
) -> None:
    given = {} if setting is None else {"result_ttl": setting}
    app = App("test", url=FakeServer().url, clock=FrozenClock(1), **given)

    @app.job(result_ttl=declared)
    def f() -> int:
        return 1

    f.options(result_ttl=option).enqueue()
    drain(app)
    client = app.caller
    keys = app.keys
    score = client.command("ZRANGE", keys.fixed("kept"), 0, -1, "WITHSCORES")
    found = {None: [], 0: [], -1: [b"inf"]}.get(expected, [b"%d" % (1000 + (expected or 0))])
    assert score[1:] == found
    assert client.command("HLEN", keys.fixed("results")) == (expected != 0)


@pytest.mark.parametrize("ttl", [-1, "soon", True, float("nan"), "for ever"])
def test_a_result_ttl_that_is_none(app: App, echo: Any, ttl: Any) -> None:
    with pytest.raises(BadDuration):
        echo.options(result_ttl=ttl)
    with pytest.raises(BadDuration):
        app.job(name="f", result_ttl=ttl)(lambda: None)
    with pytest.raises((BadDuration, RqjError)):
        Settings.load({"result_ttl": ttl}, {})


def test_an_option_travels_and_leaves_the_others(echo: Any) -> None:
    made = echo.options(result_ttl="1s").options(tags=["a"], result_ttl="forever").prepare((1,), {})
    assert made.payload == b'["echo",[1],{},{"g":["a"],"t":-1}]'
    assert echo.prepare((1,), {}).payload == b'["echo",[1]]'


# What cannot be kept.


@pytest.mark.parametrize("ttl", [None, "forever"])
def test_a_job_whose_result_cannot_be_kept_is_done(
    clock: FrozenClock, ttl: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    app = App("test", url=FakeServer().url, clock=clock, result_max=100)

    @app.job(result_ttl=ttl)
    def large() -> str:
        return "x" * 200

    @app.job(result_ttl=ttl)
    def strange() -> object:
        return object()

    @app.job(result_ttl=ttl)
    def unannotated():  # type: ignore[no-untyped-def]
        return Hue.RED

    jobs = [large.enqueue(), strange.enqueue(), unannotated.enqueue()]
    with caplog.at_level(logging.WARNING, "rqlite_jobs.worker"):
        assert drain(app) == 3
    for job, why in zip(
        jobs, ("it takes 214 bytes, and result_max is 100", "object", "no annotation"), strict=True
    ):
        (line,) = [one.getMessage() for one in caplog.records if job.id in one.getMessage()]
        assert "is done, and its result is not kept" in line
        assert why in line
        assert "\n" not in line
        assert job.refresh().state == "done"
        with pytest.raises(ResultExpired, match="not kept"):
            job.result(DEADLINE)


def test_a_model_comes_back_where_the_job_is_declared(app: App) -> None:
    @app.job
    async def hue() -> list[Hue]:
        return [Hue.RED]

    job = hue.enqueue()
    drain(app)
    assert job.result(DEADLINE) == [Hue.RED]
    other = App("test", url=app.settings.url)
    (found,) = other.job_by_id(job.id).result(DEADLINE)
    assert isinstance(found, Unbuilt)

    @other.job(name="hue")
    def changed() -> int: ...  # type: ignore[empty-body]

    with pytest.raises(RqjError, match="the result of job 'hue'"):
        other.job_by_id(job.id).result(DEADLINE)


@pytest.mark.parametrize("raw", [b"mine", b'["f"]', b'["f",[1,2]]'])
def test_a_result_that_is_none_of_ours(app: App, raw: bytes) -> None:
    with pytest.raises(RqjError, match="cannot be read here"):
        value_of(app, Job("a", _app=app), Ending("done", raw))


def test_a_record_that_is_none_of_ours(app: App) -> None:
    with pytest.raises(JobFailed, match="cannot be read"):
        value_of(app, Job("a", _app=app), Ending("malformed", b""))
