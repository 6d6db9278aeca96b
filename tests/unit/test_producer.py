"""The producer: how many trips, what the answers become, and what a policy says about a held lock."""

import asyncio
import enum
import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec.structs
import pytest

from rqlite_jobs import App, Job, until_executed, until_expired
from rqlite_jobs.errors import LockConflict, PayloadTooLarge, Unreachable
from rqlite_jobs.operations import Call
from rqlite_jobs.snapshot import Snapshot


class At:
    """A clock that stands."""

    def __init__(self, now_ms: int) -> None:
        self.ms = now_ms

    def now_ms(self) -> int:
        return self.ms


NOW_MS = 1_900_000_000_123
NOW = datetime.fromtimestamp(1_900_000_000, UTC) + timedelta(milliseconds=123)


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@pytest.fixture
def app(fake_app: App) -> App:
    """An app whose clock stands at NOW."""
    fake_app.link.clock = At(NOW_MS)
    return fake_app


@pytest.fixture
def trips(app: App, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The verbs of the calls that are sent, blocking or not, once the namespace is open."""
    app.run(app.operations.cancel(["open"]))
    sent: list[str] = []
    run, arun = app.caller.run, app.async_caller.run

    def noted(call: Call[Any], *, patient: bool = True) -> Any:
        sent.append(call.verb)
        return run(call, patient=patient)

    async def anoted(call: Call[Any], *, patient: bool = True) -> Any:
        sent.append(call.verb)
        return await arun(call, patient=patient)

    monkeypatch.setattr(app.caller, "run", noted)
    monkeypatch.setattr(app.async_caller, "run", anoted)
    return sent


def ways(handler: Any, what: str) -> list[Callable[..., Any]]:
    """A method, and its async twin made blocking."""
    twin = getattr(handler, f"a{what}")
    return [getattr(handler, what), lambda *args, **kwargs: asyncio.run(twin(*args, **kwargs))]


both_ways = pytest.mark.parametrize("way", [0, 1], ids=["blocking", "async"])


def plain(n: Any = 0, *, flag: bool = False) -> None: ...


# One call.


@both_ways
def test_an_enqueued_job(app: App, trips: list[str], way: int) -> None:
    job = ways(app.job(plain), "enqueue")[way](1, flag=True)
    assert job == Job(
        id=job.id, name="plain", queue="default", args=(1,), kwargs={"flag": True}, outcome="enqueued", state="ready",
        enqueued_at=NOW,
    )  # fmt: skip
    assert len(job.id) == 20
    assert trips == ["push"]


@both_ways
def test_a_delayed_job_and_one_for_a_time(app: App, way: int) -> None:
    handler = app.job(plain)
    later = ways(handler.options(delay="10m"), "enqueue")[way]()
    assert (later.state, later.run_at) == ("scheduled", NOW + timedelta(minutes=10))
    then = ways(handler.options(run_at=NOW + timedelta(days=1)), "enqueue")[way]()
    assert (then.state, then.run_at) == ("scheduled", NOW + timedelta(days=1))
    for past in (NOW, NOW - timedelta(days=1), datetime(1969, 1, 1, tzinfo=UTC)):
        job = ways(handler.options(run_at=past), "enqueue")[way]()
        assert (job.state, job.run_at, job.outcome) == ("ready", None, "enqueued")


@both_ways
def test_a_duplicate_is_the_holder(app: App, trips: list[str], way: int) -> None:
    handler = app.job(lock=until_executed(key="k"), queue="a")(plain)
    first = handler.options(delay="1h").enqueue(1, flag=True)
    app.link.clock.ms += 5_000  # type: ignore[attr-defined]
    second = ways(handler.options(queue="b"), "enqueue")[way](2)
    assert second == Job(
        id=first.id, name="plain", queue="a", args=(1,), kwargs={"flag": True}, outcome="duplicate", state="scheduled",
        holder_id=first.id, lock_key="plain:k", enqueued_at=NOW,
    )  # fmt: skip
    assert trips == ["enqueue", "enqueue"]
    assert second.cancel()


@both_ways
def test_a_known_id_is_that_job_whatever_its_lock_says(app: App, way: int) -> None:
    handler = app.job(lock=until_executed(key="k", on_conflict="raise"), tags=["night"])(plain)
    first = handler.options(id="x").enqueue(1)
    assert (first.id, first.outcome, first.tags) == ("x", "enqueued", ("night",))
    again = ways(handler.options(id="x", lock=None, tags=["day"]), "enqueue")[way](2)
    assert again == Job(
        id="x", name="plain", queue="default", args=(1,), kwargs={}, outcome="duplicate", state="ready",
        tags=("night",), holder_id="x", lock_key="plain:k", enqueued_at=NOW,
    )  # fmt: skip
    assert ways(handler.options(id="x"), "enqueue")[way](2) == again
    with pytest.raises(LockConflict) as caught:
        ways(handler.options(id="y"), "enqueue")[way](2)
    assert caught.value.holder_id == "x"


@both_ways
def test_a_large_holder_costs_one_more_trip(app: App, trips: list[str], way: int) -> None:
    handler = app.job(lock=until_executed(key="k"))(plain)
    first = handler.enqueue("x" * 5000)
    second = ways(handler, "enqueue")[way]("y")
    assert (second.id, second.args) == (first.id, ("x" * 5000,))
    assert trips == ["enqueue", "enqueue", "look"]


def test_models_of_the_holder_are_rebuilt(app: App) -> None:
    @app.job(lock=until_executed(key="k"))
    def paint(colour: Colour) -> None: ...

    paint.enqueue(Colour.RED)
    assert paint.enqueue(Colour.BLUE).args == (Colour.RED,)


def test_a_holder_with_models_that_fit_no_more(app: App) -> None:
    @app.job(lock=until_executed(key="k"))
    def paint(colour: Colour) -> None: ...

    first = paint.enqueue(Colour.RED)
    other = App("test", url=app.address.shown)

    @other.job(name="paint", lock=until_executed(key="k"))
    def changed(colour: int) -> None: ...

    second = changed.enqueue(3)
    assert (second.id, second.name, repr(second.args)) == (first.id, "paint", "(Unbuilt('red'),)")


def test_a_holder_that_nobody_declares_here(app: App) -> None:
    handler = app.job(lock=until_executed())(plain)
    job = handler.enqueue(7)
    app.handlers.clear()
    assert handler.enqueue(7).args == (7,)
    assert handler.enqueue(7).id == job.id


@both_ways
def test_a_holder_with_a_record_that_cannot_be_read(app: App, way: int) -> None:
    handler = app.job(lock=until_executed())(plain)
    first = handler.enqueue(7)
    record = app.caller.command("HGET", app.keys.fixed("jobs"), first.id)
    app.caller.command("HSET", app.keys.fixed("jobs"), first.id, record.replace(b'["plain"', b"[[[["))
    second = ways(handler, "enqueue")[way](7)
    assert (second.id, second.name, second.args, second.outcome) == (first.id, "plain", (), "duplicate")


def test_a_holder_that_is_gone_while_its_time_is_not_over(app: App) -> None:
    handler = app.job(lock=until_expired("1h"))(plain)
    first = handler.enqueue(7)
    assert first.cancel()
    second = handler.enqueue(7)
    assert (second.id, second.outcome, second.holder_id) == (first.id, "duplicate", first.id)
    assert (second.name, second.queue, second.args, second.enqueued_at) == ("plain", "", (), None)
    assert second.state == "cancelled"


@both_ways
def test_a_rejected_job_is_stored_among_the_dead(app: App, way: int) -> None:
    handler = app.job(lock=until_executed(key="k", on_conflict="reject"))(plain)
    first = handler.enqueue(1)
    second = ways(handler, "enqueue")[way](2)
    assert second == Job(
        id=second.id, name="plain", queue="default", args=(2,), outcome="rejected", state="dead", holder_id=first.id,
        lock_key="plain:k", last_error=f"duplicate of {first.id}", enqueued_at=NOW, finished_at=NOW,
    )  # fmt: skip
    assert second.id != first.id
    found = second.refresh()
    assert msgspec.structs.replace(found, outcome="rejected", holder_id=first.id) == second


@both_ways
def test_on_conflict_raise(app: App, way: int) -> None:
    handler = app.job(lock=until_executed(key="k", on_conflict="raise"))(plain)
    first = handler.enqueue(1)
    with pytest.raises(LockConflict) as caught:
        ways(handler, "enqueue")[way](2)
    error = caught.value
    assert error.message == (
        f"job 'plain' was not enqueued: its lock 'plain:k' is held by job {first.id} (ready)."
    )
    assert (error.holder_id, error.lock_key) == (first.id, "plain:k")
    assert [(job.id, job.outcome, job.args) for job in error.answers] == [(first.id, "duplicate", (1,))]


@both_ways
def test_on_conflict_log(app: App, way: int, caplog: pytest.LogCaptureFixture) -> None:
    handler = app.job(lock=until_executed(key="k", on_conflict="log"))(plain)
    with caplog.at_level(logging.DEBUG, "rqlite_jobs"):
        first = handler.enqueue(1)
        assert caplog.records == []
        assert ways(handler, "enqueue")[way](2).id == first.id
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", f"job 'plain' was not enqueued: its lock 'plain:k' is held by job {first.id} (ready)")
    ]


@both_ways
def test_on_conflict_return_says_nothing(app: App, way: int, caplog: pytest.LogCaptureFixture) -> None:
    handler = app.job(lock=until_executed(key="k"))(plain)
    with caplog.at_level(logging.DEBUG, "rqlite_jobs"):
        handler.enqueue(1)
        ways(handler, "enqueue")[way](2)
    assert caplog.records == []


@both_ways
@pytest.mark.parametrize("size", [100, 101])
def test_a_payload_has_a_limit(size: int, way: int) -> None:
    app = App("t", url="fake://limits", payload_max=100)
    handler = app.job(plain)
    text = "x" * (size - len('["plain",[""]]'))
    if size <= 100:
        assert ways(handler, "enqueue")[way](text).args == (text,)
        return
    with pytest.raises(PayloadTooLarge, match="take 101 bytes, and payload_max is 100") as caught:
        ways(handler, "enqueue")[way](text)
    assert (caught.value.job_name, caught.value.size, caught.value.limit) == ("plain", 101, 100)
    with pytest.raises(PayloadTooLarge):
        ways(handler, "enqueue_many")[way]([("ok",), (text,)])


def test_a_queue_that_nobody_chose_is_the_default_one() -> None:
    app = App("t", url="fake://queues", default_queue="mail")
    assert app.job(plain).enqueue().queue == "mail"


# Many calls.


@both_ways
@pytest.mark.parametrize(
    ("count", "locked", "size", "wanted"),
    [
        (1, False, 1, 1),
        (1000, False, 1, 1),
        (1001, False, 1, 2),
        (200, True, 1, 1),
        (201, True, 1, 2),
        (5, False, 250_000, 2),
    ],
)
def test_the_trips_of_many(
    app: App, trips: list[str], count: int, locked: bool, size: int, wanted: int, way: int
) -> None:
    handler = app.job(lock=until_executed() if locked else None)(plain)
    jobs = ways(handler, "enqueue_many")[way]([(f"{n:0{size}}",) for n in range(count)])
    assert [int(job.args[0][-4:]) for job in jobs] == list(range(count))
    assert {job.outcome for job in jobs} == {"enqueued"}
    assert len({job.id for job in jobs}) == count
    alone = count % 1000 == 1 and not locked  # a single plain one goes the short way
    assert trips == ["enqueue"] * (wanted - alone) + ["push"] * alone
    assert app.run(app.operations.survey()).queues[0].ready == count


@both_ways
def test_twins_in_one_batch_and_over_two(app: App, way: int) -> None:
    handler = app.job(lock=until_executed())(plain)
    jobs = ways(handler, "enqueue_many")[way]([(n % 150,) for n in range(450)])
    assert [job.outcome for job in jobs] == ["enqueued"] * 150 + ["duplicate"] * 300
    assert [job.id for job in jobs] == [job.id for job in jobs[:150]] * 3
    assert [job.args for job in jobs] == [(n % 150,) for n in range(450)]


@both_ways
def test_large_holders_of_many_are_read_together(app: App, trips: list[str], way: int) -> None:
    handler = app.job(lock=until_executed(key="{n[0]}"))(plain)
    handler.enqueue_many([([n, "x" * 3000],) for n in range(30)])
    trips.clear()
    jobs = ways(handler, "enqueue_many")[way]([([n, "y"],) for n in range(30) for _ in range(2)])
    assert [job.args[0] for job in jobs] == [[n, "x" * 3000] for n in range(30) for _ in range(2)]
    assert trips == ["enqueue", "look", "look"]


@both_ways
def test_with_raise_all_are_sent_first(app: App, way: int) -> None:
    handler = app.job(lock=until_executed(on_conflict="raise"))(plain)
    held = handler.enqueue(3)
    with pytest.raises(LockConflict) as caught:
        ways(handler, "enqueue_many")[way]([(n,) for n in [1, 2, 3, 4, 1]])
    error = caught.value
    outcomes = [job.outcome for job in error.answers]
    assert outcomes == ["enqueued", "enqueued", "duplicate", "enqueued", "duplicate"]
    assert [job.args for job in error.answers] == [(1,), (2,), (3,), (4,), (1,)]
    assert error.answers[4].id == error.answers[0].id
    assert (error.holder_id, error.lock_key) == (held.id, "plain:n=3,flag=false")
    assert error.message.startswith("2 of 5 jobs met a lock that is held; the first: job 'plain' was not")
    assert app.run(app.operations.survey()).records == 4


@both_ways
def test_the_policies_of_many_are_each_their_own(
    app: App, way: int, caplog: pytest.LogCaptureFixture
) -> None:
    handler = app.job(lock=until_executed(key="k"))(plain)
    calls = [
        handler.s(1),
        handler.s(2),
        handler.options(lock=None).s(3),
        handler.options(lock=until_executed(key="k", on_conflict="reject")).s(4),
        handler.options(lock=until_executed(key="k", on_conflict="log")).s(5),
    ]
    jobs = ways(app, "enqueue_many")[way](calls)
    assert [job.outcome for job in jobs] == ["enqueued", "duplicate", "enqueued", "rejected", "duplicate"]
    assert len(caplog.records) == 1


@both_ways
def test_an_outage_half_way_says_how_many_were_sent(
    app: App, monkeypatch: pytest.MonkeyPatch, way: int
) -> None:
    handler = app.job(plain)
    handler.enqueue(0)
    run, arun = app.caller.run, app.async_caller.run
    seen: list[Any] = []

    def failing(call: Call[Any], *, patient: bool = True) -> Any:
        seen.append(call)
        if len(seen) == 2:
            raise Unreachable("the server cannot be reached.")
        return run(call)

    async def afailing(call: Call[Any], *, patient: bool = True) -> Any:
        seen.append(call)
        if len(seen) == 2:
            raise Unreachable("the server cannot be reached.")
        return await arun(call)

    monkeypatch.setattr(app.caller, "run", failing)
    monkeypatch.setattr(app.async_caller, "run", afailing)
    with pytest.raises(Unreachable) as caught:
        ways(handler, "enqueue_many")[way]([(n,) for n in range(2500)])
    assert caught.value.__notes__ == ["1000 of 2500 jobs had been enqueued by then."]
    seen[:] = [None]
    with pytest.raises(Unreachable) as caught:
        ways(handler, "enqueue_many")[way]([(1,)])
    assert not hasattr(caught.value, "__notes__")


def test_a_look_that_finds_nothing_is_no_error(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """The holder may go between the enqueue and the look at its payload."""
    handler = app.job(lock=until_executed(key="k"))(plain)
    first = handler.enqueue("x" * 5000)
    monkeypatch.setattr(
        type(app.operations),
        "look",
        lambda self, ids: Call("look", self.keys.of_script(()), [], lambda reply: []),
    )
    run = app.caller.run
    nothing: list[Snapshot] = []
    monkeypatch.setattr(
        app.caller, "run", lambda call, patient=True: nothing if call.verb == "look" else run(call)
    )
    second = handler.enqueue("y")
    assert (second.id, second.name, second.args) == (first.id, "plain", ())
