"""How runs end, and what becomes of their jobs: every ending, in threads and on the event loop."""

import asyncio
import logging
import random
import threading
from collections.abc import Callable
from typing import Any

import pytest

from rqlite_jobs import App, Bury, Job, Retry, RetryIn, Snooze, until_executed
from rqlite_jobs.testing import FrozenClock
from tests.conftest import app_on
from tests.servers import FakeServer, Server
from tests.worker.inside import KINDS, burst, of_kind

pytestmark = pytest.mark.lanes("fake", "valkey")

TWICE = Retry(2, jitter=False)


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock(1_000_000)


@pytest.fixture(params=KINDS)
def app(server: Server | FakeServer, clock: FrozenClock, request: pytest.FixtureRequest) -> App:
    return of_kind(app_on(server, clock=clock), request.param)


def due_in_s(job: Job[Any], clock: FrozenClock) -> float:
    assert job.run_at is not None
    return job.run_at.timestamp() - clock.now_ms() / 1000


def test_a_failure_waits_for_its_retry_and_dies_after_the_last(app: App, clock: FrozenClock) -> None:
    @app.job(retry=TWICE, lock=until_executed(key="one"))
    def broken(a: int) -> None:
        raise ValueError(f"bad data {a}")

    job = broken.enqueue(7)
    burst(app)
    job = job.refresh()
    assert (job.state, job.attempts, due_in_s(job, clock)) == ("scheduled", 1, 2.0)
    assert broken.enqueue(8).outcome == "duplicate"
    clock.advance("1999ms")
    burst(app)
    assert job.refresh().attempts == 1
    clock.advance("1ms")
    burst(app)
    job = job.refresh()
    assert (job.state, job.attempts, job.last_error) == ("dead", 2, "ValueError('bad data 7')")
    trace = (job.traceback or "").splitlines()
    assert (trace[0], trace[-1]) == ("Traceback (most recent call last):", "ValueError: bad data 7")
    assert __file__ in trace[1], "the first frame shown is the handler's, not one of ours"
    assert broken.enqueue(9).outcome == "enqueued"
    stats = app.inspect.stats()
    assert (stats.failed, stats.died, stats.attempts, stats.locks) == (2, 1, 2, 1)


def test_bury_goes_straight_to_the_dead(app: App) -> None:
    @app.job(retry=Retry(9))
    def hopeless() -> None:
        raise Bury("the customer is gone")

    job = hopeless.enqueue()
    burst(app)
    job = job.refresh()
    assert (job.state, job.attempts, job.last_error) == ("dead", 1, "the customer is gone")


def test_retry_in_waits_as_it_says_and_uses_up_an_attempt(app: App, clock: FrozenClock) -> None:
    @app.job(retry=TWICE)
    def later() -> None:
        raise RetryIn("90s")

    job = later.enqueue()
    burst(app)
    job = job.refresh()
    assert (job.state, job.attempts, due_in_s(job, clock)) == ("scheduled", 1, 90.0)
    clock.advance("90s")
    burst(app)
    assert (job.refresh().state, job.refresh().last_error) == ("dead", "RetryIn('90s')")


def test_snooze_is_no_failure_and_no_attempt(app: App, clock: FrozenClock) -> None:
    starts = []

    @app.job(retry=Retry(1), lock=until_executed(key="one"))
    def wait_for_data() -> None:
        starts.append(clock.now_ms())
        if len(starts) <= 5:
            raise Snooze("10m")

    job = wait_for_data.enqueue()
    for _ in range(5):
        burst(app)
        waiting = job.refresh()
        assert (waiting.state, waiting.attempts, due_in_s(waiting, clock)) == ("scheduled", 0, 600.0)
        assert waiting.last_error is None
        assert wait_for_data.enqueue().outcome == "duplicate"
        clock.advance("10m")
    burst(app)
    assert (job.refresh().state, job.refresh().attempts, len(starts)) == ("done", 1, 6)
    assert app.inspect.stats().failed == 0


class Silent(Exception):
    def __repr__(self) -> str:
        raise RuntimeError("no")


class Exiting(Exception):
    def __repr__(self) -> str:
        raise SystemExit(3)

    __str__ = __repr__


class Huge(Exception):
    def __repr__(self) -> str:
        return "Huge(" + "x" * 3_000_000 + ")"


RAISED: dict[str, tuple[Callable[[], BaseException], str]] = {
    "SystemExit": (lambda: SystemExit(1), "SystemExit(1)"),
    "KeyboardInterrupt": (lambda: KeyboardInterrupt(), "KeyboardInterrupt()"),
    "GeneratorExit": (lambda: GeneratorExit(), "GeneratorExit()"),
    "CancelledError": (lambda: asyncio.CancelledError(), "CancelledError()"),
    "StopIteration": (lambda: StopIteration(), "StopIteration()"),
    "repr raises": (lambda: Silent("x"), "Silent"),
    "repr exits": (lambda: Exiting("x"), "Exiting"),
    "huge": (lambda: Huge(), "Huge(xxx"),
    "group": (lambda: ExceptionGroup("many", [ValueError(1)]), "ExceptionGroup('many', [ValueError(1)])"),
    "surrogate": (lambda: ValueError("\ud800"), "ValueError('\\ud800')"),
    "nul": (lambda: ValueError("a\0b"), "ValueError('a\\x00b')"),
}


@pytest.mark.parametrize("what", RAISED)
def test_whatever_is_raised_is_a_failure_of_the_job_alone(app: App, what: str) -> None:
    make, shown = RAISED[what]

    @app.job(retry=Retry(1))
    def raises() -> None:
        raise make()

    @app.job(retry=Retry(1))
    def fine() -> None: ...

    jobs = [raises.enqueue(), fine.enqueue()]
    burst(app, concurrency=1)
    broken, done = (job.refresh() for job in jobs)
    assert (broken.state, broken.attempts, done.state) == ("dead", 1, "done")
    assert broken.last_error is not None
    assert broken.last_error.startswith(shown)
    assert len(broken.last_error.encode()) <= 4096
    assert broken.traceback


@pytest.mark.parametrize("what", [what for what in RAISED if what != "StopIteration"])
def test_so_it_is_in_an_async_handler(server: Server | FakeServer, what: str) -> None:
    make, shown = RAISED[what]
    app = app_on(server)

    @app.job(retry=Retry(1))
    async def raises() -> None:
        await asyncio.sleep(0)
        raise make()

    @app.job(retry=Retry(1))
    async def fine() -> None: ...

    jobs = [raises.enqueue(), fine.enqueue()]
    burst(app, concurrency=1)
    broken, done = (job.refresh() for job in jobs)
    assert (broken.state, broken.attempts, done.state) == ("dead", 1, "done")
    assert (broken.last_error or "").startswith(shown)


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
def test_a_task_of_a_handler_that_exits_ends_its_job_and_not_the_worker(
    server: Server | FakeServer, kind: type[BaseException]
) -> None:
    app = app_on(server)

    async def exits() -> None:
        raise kind

    @app.job(retry=Retry(1))
    async def spawns() -> None:
        await asyncio.gather(exits(), asyncio.sleep(30))

    @app.job
    async def fine() -> None: ...

    jobs = [spawns.enqueue(), fine.enqueue()]
    burst(app, concurrency=1)
    assert [job.refresh().state for job in jobs] == ["dead", "done"]


def test_errors_that_a_policy_does_not_want_bury_at_once(app: App) -> None:
    @app.job(retry=Retry(9, only=ConnectionError, never=ConnectionRefusedError))
    def picky(error: str) -> None:
        raise {"no": ValueError, "yes": ConnectionError, "never": ConnectionRefusedError}[error]

    jobs = [picky.enqueue(error) for error in ("no", "yes", "never")]
    burst(app)
    assert [job.refresh().state for job in jobs] == ["dead", "scheduled", "dead"]


def test_a_delay_function_that_fails_costs_no_job(app: App, clock: FrozenClock) -> None:
    def delay(attempt: int, error: BaseException | None) -> float:
        raise RuntimeError("a mistake in the policy")

    @app.job(retry=Retry(9, delay=delay))
    def broken() -> None:
        raise ValueError

    job = broken.enqueue()
    burst(app)
    assert due_in_s(job.refresh(), clock) == 2.0


def test_a_policy_given_with_the_call_goes_before_the_declared_one(app: App, clock: FrozenClock) -> None:
    @app.job(retry=Retry(1))
    def broken() -> None:
        raise ValueError

    job = broken.options(retry=Retry(5, delay="7s", jitter=False)).enqueue()
    burst(app)
    assert due_in_s(job.refresh(), clock) == 7.0


def test_jitter_makes_later_never_earlier(app: App, clock: FrozenClock) -> None:
    @app.job(retry=Retry(9, delay="100s"))
    def broken() -> None:
        raise ValueError

    jobs = broken.enqueue_many([()] * 20)
    burst(app)
    delays = [due_in_s(job.refresh(), clock) for job in jobs]
    assert min(delays) >= 100.0
    assert max(delays) <= 125.0
    assert len(set(delays)) > 10


def test_huge_errors_are_stored_bounded(app: App) -> None:
    @app.job(retry=Retry(1))
    def broken(depth: int) -> None:
        if depth:
            broken(depth - 1)
        try:
            raise KeyError("k" * 1_000_000)
        except KeyError as error:
            raise ValueError("x" * 5_000_000) from error

    job = broken.enqueue(300)
    burst(app)
    job = job.refresh()
    assert job.last_error is not None
    assert job.traceback is not None
    assert job.last_error.startswith("ValueError('xxx")
    assert len(job.last_error) <= 4096
    assert len(job.traceback) <= 32 * 1024
    assert job.traceback.splitlines()[-1].startswith("ValueError: xxx")


def test_a_job_nobody_here_knows_is_put_off_longer_and_longer_until_somebody_does(
    app: App, server: Server | FakeServer, clock: FrozenClock, caplog: pytest.LogCaptureFixture
) -> None:
    other = app_on(server, clock=clock)

    @other.job(lock=until_executed(key="one"))
    def newer(a: int) -> None: ...

    job = newer.enqueue(1)
    caplog.set_level(logging.WARNING, "rqlite_jobs")
    for delay_s in (1, 2, 4, 8, 16, 32, 60, 60):
        burst(app)
        waiting = job.refresh()
        assert (waiting.state, waiting.attempts, due_in_s(waiting, clock)) == ("scheduled", 0, delay_s)
        assert newer.enqueue(2).outcome == "duplicate"
        clock.advance(delay_s)
    told = [one.getMessage() for one in caplog.records if job.id in one.getMessage()]
    assert len(told) == 8, "each of the eight workers says so"
    assert "'newer'" in told[0]
    burst(other)
    assert (job.refresh().state, job.refresh().attempts) == ("done", 1)


def test_one_worker_reports_a_name_it_does_not_know_once(
    app: App, server: Server | FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    other = app_on(server)

    @other.job
    def newer() -> None: ...

    newer.enqueue_many([()] * 30)
    caplog.set_level(logging.WARNING, "rqlite_jobs")
    burst(app)
    assert len([one for one in caplog.records if "'newer'" in one.getMessage()]) == 1


def test_a_job_of_another_service_is_put_off_too(app: App) -> None:
    @app.job(remote=True)
    def theirs() -> None: ...

    job = theirs.enqueue()
    burst(app)
    assert job.refresh().state == "scheduled"


def test_malformed_records_are_buried_and_the_next_job_runs(app: App, server: Server | FakeServer) -> None:
    ran = []

    @app.job(lock=until_executed(key="{n}"))
    def fine(n: int) -> None:
        ran.append(n)

    jobs = fine.enqueue_many([(n,) for n in range(9)])
    keys = app.keys
    with server.client() as client:
        good = client.hget(keys.fixed("jobs"), jobs[0].id)
        head = good[: good.rindex(b"\0") + 1]
        planted = {
            0: b"\xff\xfe\0garbage",
            1: b"",
            2: head + b"{not json",
            3: head + b'["fine",[1,2,3]]',
            4: head + b'[["fine"],[1]]',
            5: head + b'["fine",[{"$":"nonsense","v":1}]]',
            6: head,
            7: b"2" + good[1:],
        }
        for n, raw in planted.items():
            client.hset(keys.fixed("jobs"), jobs[n].id, raw)
        burst(app)
        assert ran == [8]
        dead = {raw.decode() for raw in client.lrange(keys.fixed("dead"), 0, -1)}
        assert dead == {jobs[n].id for n in planted}
        kept = {n: client.hget(keys.fixed("jobs"), jobs[n].id) for n in planted}
        assert kept == planted, "what it was can still be looked at"
        reasons = {client.hget(keys.fixed("tries"), id).split(b"\0")[5] for id in dead}
        assert reasons == {b"malformed"}
    assert app.inspect.stats().attempts == 1, "a run that never began is no attempt"


def test_a_payload_too_deep_or_too_strange_is_buried_too(app: App, server: Server | FakeServer) -> None:
    @app.job
    def fine(x: object) -> None: ...

    jobs = fine.enqueue_many([(n,) for n in range(4)])
    with server.client() as client:
        good = client.hget(app.keys.fixed("jobs"), jobs[0].id)
        head = good[: good.rindex(b"\0") + 1]
        deep = b'["fine",[' + b"[" * 100_000 + b"]" * 100_000 + b"]]"
        payloads = [
            deep,
            b'["fine",[1],{},{"r":{"n":0}}]',
            b'["fine",[1],{},{"r":7}]',
            b'["fine",[1e999999]]',
        ]
        for job, payload in zip(jobs, payloads, strict=True):
            client.hset(app.keys.fixed("jobs"), job.id, head + payload)
    burst(app)
    assert {job.refresh().state for job in jobs[:3]} == {"dead"}
    assert jobs[3].refresh().state in ("dead", "done")


def test_random_records_never_stop_a_worker(app: App, server: Server | FakeServer) -> None:
    rng = random.Random(7)
    ran = []

    @app.job
    def fine(n: int) -> None:
        ran.append(n)

    jobs = fine.enqueue_many([(n,) for n in range(120)])
    with server.client() as client:
        for job in jobs[::2]:
            raw = bytearray(client.hget(app.keys.fixed("jobs"), job.id))
            for _ in range(rng.randrange(1, 6)):
                raw[rng.randrange(len(raw))] = rng.randrange(256)
            client.hset(app.keys.fixed("jobs"), job.id, bytes(raw))
    burst(app)
    assert set(ran) >= set(range(1, 120, 2))
    stats = app.inspect.stats()
    assert (stats.ready, stats.running) == (0, 0)
    assert stats.done + stats.dead + stats.scheduled == 120


def test_no_frame_of_a_failed_run_is_kept(app: App) -> None:
    import gc
    import weakref

    class Big: ...

    seen: list[weakref.ref[Big]] = []

    @app.job(retry=Retry(1))
    def broken() -> None:
        big = Big()
        seen.append(weakref.ref(big))
        raise ValueError

    broken.enqueue_many([()] * 3)
    burst(app)
    gc.collect()
    assert [one() for one in seen] == [None] * 3


def test_slots_outlive_everything(app: App) -> None:
    """As many failures of the worst kind as there are slots, several times over."""
    done = threading.Event()

    @app.job(retry=Retry(1))
    def exits() -> None:
        raise SystemExit

    @app.job
    def last() -> None:
        done.set()

    exits.enqueue_many([()] * 12)
    last.enqueue()
    burst(app, concurrency=3)
    assert done.is_set()
