"""The numbers of `stats()` add up, at every instant and whoever works meanwhile."""

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from rqlite_jobs import App, Retry
from rqlite_jobs.counters import COUNTERS
from rqlite_jobs.inspector import Stats
from rqlite_jobs.testing import FrozenClock, drain
from tests.conftest import app_on
from tests.servers import Server
from tests.worker.site import Site, until

PLACES = ("ready", "scheduled", "running", "parked", "dead")
LEFT = ("done", "cancelled", "deleted", "expired", "superseded")
KINDS = {"first": 6, "second": 2, "never": 2}
"""What passes at once, what fails once, what always fails; and how many of each."""
BOOKS = """
RETRY = Retry(max_attempts=2, delay=0.2, jitter=False)

@app.job(queue="books", retry=RETRY)
def crunch(kind, n=0):
    name = f"{kind}{n}"
    mark(name)
    if kind == "never" or (kind == "second" and marked(name) == 1):
        raise ValueError("bad data")
"""
MANY = """
QUICK = Retry(max_attempts=2, delay=0.05, jitter=False)

@app.job(queue="a")
def noop(n): ...

@app.job(queue="b", retry=QUICK)
def fails(n):
    raise ValueError("bad data")

@app.job(queue="b", lock=until_executed())
def locked(n): ...
"""


def adds_up(stats: Stats) -> Stats:
    """The same numbers, once they were found to be sound."""
    numbers = {name: getattr(stats, name) for name in (*PLACES, *COUNTERS, "attempts", "locks", "workers")}
    assert min(numbers.values()) >= 0, numbers
    assert stats.enqueued == sum(numbers[name] for name in (*PLACES, *LEFT)), numbers
    return stats


def is_quiet(stats: Stats) -> bool:
    return stats.ready == stats.scheduled == stats.running == 0


def as_expected(stats: Stats) -> bool:
    """Are these the numbers of G30, when all is quiet?"""
    assert (stats.enqueued, stats.done, stats.dead, stats.failed, stats.attempts) == (10, 8, 2, 6, 14)
    assert (stats.died, stats.crashed, stats.locks) == (2, 0, 0)
    return is_quiet(stats)


@pytest.mark.parametrize("slots", ["1", "4"])
@pytest.mark.lanes("valkey", "redis")
def test_g30_counters_that_add_up(server: Server, slots: str) -> None:
    with Site(server, BOOKS) as site:
        crunch = site.jobs.crunch
        worker = site.serve("-c", slots)
        for kind, count in KINDS.items():
            for n in range(count):
                crunch.enqueue(kind, n)
        readings: list[Stats] = []

        def quiet() -> bool:
            readings.append(adds_up(site.app.inspect.stats()))
            return is_quiet(readings[-1])

        until(quiet, "all is quiet")
        assert {one.enqueued for one in readings} == {10}
        assert any(one.scheduled for one in readings), "it was read while failed ones waited"
        assert as_expected(readings[-1])
        assert worker.stopped() == 0
        again = site.serve("-c", slots)
        assert as_expected(adds_up(site.app.inspect.stats()))
        assert again.stopped() == 0
        assert as_expected(adds_up(site.app.inspect.stats()))


@pytest.mark.lanes("fake", "valkey")
def test_g30_in_simulated_time_read_from_inside_every_attempt(server: Server) -> None:
    clock = FrozenClock(1_900_000_000)
    app = app_on(server, clock=clock)
    tries: dict[str, int] = {}

    @app.job(retry=Retry(max_attempts=2, delay=0.2, jitter=False))
    def crunch(kind: str, n: int) -> None:
        assert adds_up(app.inspect.stats()).running == 1
        name = f"{kind}{n}"
        tries[name] = tries.get(name, 0) + 1
        if kind == "never" or (kind == "second" and tries[name] == 1):
            raise ValueError("bad data")

    crunch.enqueue_many(
        [(kind, n) for kind, count in (("first", 6), ("second", 2), ("never", 2)) for n in range(count)]
    )
    while not is_quiet(adds_up(app.inspect.stats())):
        drain(app)
        clock.advance("20ms")
    assert as_expected(adds_up(app.inspect.stats()))
    assert sum(row.attempts for row in app.inspect.history(last=5)) == 14


@pytest.mark.lanes("valkey", "redis")
def test_numbers_add_up_while_4_workers_run_20000_jobs(server: Server) -> None:
    with Site(server, MANY) as site:
        app: App = site.app
        for _ in range(4):
            site.start("-c", "4")
        readers = [Reader(app, work) for work in (read_stats, read_stats, read_queues, read_pages, read_dead)]
        cancelled = refused = 0
        for first in range(0, 20_000, 1000):
            noops = site.jobs.noop.enqueue_many([(n,) for n in range(first, first + 900)])
            site.jobs.fails.enqueue_many([(n,) for n in range(first, first + 50)])
            locked = site.jobs.locked.enqueue_many([(n % 60,) for n in range(first, first + 80)])
            refused += sum(one.outcome == "duplicate" for one in locked)
            extra = site.jobs.noop.enqueue_many([(n,) for n in range(first, first + 1000 - 950)])
            words = app.control.cancel([one.id for one in (*noops[-50:], *extra)])
            cancelled += sum(word == "cancelled" for word in words.values())
        until(lambda: is_quiet(app.inspect.stats()), "all is quiet", 90.0)
        counts = [reader.end() for reader in readers]
        stats = adds_up(app.inspect.stats())
        assert stats.enqueued == 20_000 + 20 * 80 - refused
        assert (stats.cancelled, stats.refused, stats.dead, stats.failed) == (cancelled, refused, 1000, 2000)
        assert stats.done == stats.enqueued - 1000 - cancelled
        assert stats.locks == 0
        for by in ("minute", "day"):
            rows = app.inspect.history(by, last=60)
            assert {name: sum(getattr(row, name) for row in rows) for name in COUNTERS} == {
                name: getattr(stats, name) for name in COUNTERS
            }
        assert min(counts) >= 1, counts  # a walk through all pages takes a while
        assert min(counts[:2]) >= 10, counts


class Reader:
    """Reads again and again in a thread of its own, until it is ended."""

    def __init__(self, app: App, read: Callable[[App, Any], Any]) -> None:
        self.name = read.__name__
        self._app, self._read = app, read
        self._count, self._errors = 0, list[BaseException]()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def end(self) -> int:
        """How often it has read; raises what it found wrong."""
        self._over.set()
        self._thread.join(30)
        assert not self._thread.is_alive(), f"{self.name} never ends"
        for error in self._errors:
            raise error
        return self._count

    def _run(self) -> None:
        seen: Any = None
        try:
            while not self._over.wait(0.02):
                seen = self._read(self._app, seen)
                self._count += 1
        except BaseException as error:
            self._errors.append(error)


def read_stats(app: App, before: Stats | None) -> Stats:
    """All numbers; counters never go down."""
    stats = adds_up(app.inspect.stats())
    if before is not None:
        assert stats.now >= before.now
        assert all(getattr(stats, name) >= getattr(before, name) for name in COUNTERS)
    return stats


def read_queues(app: App, before: Any) -> None:
    """All queues, and the history."""
    for row in app.inspect.queues():
        assert min(row.ready, row.scheduled) >= 0
        assert (row.ready == 0) <= (row.waiting_since is None)
    assert all(getattr(row, name) >= 0 for row in app.inspect.history(last=3) for name in COUNTERS)


def read_pages(app: App, before: Any) -> None:
    """All jobs, page by page."""
    walk(app, None, 500)


def read_dead(app: App, before: set[str] | None) -> set[str]:
    """The dead: none is missed, none comes twice, for none goes."""
    ids = walk(app, "dead", 40)
    assert len(ids) == len(set(ids))
    assert (before or set()) <= set(ids)
    return set(ids)


def walk(app: App, state: str | None, limit: int) -> list[str]:
    ids, cursor, looked = list[str](), "", 0
    began_s = time.monotonic()
    while True:
        page = app.inspect.jobs(state, limit=limit, cursor=cursor)
        assert len(page) <= limit
        assert page.looked is not None
        assert page.looked >= looked
        ids += [job.id for job in page]
        cursor, looked = page.next, page.looked
        if not cursor:
            return ids
        assert time.monotonic() < began_s + 60, "it never ends"
