"""current_job(): what a handler is told of its job, and how far it says it is."""

import asyncio
import math
import threading
from datetime import UTC, datetime
from typing import Any

import pytest

from rqlite_jobs import App, BadOption, Job, NoCurrentJob, Progress, Retry, current_job
from rqlite_jobs.current import CurrentJob
from rqlite_jobs.errors import RqjError
from rqlite_jobs.progress import TEXT_MAX, checked
from rqlite_jobs.testing import FrozenClock, adrain, drain, isolated
from tests.servers import FakeServer

NOON = datetime(1970, 1, 1, 0, 16, 40, tzinfo=UTC)


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock(1000)


@pytest.fixture
def app(clock: FrozenClock) -> App:
    pytest.importorskip("fakeredis", reason="fakeredis is not installed")
    return App("test", url=FakeServer().url, clock=clock)


def test_outside_a_job_there_is_none(app: App) -> None:
    @app.job
    def f() -> None:
        current_job()

    for ask in (current_job, f):
        with pytest.raises(NoCurrentJob, match="no job runs here") as caught:
            ask()
        assert "a plain call of the function is no job" in caught.value.hint.lower()
        assert isinstance(caught.value, RqjError | RuntimeError)


def test_what_a_handler_is_told(app: App, clock: FrozenClock) -> None:
    seen: list[CurrentJob] = []

    @app.job(name="crunch", retry=Retry(max_attempts=3, delay="5s", jitter=False))
    def f() -> None:
        seen.append(current_job())
        assert current_job() == seen[-1]
        assert not current_job().lost
        if len(seen) < 3:
            raise ValueError("again")

    job = f.enqueue()
    for _ in range(3):
        assert drain(app) == 1
        clock.advance("5s")
    assert [(one.id, one.name, one.attempt, one.deadline) for one in seen] == [
        (job.id, "crunch", attempt, None) for attempt in (1, 2, 3)
    ]
    fences = [one.fence for one in seen]
    assert fences == sorted(set(fences))
    assert fences[0] >= 1000 * 1_000_000
    assert all(one.token.startswith(f"{one.fence}-") for one in seen)
    assert repr(seen[0]) == f"CurrentJob(id={job.id!r}, name='crunch', attempt=1)"
    assert all(one.lost for one in seen)  # a run that is over has no lease
    with pytest.raises(NoCurrentJob):
        current_job()


def test_async_handlers_and_their_tasks_have_each_their_own(app: App) -> None:
    seen: dict[str, set[str]] = {"run": set(), "task": set(), "thread": set()}

    @app.job
    async def f(number: int) -> str:
        async def inner() -> str:
            await asyncio.sleep(0)
            return current_job().id

        seen["run"].add(current_job().id)
        seen["task"].add(await asyncio.create_task(inner()))
        seen["thread"].add(await asyncio.to_thread(lambda: current_job().id))
        return current_job().id

    @app.job
    def plain() -> str:
        return current_job().id

    async def main() -> list[Job[str]]:
        jobs = [await f.aenqueue(1), await f.aenqueue(2), await plain.aenqueue()]
        assert await adrain(app) == 3
        with pytest.raises(NoCurrentJob):
            current_job()
        assert [await job.aresult("5s") for job in jobs] == [job.id for job in jobs]
        return jobs

    jobs = asyncio.run(main())
    assert seen == {where: {job.id for job in jobs[:2]} for where in seen}


def test_a_thread_of_the_handlers_own_does_not_know_it(app: App) -> None:
    said: list[str] = []

    @app.job
    def f() -> None:
        def inner() -> None:
            try:
                current_job()
            except NoCurrentJob as error:
                said.append(error.hint)

        thread = threading.Thread(target=inner)
        thread.start()
        thread.join()

    f.enqueue()
    drain(app)
    assert "give it the job" in said[0]


def test_a_job_that_drains_is_itself_again_behind_it(app: App) -> None:
    seen: list[str] = []

    @app.job
    def inner() -> None:
        seen.append(current_job().name)

    @app.job
    def outer() -> None:
        inner.enqueue()
        drain(app)
        seen.append(current_job().name)

    outer.enqueue()
    drain(app)
    assert seen == ["inner", "outer"]


def test_progress_is_shown_while_it_runs(app: App, clock: FrozenClock) -> None:
    seen: list[Progress | None] = []

    @app.job
    def f() -> None:
        job = app.job_by_id(current_job().id)
        seen.append(job.progress)
        current_job().progress(0.4, "pages")
        seen.append(job.refresh().progress)
        clock.advance("2s")
        current_job().progress(1)
        seen.append(job.refresh().progress)

    @app.job
    async def g() -> None:
        current_job().progress(0.25)
        seen.append((await app.ajob_by_id(current_job().id)).progress)

    job = f.enqueue()
    drain(app)
    assert seen[0] is None
    assert seen[1] == Progress(0.4, "pages", NOON)
    assert seen[2] == Progress(1, "", datetime(1970, 1, 1, 0, 16, 42, tzinfo=UTC))
    assert job.refresh().progress is None
    g.enqueue()
    drain(app)
    assert seen[3] is not None
    assert seen[3].value == 0.25


def test_a_run_that_was_given_up_is_told(app: App, clock: FrozenClock) -> None:
    seen: list[bool] = []

    @app.job
    def f() -> None:
        job = current_job()
        if job.attempt > 1:
            return
        clock.advance("1h")
        app.control.recover()
        seen.append(job.lost)  # nobody has said so yet
        job.progress(0.5)
        seen.append(job.lost)
        assert app.job_by_id(job.id).state == "ready"
        assert app.job_by_id(job.id).progress is None

    f.enqueue()
    drain(app)
    assert seen == [False, True]


def test_an_app_that_is_isolated_reports_there(app: App) -> None:
    @app.job
    def f() -> None:
        current_job().progress(0.5)
        seen.append(app.job_by_id(current_job().id).progress)

    seen: list[Any] = []
    with isolated(app, clock=FrozenClock(0)):
        f.enqueue()
        drain(app)
    assert seen[0].at == datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("value", [-0.01, 1.01, math.nan, math.inf, True, "0.5", None, 40, 10**400])
def test_what_is_no_part_is_refused(value: Any) -> None:
    with pytest.raises(BadOption, match="no number from 0 to 1") as caught:
        checked(value, "")
    assert caught.value.option == "value"


def test_what_is_no_text_is_refused_and_a_long_one_is_cut() -> None:
    with pytest.raises(BadOption, match="is an int"):
        checked(0.5, 5)
    assert checked(sum([0.1] * 10) + 1e-12, "x" * 200) == (1.0, "x" * 200)
    assert checked(-1e-12, "é" * 201) == (0.0, "é" * (TEXT_MAX - 3) + "...")
    assert checked(1, "\ud800")[1] == "?"
