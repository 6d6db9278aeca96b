"""Ids of one's own, jobs that expire, and G21 and G22 with the options that stand beside them, on real servers."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from rqlite_jobs import App, until_executed
from rqlite_jobs.errors import JobNotFound
from rqlite_jobs.testing import FrozenClock, drain
from tests.conftest import app_on
from tests.servers import Server

pytestmark = pytest.mark.lanes("valkey", "redis", "cluster")


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock(1_900_000_000)


@pytest.fixture
def shop(server: Server, clock: FrozenClock) -> App:
    """An app in simulated time."""
    return app_on(server, clock=clock)


@pytest.mark.parametrize("delay", [None, "5s"])
@pytest.mark.parametrize("beside", [0, 3])
@pytest.mark.parametrize("times", [1, 3])
def test_after_a_cancel_an_id_comes_again_and_runs_once(
    shop: App, clock: FrozenClock, delay: str | None, beside: int, times: int
) -> None:
    """Whether its old entry still lies in the list, under a tomb, or went with the list."""
    ran: Counter[str] = Counter()

    @shop.job
    def note(what: str) -> None:
        ran[what] += 1

    note.enqueue_many([(f"other {at}",) for at in range(beside)])
    for at in range(times):
        old = note.options(id="night").enqueue(f"old {at}")
        assert (old.outcome, old.cancel(), old.cancel()) == ("enqueued", True, False)
    new = note.options(id="night", delay=delay).enqueue("new")
    assert (new.outcome, new.id) == ("enqueued", "night")
    assert note.options(id="night").enqueue("late").outcome == "duplicate"
    assert drain(shop) == beside + (delay is None)
    clock.advance("5s")
    assert drain(shop) == (delay is not None)
    assert ran == {"new": 1, **{f"other {at}": 1 for at in range(beside)}}
    assert new.refresh().state == "done"


def test_of_many_who_ask_for_one_id_one_gets_it(app: App) -> None:
    @app.job
    def f(n: int) -> None: ...

    with ThreadPoolExecutor(8) as pool:
        jobs = list(pool.map(lambda n: f.options(id="x").enqueue(n), range(64)))
    assert Counter(job.outcome for job in jobs) == {"enqueued": 1, "duplicate": 63}
    assert {job.id for job in jobs} == {"x"}
    assert app.inspect.stats().ready == 1


def test_an_id_is_free_when_its_job_has_left_the_history(server: Server) -> None:
    app = app_on(server, done_max_count=2)

    @app.job
    def f(n: int) -> None: ...

    f.options(id="x").enqueue(0)
    drain(app)
    assert f.options(id="x").enqueue(0).outcome == "duplicate"
    f.enqueue_many([(1,), (2,)])
    drain(app)
    with pytest.raises(JobNotFound):
        app.job_by_id("x")
    assert f.options(id="x").enqueue(0).outcome == "enqueued"


def test_what_waited_too_long_is_not_started(shop: App, clock: FrozenClock) -> None:
    ran: list[str] = []

    @shop.job(expires_in="10s", lock=until_executed())
    def note(what: str) -> None:
        ran.append(what)

    early, late = note.enqueue("early"), note.options(delay="9s").enqueue("late")
    clock.advance("9s")
    patient = note.options(expires_in="1h").enqueue("patient")
    assert drain(shop) == 3
    early, late = note.enqueue("early"), note.options(delay="9s").enqueue("late")
    clock.advance("10s")
    assert early.refresh().state == "ready"  # nobody has come upon it yet
    assert note.enqueue("early").outcome == "enqueued"  # this call does, and takes its lock
    assert early.refresh().state == "expired"
    assert drain(shop) == 1
    assert late.refresh().state == "expired"
    assert ran == ["early", "late", "patient", "early"] or sorted(ran) == [
        "early",
        "early",
        "late",
        "patient",
    ]
    assert patient.refresh().state == "done"
    stats = shop.inspect.stats()
    assert (stats.enqueued, stats.done, stats.expired, stats.locks) == (6, 4, 2, 0)


def test_an_expired_one_can_be_neither_cancelled_nor_revived(shop: App, clock: FrozenClock) -> None:
    @shop.job
    def f() -> None: ...

    job = f.options(expires_in="1s").enqueue()
    clock.advance("1s")
    assert drain(shop) == 0
    assert job.cancel() is False
    assert job.refresh().state == "expired"


def test_g22_options_do_not_show_up_among_the_arguments(shop: App) -> None:
    met: list[dict[str, Any]] = []

    @shop.job
    def f(**kw: Any) -> None:
        met.append(kw)

    arguments = {"id": "i", "expires_in": 1, "tags": ["t"], "delay": 3}
    job = f.options(id="proper", expires_in="1h", tags=["a"]).enqueue(**arguments)
    assert (job.id, job.tags, job.kwargs) == ("proper", ("a",), arguments)
    assert drain(shop) == 1
    assert met == [arguments]


def test_g24_an_id_and_tags_of_any_script_through_a_decoding_client(server: Server) -> None:
    app = App("größe", redis=server.client(decode_responses=True))

    @app.job(queue="очередь")
    def f() -> None: ...

    job = f.options(id="заказ ☃\U0001d518", tags=["größe"]).enqueue()
    again = f.options(id="заказ ☃\U0001d518").enqueue()
    assert (again.id, again.outcome, again.tags) == ("заказ ☃\U0001d518", "duplicate", ("größe",))
    assert drain(app) == 1
    assert (job.refresh().state, job.refresh().tags) == ("done", ("größe",))
