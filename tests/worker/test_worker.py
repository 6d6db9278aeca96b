"""A worker at work: which queues it serves, how it ends, what it hands back, and what it does to its neighbours."""

import asyncio
import logging
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from rqlite_jobs import App, Retry
from rqlite_jobs.errors import BadName, BadOption, UnknownOption
from rqlite_jobs.testing import FrozenClock
from rqlite_jobs.worker import Worker
from rqlite_jobs.worker.child import Child
from tests.conftest import app_on
from tests.servers import FakeServer, Server
from tests.worker.inside import KINDS, burst, of_kind, working
from tests.worker.site import until


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def app(real_server: Server, kind: str) -> App:
    return of_kind(app_on(real_server), kind)


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Opened at the end of the test, so that no handler waits for ever."""
    made = threading.Event()
    yield made
    made.set()


def ready_ids(app: App, server: Server | FakeServer, queue: str = "default") -> list[str]:
    """The ids in a ready list, the next to run first."""
    with server.client() as client:
        return [raw.decode() for raw in client.lrange(app.keys.prefix("ready") + f"{queue}:0", 0, -1)][::-1]


# On every lane.


def test_jobs_run_on_every_lane(server: Server | FakeServer, kind: str) -> None:
    app = of_kind(app_on(server), kind)
    ran = []

    @app.job
    def add(n: int) -> None:
        ran.append(n)

    with working(app, concurrency=3):
        add.enqueue_many([(n,) for n in range(50)])
        add.options(delay="50ms").enqueue(50)
        until(lambda: app.inspect.stats().done == 51, "all are done")
    assert sorted(ran) == list(range(51))
    assert app.inspect.stats().workers == 0


def test_async_and_plain_jobs_in_one_worker(server: Server | FakeServer) -> None:
    app = app_on(server)
    met = threading.Event()
    loops: set[Any] = set()
    arrived = 0

    @app.job
    def plain() -> None:
        assert met.wait(10), "the loop went on meanwhile"

    @app.job
    async def meets() -> None:
        nonlocal arrived
        loops.add(asyncio.get_running_loop())
        arrived += 1
        while arrived < 3:
            await asyncio.sleep(0)
        met.set()

    jobs = [plain.enqueue(), meets.enqueue(), meets.enqueue(), meets.enqueue()]
    burst(app, concurrency=4)
    assert [job.refresh().state for job in jobs] == ["done"] * 4
    assert len(loops) == 1


# Bursts.


def test_a_burst_ends_when_nothing_is_ready_or_due(app: App) -> None:
    ran = []

    @app.job
    def chain(n: int) -> None:
        ran.append(n)
        if n:
            chain.enqueue(n - 1)
            chain.options(delay="1h").enqueue(0)

    chain.enqueue(20)
    burst(app, concurrency=5)
    assert ran == list(range(20, -1, -1))
    stats = app.inspect.stats()
    assert (stats.ready, stats.running, stats.scheduled, stats.workers) == (0, 0, 20, 0)


def test_a_burst_over_nothing_ends_at_once(app: App) -> None:
    began_s = time.monotonic()
    burst(app)
    assert time.monotonic() - began_s < 2


def test_a_burst_leaves_retries_that_are_not_due(app: App) -> None:
    @app.job(retry=Retry(2))
    def broken() -> None:
        raise ValueError

    job = broken.enqueue()
    burst(app)
    assert (job.refresh().state, job.refresh().attempts) == ("scheduled", 1)


def test_a_burst_ends_while_one_slot_or_another_asks_all_the_time(
    real_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow server, and a job that is due in a moment which does not come: the slots ask in turn, without a gap."""
    app = app_on(real_server, clock=FrozenClock(1_000_000))
    asks = threading.Condition()
    asked = 0
    call_server = Child._call

    def slow(child: Child, call: Any) -> Any:
        nonlocal asked
        turned = call_server(child, call)
        if call.verb == "turn":
            with asks:
                asked += 1
                mine = asked
                asks.notify_all()
                asks.wait_for(lambda: asked > mine, 1)  # answered once somebody else has asked
        return turned

    @app.job
    def soon() -> None: ...

    monkeypatch.setattr(Child, "_call", slow)
    soon.options(delay="1ms").enqueue()
    worker = Worker(app, burst=True, concurrency=4)
    thread = threading.Thread(target=worker.run)
    thread.start()
    thread.join(10)
    ended = not thread.is_alive()
    worker.stop()
    thread.join()
    assert ended
    assert app.inspect.stats().scheduled == 1


# Queues.


def test_queues_are_served_in_their_order(app: App) -> None:
    ran = []

    @app.job
    def note(n: int) -> None:
        ran.append(n)

    for n, queue in enumerate(["low", "mid", "high"] * 3):
        note.options(queue=queue).enqueue(n)
    note.options(queue="other").enqueue(99)
    burst(app, ["high", "mid", "low"], concurrency=1)
    assert ran == [2, 5, 8, 1, 4, 7, 0, 3, 6]
    assert app.inspect.stats().ready == 1


def test_without_names_it_serves_those_of_its_jobs_and_those_that_exist(
    real_server: Server, app: App
) -> None:
    @app.job(queue="mail")
    def mail() -> None: ...

    @app.job
    def note() -> None: ...

    note.options(queue="made.by.hand").enqueue()
    with working(app):
        (row,) = app.inspect.workers()
        assert row.queues == ("default", "mail")
        assert row.all_queues
        mail.enqueue()
        until(lambda: app.inspect.stats().done == 2, "both are done")


def test_a_queue_that_comes_up_later_is_served_within_a_beat(app: App) -> None:
    @app.job
    def note() -> None: ...

    with working(app, lease="1s", beat="300ms"):
        began_s = time.monotonic()
        note.options(queue="later").enqueue()
        until(lambda: app.inspect.stats().done == 1, "it is done")
        # A beat, and until the listener has come round with the new queue in its list.
        assert time.monotonic() - began_s < 0.3 + 0.5


def test_named_queues_are_all_it_serves(app: App) -> None:
    @app.job
    def note() -> None: ...

    with working(app, ["a"], lease="1s", beat="50ms"):
        other = note.options(queue="b").enqueue()
        note.options(queue="a").enqueue()
        until(lambda: app.inspect.stats().done == 1, "one is done")
        assert app.inspect.workers().items[0].queues == ("a",)
    assert other.refresh().state == "ready"


def test_wrong_arguments_are_refused_before_anything_is_asked() -> None:
    app = App("test", url="redis://nowhere:1")
    with pytest.raises(BadName):
        Worker(app, ["no spaces"])
    with pytest.raises(BadOption):
        Worker(app, concurrency=0)
    with pytest.raises(BadOption):
        Worker(app, lease="1s", beat="2s")
    with pytest.raises(ValueError, match="duration"):
        Worker(app, stop_after="soon")


def test_an_unknown_argument_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownOption, match="no argument 'leese'") as caught:
        Worker(App("test", url="fake://nowhere"), leese="2s")  # type: ignore[arg-type]
    assert caught.value.hint == "Did you mean 'lease'?"


def test_no_server_at_the_start_is_an_error(kind: str) -> None:
    app = of_kind(App("test", url="redis://127.0.0.1:1"), kind)
    with pytest.raises(ConnectionError):
        Worker(app).run()


# Stopping.


def test_a_stop_lets_running_jobs_finish_and_starts_no_other(app: App, gate: threading.Event) -> None:
    started = threading.Event()

    @app.job
    def wait() -> None:
        started.set()
        assert gate.wait(10)

    first, second = wait.enqueue(), wait.enqueue()
    with working(app, concurrency=1, stop_after="10s") as worker:
        assert started.wait(10)
        worker.stop()
        assert first.refresh().state == "running"
        gate.set()
    assert (first.refresh().state, second.refresh().state) == ("done", "ready")
    assert not worker.abandoned
    assert len(app.inspect.workers()) == 0


def test_an_idle_worker_stops_at_once(app: App) -> None:
    with working(app, concurrency=5) as worker:
        until(lambda: worker._child and not worker._child.wait(0), "it runs")
        began_s = time.monotonic()
    assert time.monotonic() - began_s < 1


def test_a_busy_one_stops_as_soon_as_its_job_has_ended(app: App, gate: threading.Event) -> None:
    started = threading.Event()

    @app.job
    def wait() -> None:
        started.set()
        assert gate.wait(10)

    wait.enqueue()
    with working(app, concurrency=1, stop_after="10s") as worker:
        assert started.wait(10)
        worker.stop()
        began_s = time.monotonic()
        gate.set()
    assert time.monotonic() - began_s < 1


@pytest.mark.parametrize("twice", [False, True], ids=["deadline", "second stop"])
def test_what_is_not_done_goes_back_uncounted_to_the_head(
    app: App, real_server: Server, gate: threading.Event, twice: bool
) -> None:
    started = threading.Event()

    @app.job
    def wait(n: int) -> None:
        if n == 0:
            started.set()
            gate.wait(10)

    jobs = wait.enqueue_many([(n,) for n in range(3)])
    with working(app, concurrency=1, stop_after="30s" if twice else "50ms") as worker:
        assert started.wait(10)
        began_s = time.monotonic()
        worker.stop()
        if twice:
            worker.stop()
    assert time.monotonic() - began_s < 3
    assert ready_ids(app, real_server) == [job.id for job in jobs]
    stats = app.inspect.stats()
    assert (stats.attempts, stats.crashed, stats.failed, stats.running, stats.workers) == (0, 0, 0, 0, 0)
    assert jobs[0].refresh().attempts == 0
    gate.set()
    burst(app)
    assert (jobs[0].refresh().state, jobs[0].refresh().attempts) == ("done", 1)


def test_the_same_for_an_async_job_which_is_cancelled(real_server: Server) -> None:
    app = app_on(real_server)
    events: list[str] = []
    started = threading.Event()

    @app.job
    async def wait() -> None:
        if events:
            return
        started.set()
        try:
            await asyncio.sleep(1000)
        finally:
            events.append("cleaned up")

    job = wait.enqueue()
    with working(app, stop_after="50ms") as worker:
        assert started.wait(10)
        worker.stop()
    assert events == ["cleaned up"]
    assert not worker.abandoned
    assert (job.refresh().state, job.refresh().attempts) == ("ready", 0)
    burst(app)
    assert (job.refresh().state, job.refresh().attempts) == ("done", 1)


def test_a_thread_that_does_not_end_is_told_of(real_server: Server, gate: threading.Event) -> None:
    app = app_on(real_server)
    started = threading.Event()

    @app.job
    def wait() -> None:
        started.set()
        gate.wait(10)

    wait.enqueue()
    with working(app, stop_after="0s") as worker:
        assert started.wait(10)
    assert worker.abandoned


def test_a_stop_before_the_run_ends_it_at_once(app: App) -> None:
    @app.job
    def note() -> None: ...

    job = note.enqueue()
    worker = Worker(app)
    worker.stop()
    worker.run()
    assert job.refresh().state == "ready"


def test_quiet_claims_nothing_more_and_stays(app: App, gate: threading.Event) -> None:
    started = threading.Event()

    @app.job
    def wait() -> None:
        started.set()
        assert gate.wait(10)

    first = wait.enqueue()
    with working(app, concurrency=2, lease="1s", beat="50ms") as worker:
        assert started.wait(10)
        assert worker._child is not None
        worker._child.quiet()
        second = wait.enqueue()
        gate.set()
        until(lambda: first.refresh().state == "done", "what runs is finished and settled")
        lease = app.inspect.workers().items[0].lease_ends_at
        until(lambda: app.inspect.workers().items[0].lease_ends_at != lease, "it goes on beating")
        assert second.refresh().state == "ready"
    assert second.refresh().state == "ready"


def test_signals_in_the_main_thread(app: App) -> None:
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGTSTP)
    before = [signal.getsignal(number) for number in numbers]
    seen: list[Any] = []

    @app.job
    def look() -> None:
        seen.extend(signal.getsignal(number) for number in numbers)

    look.enqueue()
    burst(app)
    assert all(one not in before for one in seen)
    assert [signal.getsignal(number) for number in numbers] == before
    seen.clear()
    look.enqueue()
    with working(app):
        until(lambda: seen, "it ran")
    assert seen == before, "off the main thread they are left alone"


def test_a_worker_inside_an_event_loop(app: App) -> None:
    @app.job
    def note() -> None: ...

    async def main() -> str:
        job = await note.aenqueue()
        await Worker(app, burst=True).arun()
        return (await job.arefresh()).state

    assert asyncio.run(main()) == "done"


# Hands.


class Micro:
    """An app whose jobs are so short that its worker takes them into its hand."""

    def __init__(self, server: Server, gate: threading.Event) -> None:
        self.app = app = app_on(server)
        self.ran: list[tuple[int, float]] = []
        self.slow_since_s = 0.0
        self.gate = gate

        @app.job
        def noop() -> None: ...

        @app.job
        def slow() -> None:
            self.slow_since_s = time.monotonic()
            assert gate.wait(10)

        @app.job
        def note(n: int) -> None:
            self.ran.append((n, time.monotonic()))

        self.noop, self.slow, self.note = noop, slow, note

    def practise(self) -> None:
        """Let the worker learn how short its jobs are."""
        target = self.app.inspect.stats().done + 2000
        self.noop.enqueue_many([()] * 2000)
        until(lambda: self.app.inspect.stats().done == target, "it has practised")


def test_jobs_in_hand_behind_a_slow_one_go_back_within_200_ms(
    real_server: Server, gate: threading.Event
) -> None:
    micro = Micro(real_server, gate)
    app = micro.app
    with working(app, concurrency=1) as worker:
        micro.practise()
        jobs = app.enqueue_many([micro.slow.s(), *(micro.note.s(n) for n in range(60))])
        until(lambda: micro.slow_since_s, "the slow one has started")
        assert worker._child is not None
        assert len(worker._child._holdings.ids()) > 1, "some lay in hand"
        until(lambda: len(ready_ids(app, real_server)) == 60, "they are back")
        assert time.monotonic() - micro.slow_since_s < 0.2 + 0.05
        assert ready_ids(app, real_server) == [job.id for job in jobs[1:]], "in their order"
        stats = app.inspect.stats()
        assert (stats.running, stats.failed, stats.crashed) == (1, 0, 0)
        gate.set()
        until(lambda: len(micro.ran) == 60, "all have run")
    assert [n for n, _ in micro.ran] == list(range(60))
    assert {job.refresh().attempts for job in jobs} == {1}


def test_one_slow_job_blocks_no_job_while_another_worker_is_idle(
    real_server: Server, gate: threading.Event
) -> None:
    micro = Micro(real_server, gate)
    with working(micro.app, concurrency=1), working(micro.app, concurrency=1):
        micro.practise()
        for turn in range(5):
            micro.ran.clear()
            gate.clear()
            sent_s = time.monotonic()
            micro.app.enqueue_many([micro.slow.s(), *(micro.note.s(n) for n in range(30))])
            until(lambda: len(micro.ran) == 30, "all others have run")
            assert micro.ran[-1][1] - sent_s < 0.3, f"in turn {turn}"
            gate.set()
            until(lambda: micro.app.inspect.stats().running == 0, "the slow one is done")


def test_a_stop_hands_back_what_lies_in_hand(real_server: Server, gate: threading.Event) -> None:
    micro = Micro(real_server, gate)
    app = micro.app
    with working(app, concurrency=1, stop_after="10s") as worker:
        micro.practise()
        jobs = app.enqueue_many([micro.slow.s(), *(micro.note.s(n) for n in range(60))])
        until(lambda: micro.slow_since_s, "the slow one has started")
        worker.stop()
        gate.set()
    assert micro.ran == []
    assert jobs[0].refresh().state == "done"
    assert ready_ids(app, real_server) == [job.id for job in jobs[1:]]


# Leases.


def test_a_job_whose_lease_was_taken_away_runs_once_more_and_is_settled_once(
    app: App, caplog: pytest.LogCaptureFixture
) -> None:
    """Its worker is told `lost`, comes back under another id, and its late outcome changes nothing."""
    gates = [threading.Event(), threading.Event()]
    starts: list[float] = []

    @app.job
    def wait() -> None:
        number = len(starts)
        starts.append(time.monotonic())
        assert gates[number].wait(10)

    job = wait.enqueue()
    with working(app, concurrency=2, lease="600ms", beat="50ms"):
        until(lambda: len(starts) == 1, "it has started")
        (first,) = app.inspect.workers()
        app.run(app.operations.recover(3, [first.id]))
        until(lambda: len(starts) == 2, "it has started again")
        (second,) = app.inspect.workers()
        assert second.id != first.id
        gates[0].set()
        until(
            lambda: any("is not recorded" in line for line in caplog.messages), "the late outcome is told of"
        )
        assert job.refresh().state == "running"
        gates[1].set()
        until(lambda: job.refresh().state == "done", "it is done")
    assert len(starts) == 2
    assert (job.refresh().attempts, job.refresh().crashes) == (2, 1)
    assert app.inspect.stats().done == 1


def test_a_script_flush_is_not_noticed(app: App, real_server: Server) -> None:
    ran = []

    @app.job
    def note(n: int) -> None:
        ran.append(n)

    with working(app, lease="1s", beat="50ms"), real_server.client() as client:
        for n in range(20):
            client.script_flush()
            note.enqueue(n)
        until(lambda: app.inspect.stats().done == 20, "all are done")
        assert sorted(ran) == list(range(20))


def test_a_delayed_job_starts_in_its_time_and_never_early(app: App) -> None:
    late_ms = []

    @app.job
    def note(due_s: float) -> None:
        late_ms.append((time.time() - due_s) * 1000)

    with working(app, concurrency=3):
        for delay_ms in (120, 40, 80, 300, 200, 1):
            note.options(delay=delay_ms / 1000).enqueue(time.time() + delay_ms / 1000)
        until(lambda: len(late_ms) == 6, "all have run")
    assert min(late_ms) >= 0
    assert max(late_ms) < 100


def test_a_due_job_is_seen_by_an_idle_slot_of_a_worker_that_is_busy_elsewhere(
    app: App, gate: threading.Event
) -> None:
    ran: list[float] = []

    @app.job
    def wait() -> None:
        assert gate.wait(10)

    @app.job
    def note() -> None:
        ran.append(time.monotonic())

    with working(app, concurrency=2):
        due_s = time.monotonic() + 0.3
        note.options(delay="300ms").enqueue()
        wait.enqueue()
        until(lambda: ran, "it ran")
        assert ran[0] - due_s < 0.25
        gate.set()


# A child by itself.


def test_a_child_that_gets_no_lease_starts_nothing(kind: str) -> None:
    app = of_kind(App("test", url="redis://127.0.0.1:1"), kind)
    before = threading.active_count()
    with pytest.raises(ConnectionError):
        Child(app, app.settings).start()
    assert threading.active_count() == before


def test_a_child_runs_by_itself(app: App) -> None:
    @app.job
    def note() -> None: ...

    job = note.enqueue()
    before = threading.active_count()
    child = Child(app, app.settings)
    child.start()
    until(lambda: job.refresh().state == "done", "it is done")
    assert not child.wait(0)
    child.stop()
    assert child.wait(10)
    assert child.leave()
    until(lambda: threading.active_count() <= before + app.settings.concurrency, "its threads have ended")
    assert len(app.inspect.workers()) == 0


def test_leaving_while_the_server_is_away_is_one_line(
    app: App, real_server: Server, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO, "rqlite_jobs")
    child = Child(app, app.settings)
    child.start()
    child.stop()
    assert child.wait(10)

    def away(*_: Any, **__: Any) -> Any:
        raise ConnectionError("away")

    monkeypatch.setattr(child, "_call", away)
    assert child.leave()
    assert len([line for line in caplog.messages if line.startswith("left without telling the server")]) == 1


def test_simulated_time_reaches_the_worker(real_server: Server, kind: str) -> None:
    clock = FrozenClock(1000)
    app = of_kind(app_on(real_server, clock=clock), kind)

    @app.job
    def note() -> None: ...

    job = note.options(delay="1h").enqueue()
    burst(app)
    assert job.refresh().state == "scheduled"
    clock.advance("1h")
    burst(app)
    assert job.refresh().state == "done"
