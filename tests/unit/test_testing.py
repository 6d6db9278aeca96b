"""The testing kit: a clock that stands still, jobs run here and now, and what was enqueued instead."""

import asyncio
import contextlib
import math
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import fakeredis
import pytest

import rqlite_jobs.address
from rqlite_jobs import App, Retry, RetryIn, Snooze, Worker, until_executed
from rqlite_jobs.errors import (
    BadDuration,
    BadOption,
    RqjError,
    Unreachable,
    UnserializableArguments,
    WrongArguments,
)
from rqlite_jobs.testing import FrozenClock, adrain, assert_enqueued, assert_not_enqueued, drain, isolated
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

    @pytest.mark.parametrize("kind", ["plain", "async"])
    @pytest.mark.parametrize("way", ["drain", "adrain"])
    @pytest.mark.parametrize("end", [pytest.fail.Exception, pytest.skip.Exception, KeyboardInterrupt])
    def test_what_ends_a_test_ends_it_from_within_a_job(
        self, app: App, kind: str, way: str, end: type[BaseException]
    ) -> None:
        def plain() -> None:
            raise end("not this one")

        async def awaiting() -> None:
            raise end("not this one")

        job = app.job(name="ending")(plain if kind == "plain" else awaiting).enqueue()
        with pytest.raises(end, match="not this one"):
            drain(app) if way == "drain" else asyncio.run(adrain(app))
        assert (job.refresh().state, job.refresh().attempts) == ("ready", 0), "it is handed back"
        assert app.inspect.stats().workers == 0

    @pytest.mark.parametrize("error", [AssertionError, SystemExit, asyncio.CancelledError])
    def test_what_a_worker_takes_for_a_failure_is_one_here(
        self, app: App, error: type[BaseException]
    ) -> None:
        @app.job(retry=Retry(1))
        def bad() -> None:
            raise error

        job = bad.enqueue()
        assert (drain(app), job.refresh().state) == (1, "dead")

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


class TestAssertNotEnqueued:
    def test_passes_where_no_such_job_waits(self, app: App) -> None:
        @app.job
        def send_mail(to: str, subject: str = "hello") -> None: ...

        @app.job
        def other() -> None: ...

        assert_not_enqueued(send_mail)
        assert_not_enqueued(send_mail, "a@b.c")
        other.enqueue()
        send_mail.enqueue("a@b.c")
        drain(app)
        send_mail.enqueue("a@b.c", "bye")
        assert_not_enqueued(send_mail, "a@b.c")
        assert_not_enqueued(send_mail, to="x@y.z", subject="bye")

    def test_shows_those_that_wait(self, app: App) -> None:
        @app.job(queue="mail")
        def send_mail(to: str, subject: str = "hello") -> None: ...

        send_mail.enqueue("a@b.c")
        send_mail.options(delay=5).enqueue(to="x@y.z")
        with pytest.raises(AssertionError) as caught:
            assert_not_enqueued(send_mail, "a@b.c", subject="hello")
        assert str(caught.value).splitlines() == [
            "no job send_mail('a@b.c', subject='hello') should wait in the namespace 'test', and one waits:",
            "  ready     send_mail('a@b.c') in queue mail",
        ]
        with pytest.raises(AssertionError) as caught:
            assert_not_enqueued(send_mail)
        assert str(caught.value).splitlines() == [
            "no job 'send_mail' should wait in the namespace 'test', and 2 wait:",
            "  ready     send_mail('a@b.c') in queue mail",
            "  scheduled send_mail(to='x@y.z') in queue mail",
        ]

    def test_lists_twenty_at_most(self, app: App) -> None:
        @app.job
        def note(number: int) -> None: ...

        note.enqueue_many([(number,) for number in range(30)])
        with pytest.raises(AssertionError, match="and 10 more"):
            assert_not_enqueued(note)

    def test_refuses_a_call_that_no_job_can_be(self, app: App) -> None:
        @app.job
        def note(number: int) -> None: ...

        with pytest.raises(WrongArguments):
            assert_not_enqueued(note, 1, 2)  # type: ignore[call-overload]


class TestIsolated:
    def test_an_app_with_its_handlers_goes_there_and_back(self, app: App) -> None:
        @app.job(queue="sales", retry=Retry(5), lock=until_executed())
        def crunch(book_id: int) -> None: ...

        held = crunch.enqueue(1)
        link, url = app.link, app.settings.url
        clock = FrozenClock(0)
        with isolated(app, clock=clock) as same:
            assert same is app
            assert app.clock is clock
            assert (app.namespace, app.settings.url) != ("test", url)
            assert app.inspect.stats().enqueued == 0
            job = crunch.enqueue(1)
            assert (job.outcome, job.queue) == ("enqueued", "sales")
            assert asyncio.run(crunch.aenqueue(1)).outcome == "duplicate"
            assert assert_enqueued(crunch, 1).id == job.id
            assert drain(app) == 1
            assert job.refresh().state == "done"
            crunch.options(delay="5s").enqueue(2)
            clock.advance("5s")
            assert drain(app) == 1
        assert app.link is link
        assert app.inspect.stats().enqueued == 1
        assert held.refresh().state == "ready"
        assert crunch.enqueue(1).outcome == "duplicate"

    def test_its_other_settings_stay(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("RQJ_URL", "redis://nowhere.invalid")
        app = App("shop", url="redis://nowhere.invalid", retry=Retry(7), default_queue="mail")
        app.set_flags(url="redis://nowhere.invalid", concurrency=3)
        with isolated(app):
            assert app.job(name="note")(lambda: None).enqueue().queue == "mail"
            assert (app.settings.retry, app.settings.concurrency, app.namespace) == (Retry(7), 3, "shop")
        assert app.settings.url == "redis://nowhere.invalid"

    @pytest.mark.parametrize("client", [fakeredis.FakeRedis, fakeredis.FakeAsyncRedis])
    def test_an_app_of_a_client(self, client: Any) -> None:
        app = App("shop", redis=client())
        note = app.job(name="note")(lambda: None)
        note.enqueue()
        with isolated(app):
            assert app.inspect.stats().ready == 0
        assert app.inspect.stats().ready == 1

    def test_each_is_empty(self, app: App) -> None:
        note = app.job(name="note")(lambda: None)
        for _ in range(2):
            with isolated(app):
                assert_not_enqueued(note)
                note.enqueue()
        assert [name for name in rqlite_jobs.address._fakes if name.startswith("isolated")] == [], (
            "nothing is kept"
        )

    def test_nested_ones_and_exceptions(self, app: App) -> None:
        note = app.job(name="note")(lambda number: None)
        note.enqueue(0)
        outer = FrozenClock(0)
        with isolated(app, clock=outer):
            note.enqueue(1)
            with contextlib.suppress(ZeroDivisionError), isolated(app):
                assert app.clock is outer, "its clock is that of the one around it"
                note.enqueue(2)
                assert_enqueued(note, 2)
                assert_not_enqueued(note, 1)
                raise ZeroDivisionError
            assert_enqueued(note, 1)
            assert_not_enqueued(note, 2)
        assert_enqueued(note, 0)
        assert_not_enqueued(note, 1)

    def test_two_apps_at_once(self, app: App) -> None:
        other = App("test", url=app.settings.url)
        note = app.job(name="note")(lambda: None)
        with isolated(app), isolated(other):
            note.enqueue()
            assert (app.inspect.stats().ready, other.inspect.stats().ready) == (1, 0)

    def test_flags_within_do_not_lead_out(self, app: App) -> None:
        note = app.job(name="note")(lambda: None)
        link = app.link
        with isolated(app):
            note.enqueue()
            app.set_flags(namespace=None, concurrency=3)  # as a command does that names this app
            assert app.settings.concurrency == 3
            assert_enqueued(note)
            with isolated(app):
                assert_not_enqueued(note)
            assert_enqueued(note)
        assert app.link is link

    def test_other_threads_are_led_there_too(self, app: App) -> None:
        note = app.job(name="note")(lambda: None)
        with isolated(app):
            thread = threading.Thread(target=note.enqueue)
            thread.start()
            thread.join()
            assert_enqueued(note)
        assert_not_enqueued(note)

    def test_threads_that_isolate_the_same_app_do_not_meet(self, app: App) -> None:
        note = app.job(name="note")(lambda number: None)
        link = app.link
        step = threading.Barrier(2, timeout=20)
        found: list[tuple[int, int]] = []

        def first() -> None:
            with isolated(app):
                step.wait()  # both are in
                note.enqueue(1)
                step.wait()  # both have enqueued
                found.append((1, app.inspect.stats().ready))
            step.wait()  # this one is out

        def second() -> None:
            with isolated(app):
                step.wait()
                note.enqueue(2)
                step.wait()
                step.wait()
                note.enqueue(3)
                found.append((2, app.inspect.stats().ready))

        threads = [threading.Thread(target=act) for act in (first, second)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [(1, 1), (2, 2)]
        assert app.link is link
        assert app.inspect.stats().enqueued == 0

    def test_tasks_that_isolate_the_same_app_do_not_meet(self, app: App) -> None:
        @app.job
        async def note(number: int) -> None: ...

        async def one(number: int) -> int:
            with isolated(app):
                for _ in range(number):
                    await note.aenqueue(number)
                    await asyncio.sleep(0)
                return await adrain(app)

        async def test() -> list[int]:
            return await asyncio.gather(*(one(number) for number in range(1, 6)))

        assert asyncio.run(test()) == [1, 2, 3, 4, 5]
        assert app.inspect.stats().enqueued == 0

    def test_a_worker_that_runs_within(self, app: App) -> None:
        note = app.job(name="note")(lambda: None)
        with isolated(app):
            job = note.enqueue()
            Worker(app, burst=True, concurrency=2).run()
            assert job.refresh().state == "done"
        assert app.inspect.stats().enqueued == 0
