"""The testing kit: a clock that stands still, jobs run here and now, and what was enqueued instead."""

import asyncio
import math
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from rqlite_jobs import App, Retry, RetryIn, Snooze, until_executed
from rqlite_jobs.errors import (
    BadDuration,
    BadOption,
    RqjError,
    Unreachable,
    UnserializableArguments,
    WrongArguments,
)
from rqlite_jobs.testing import FrozenClock, adrain, assert_enqueued, drain
from tests.servers import FakeServer


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock(1000)


@pytest.fixture
def app(clock: FrozenClock) -> App:
    pytest.importorskip("fakeredis", reason="fakeredis is not installed")
    return App("test", url=FakeServer().url, clock=clock)


class TestFrozenClock:
    def test_stands_still(self) -> None:
        clock = FrozenClock(1.5)
        assert (clock.now_ms(), clock.now_ms()) == (1500, 1500)
        assert repr(clock) == "FrozenClock(1.5)"

    def test_moves_when_told(self) -> None:
        clock = FrozenClock()
        clock.advance("2s")
        clock.advance(0.25)
        assert clock.now_ms() == 2250

    def test_never_goes_back(self) -> None:
        clock = FrozenClock(10)
        with pytest.raises(BadDuration):
            clock.advance(-1)
        assert clock.now_ms() == 10_000

    @pytest.mark.parametrize("seconds", [-1, math.nan, math.inf, True, "2s", None, datetime.now(UTC)])
    def test_refuses_what_is_no_time(self, seconds: Any) -> None:
        with pytest.raises(BadOption, match="cannot stand at"):
            FrozenClock(seconds)

    def test_is_the_time_of_its_app(self, app: App, clock: FrozenClock) -> None:
        assert app.inspect.stats().now == datetime.fromtimestamp(1000, UTC)
        clock.advance("1h")
        assert app.inspect.stats().now == datetime.fromtimestamp(4600, UTC)


class TestDrain:
    def test_runs_what_is_ready_in_order_and_in_this_thread(self, app: App) -> None:
        seen: list[tuple[int, int]] = []

        @app.job
        def note(number: int) -> None:
            seen.append((number, threading.get_ident()))

        note.enqueue_many([(number,) for number in range(5)])
        assert drain(app) == 5
        assert seen == [(number, threading.get_ident()) for number in range(5)]
        assert drain(app) == 0

    def test_leaves_what_is_due_later(self, app: App, clock: FrozenClock) -> None:
        @app.job
        def note() -> None: ...

        job = note.options(delay="10s").enqueue()
        clock.advance("9.999s")
        assert drain(app) == 0
        clock.advance("1ms")
        assert drain(app) == 1
        assert job.refresh().state == "done"

    def test_runs_what_its_jobs_enqueue_into_new_queues_too(self, app: App) -> None:
        @app.job
        def parent(left: int) -> None:
            if left:
                parent.options(queue=f"level-{left}").enqueue(left - 1)

        parent.enqueue(5)
        assert drain(app) == 6

    def test_counts_failed_attempts_and_keeps_to_the_policy(self, app: App, clock: FrozenClock) -> None:
        @app.job(retry=Retry(max_attempts=2, delay="3s", jitter=False))
        def bad() -> None:
            raise ValueError("bad data")

        job = bad.enqueue()
        assert (drain(app), job.refresh().state) == (1, "scheduled")
        clock.advance("3s")
        assert (drain(app), job.refresh().state) == (1, "dead")
        assert job.refresh().last_error == "ValueError('bad data')"

    def test_waits_the_same_time_in_every_run_of_a_test(self, app: App) -> None:
        @app.job
        def bad() -> None:
            raise ValueError

        due = set()
        for _ in range(5):
            job = bad.enqueue()
            drain(app)
            due.add(job.refresh().run_at)
            job.cancel()
        assert len(due) == 1

    def test_takes_the_signals_of_a_handler(self, app: App, clock: FrozenClock) -> None:
        raised: list[Exception] = [Snooze("5s"), RetryIn("7s")]

        @app.job
        def signal() -> None:
            if raised:
                raise raised.pop(0)

        job = signal.enqueue()
        for seconds, attempts in [(5, 0), (7, 1)]:
            assert drain(app) == 1
            assert job.refresh().attempts == attempts
            assert drain(app) == 0
            clock.advance(seconds)
        assert drain(app) == 1
        assert (job.refresh().state, job.refresh().attempts) == ("done", 2)

    def test_runs_async_jobs(self, app: App) -> None:
        seen = []

        @app.job
        async def note(number: int) -> None:
            await asyncio.sleep(0)
            seen.append(number)

        @app.job
        def plain(number: int) -> None:
            seen.append(number)

        note.enqueue(1)
        plain.enqueue(2)
        note.enqueue(3)
        assert drain(app) == 3
        assert seen == [1, 2, 3]

    def test_adrain_runs_both_kinds(self, app: App, clock: FrozenClock) -> None:
        seen = []

        @app.job
        async def note(number: int) -> None:
            seen.append((number, asyncio.get_running_loop()))

        @app.job(retry=Retry(2, delay=1, jitter=False))
        def plain(number: int) -> None:
            seen.append((number, asyncio.get_running_loop()))
            raise ValueError

        async def test() -> None:
            await note.aenqueue(1)
            await plain.aenqueue(2)
            assert await adrain(app) == 2
            clock.advance("1s")
            assert await adrain(app) == 1
            loop = asyncio.get_running_loop()
            assert seen == [(1, loop), (2, loop), (2, loop)]

        asyncio.run(test())

    def test_says_what_to_write_inside_a_loop(self, app: App) -> None:
        @app.job
        async def note() -> None: ...

        note.enqueue()

        async def test() -> None:
            with pytest.raises(RqjError, match="await adrain"):
                drain(app)
            assert await adrain(app) == 1

        asyncio.run(test())

    def test_ends_with_a_job_that_never_would(self, app: App) -> None:
        @app.job
        def forever() -> None:
            raise Snooze(0)

        job = forever.enqueue()
        with pytest.raises(RqjError, match="drain ran 50 jobs") as caught:
            drain(app, limit=50)
        assert "'forever'" in str(caught.value)
        assert job.refresh().state == "ready", "what it held is handed back"

    def test_leaves_no_worker_behind(self, app: App) -> None:
        @app.job
        def note() -> None:
            assert app.inspect.stats().workers == 1

        job = note.enqueue()
        drain(app)
        assert job.refresh().state == "done"
        assert app.inspect.stats().workers == 0

    def test_puts_off_what_the_app_does_not_know(self, app: App, clock: FrozenClock) -> None:
        other = App("test", url=app.settings.url, clock=clock)

        @other.job
        def stranger() -> None: ...

        job = stranger.enqueue()
        assert drain(app) == 0
        assert job.refresh().state == "scheduled"
        clock.advance("1s")
        assert drain(other) == 1

    def test_an_outage_is_an_error(self, clock: FrozenClock, tmp_path: Any) -> None:
        app = App("test", url=f"unix://{tmp_path}/nobody", clock=clock)
        with pytest.raises(Unreachable):
            drain(app)


@dataclass
class Address:
    street: str
    number: int


class TestAssertEnqueued:
    def test_finds_by_position_name_and_default(self, app: App) -> None:
        @app.job(queue="sales", lock=until_executed())
        def crunch_sales(book_id: int, full: bool = False) -> None: ...

        job = crunch_sales.enqueue(42)
        assert assert_enqueued(crunch_sales, 42).id == job.id
        assert assert_enqueued(crunch_sales, book_id=42).queue == "sales"
        assert assert_enqueued(crunch_sales, 42, full=False).state == "ready"

    def test_finds_what_is_due_later(self, app: App) -> None:
        @app.job
        def note() -> None: ...

        note.options(delay="1h").enqueue()
        assert assert_enqueued(note).run_at == datetime.fromtimestamp(4600, UTC)

    def test_finds_one_among_many(self, app: App) -> None:
        @app.job
        def note(number: int) -> None: ...

        note.enqueue_many([(number,) for number in range(350)])
        assert assert_enqueued(note, 349).args == (349,)

    def test_finds_models_and_dicts_in_any_order(self, app: App) -> None:
        @app.job
        def ship(to: Address, parts: dict[str, int]) -> None: ...

        ship.enqueue(Address("Quay", 7), {"a": 1, "b": 2})
        assert_enqueued(ship, Address("Quay", 7), {"b": 2, "a": 1})
        with pytest.raises(AssertionError, match="number=7"):
            assert_enqueued(ship, Address("Quay", 8), {"a": 1, "b": 2})

    def test_tells_types_apart(self, app: App) -> None:
        @app.job
        def note(value: object) -> None: ...

        note.enqueue(1)
        for other in (True, 1.0, "1"):
            with pytest.raises(AssertionError, match="value is 1"):
                assert_enqueued(note, other)

    def test_shows_what_was_found_instead(self, app: App, clock: FrozenClock) -> None:
        @app.job
        def send_mail(to: str, subject: str = "hello") -> None: ...

        @app.job
        def other() -> None: ...

        send_mail.enqueue("a@b.c")
        drain(app)
        send_mail.enqueue("x@y.z")
        send_mail.options(delay=5).enqueue("a@b.c", "bye")
        other.enqueue()
        with pytest.raises(AssertionError) as caught:
            assert_enqueued(send_mail, to="a@b.c")
        assert str(caught.value).splitlines() == [
            "no job send_mail(to='a@b.c') waits in the namespace 'test'.",
            "Of 'send_mail' there are:",
            "  ready     send_mail('x@y.z'): to is 'x@y.z'",
            "  scheduled send_mail('a@b.c', 'bye'): subject is 'bye'",
            "  done      send_mail('a@b.c'): it is done and does not wait any more",
            "Of other jobs: 1 other",
        ]

    def test_says_so_when_there_is_nothing(self, app: App) -> None:
        @app.job
        def note() -> None: ...

        with pytest.raises(AssertionError, match=r"^no job note\(\) waits .*\.\nThere is no 'note'\.$"):
            assert_enqueued(note)

    def test_lists_twenty_at_most(self, app: App) -> None:
        @app.job
        def note(number: int) -> None: ...

        note.enqueue_many([(number,) for number in range(1, 31)])
        with pytest.raises(AssertionError, match="and 10 more"):
            assert_enqueued(note, 0)

    def test_refuses_a_call_that_no_job_can_be(self, app: App) -> None:
        @app.job
        def note(number: int) -> None: ...

        note.enqueue(1)
        with pytest.raises(WrongArguments):
            assert_enqueued(note, 1, 2)  # type: ignore[call-arg]
        with pytest.raises(UnserializableArguments):
            assert_enqueued(note, object())  # type: ignore[arg-type]
