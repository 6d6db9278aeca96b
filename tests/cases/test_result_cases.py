"""Cases from public reports, the results' part: G07(b), G21 and G31; and a thousand callers at once."""

import asyncio
import enum
import math
import os
import signal
import threading
import time
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from datetime import time as daytime
from decimal import Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest

from rqlite_jobs import (
    App,
    Bury,
    Job,
    JobFailed,
    JobNotFound,
    ResultExpired,
    ResultTimeout,
    until_executed,
    waiting,
)
from rqlite_jobs.models import same
from rqlite_jobs.script import script
from tests.conftest import Spawn, app_on
from tests.servers import FakeServer, Server
from tests.worker.inside import KINDS, of_kind, working
from tests.worker.site import Site, calm, monitored, until

pytestmark = pytest.mark.crash


class Hue(enum.Enum):
    RED = "red"


class Size(enum.IntEnum):
    BIG = 3


@dataclass
class Book:
    title: str
    hue: Hue


ZONED = datetime(2031, 1, 2, 3, 4, 5, 678901, tzinfo=ZoneInfo("Europe/Paris"))
VALUES = [
    (1, 2), [1, 2], {1: "a"}, {"1": "a"}, {1, 2}, frozenset({1}), Decimal("1.10"), UUID(int=7),
    datetime(2031, 1, 2, 3, 4, 5, 678901), datetime(2031, 1, 2, 3, 4, 5, 678901, tzinfo=UTC), ZONED,
    date(2031, 1, 2), daytime(3, 4, 5), timedelta(seconds=90, microseconds=1), b"\x00\xff", math.nan, math.inf,
    -0.0, 2**63 + 1, 130775545883395173, "\x00\u00e9\u2603", {"__type__": "datetime", "__value__": "x"},
    {"a": [(1,)]}, False, 0, "", [],
]  # fmt: skip


def deleted(app: App, job: Job[Any]) -> None:
    assert app.run(app.operations.delete([job.id])) == ["deleted"]


@pytest.mark.parametrize("kind", KINDS)
def test_g21_as_results(real_server: Server, kind: str) -> None:
    app = of_kind(app_on(real_server), kind)

    @app.job
    def echo(number: int) -> Any:
        return VALUES[number]

    @app.job
    def hue() -> Hue:
        return Hue.RED

    @app.job
    def size() -> Size:
        return Size.BIG

    @app.job
    async def books() -> list[Book]:
        return [Book("a", Hue.RED)]

    @app.job
    def unannotated():  # type: ignore[no-untyped-def]
        return Hue.RED

    @app.job
    def nobody_can_carry() -> object:
        return object()

    with working(app):
        for number, value in enumerate(VALUES):
            back = echo.enqueue(number).result("20s")
            assert same(value, back) or (isinstance(value, datetime) and value == back), value
            if isinstance(value, datetime):
                assert (back.utcoffset(), back.microsecond) == (value.utcoffset(), value.microsecond)
        assert math.copysign(1, echo.enqueue(VALUES.index(-0.0)).result("20s")) == -1
        assert hue.enqueue().result("20s") is Hue.RED
        assert size.enqueue().result("20s") is Size.BIG
        assert books.enqueue().result("20s") == [Book("a", Hue.RED)]
        for job in (unannotated.enqueue(), nobody_can_carry.enqueue()):
            with pytest.raises(ResultExpired, match="not kept"):
                job.result("20s")
            assert job.refresh().state == "done"


def test_g07_b_a_job_that_enqueues_itself_is_told_of_its_own_lock(real_server: Server) -> None:
    app = app_on(real_server)

    @app.job(lock=until_executed(key="{k}"))
    def tick(k: str, left: int) -> str:
        starts.append(left)
        return str(tick.options(delay="0.5s").enqueue(k, left - 1).outcome) if left > 0 else ""

    starts: list[int] = []
    with working(app):
        assert tick.enqueue("b", 4).result("20s") == "duplicate"
        stats = app.inspect.stats()
        assert (starts, stats.done, stats.locks) == ([4], 1, 0)
        assert stats.scheduled == stats.ready == 0


def test_g31_expiry_waiting_and_unknown_ids(server: Server | FakeServer) -> None:
    app = app_on(server)

    @app.job
    def passes(x: int) -> int:
        return x

    @app.job(result_ttl="forever")
    def dies() -> int:
        raise Bury("hopeless")

    # (c) one that waits still, one that keeps nothing, one that never was.
    waits = passes.options(delay="1h").enqueue(1)
    began_s = time.monotonic()
    with pytest.raises(ResultTimeout, match="within 2s"):
        waits.result("2s")
    assert 1.9 < time.monotonic() - began_s < 2.5
    with pytest.raises(TimeoutError):
        asyncio.run(waits.aresult(0.1))
    app.inspect.stats()
    began_s = time.monotonic()
    with pytest.raises(JobNotFound):
        Job[int]("nobody", _app=app).result("2s")
    with pytest.raises(LookupError):
        app.job_by_id("nobody")
    assert time.monotonic() - began_s < 0.4
    with working(app):
        # (a) what died and is deleted is unknown, and its handle tells that it was there.
        gone = passes.options(result_ttl=0).enqueue(5)
        until(lambda: gone.refresh().state == "done", "it is done")
        began_s = time.monotonic()
        with pytest.raises(ResultExpired):
            gone.result("2s")
        assert time.monotonic() - began_s < 2.5
        deleted(app, gone)
        with pytest.raises(ResultExpired, match="nothing of it is left"):
            gone.result("2s")
        for _ in range(2):
            x = dies.options(id="x", result_ttl=0).enqueue()
            assert (x.id, x.outcome) == ("x", "enqueued")
            with pytest.raises(JobFailed):
                x.result("20s")
            deleted(app, x)
        # (b) to keep the result of a job that dies for ever is no error, and its record is kept.
        dead = dies.enqueue()
        with pytest.raises(JobFailed, match="hopeless") as caught:
            dead.result("20s")
        assert caught.value.error == "hopeless"
        assert dead.refresh().state == "dead"
        # (d) kept for two seconds, and then an error and not None.
        brief = passes.options(result_ttl="2s").enqueue(7)
        assert brief.result("20s") == 7
        finished_s = time.monotonic()
        until(lambda: time.monotonic() - finished_s > 1, "a second passes")
        assert app.job_by_id(brief.id).result("2s") == 7
        until(lambda: time.monotonic() - finished_s > 2.5, "it is over")
        with pytest.raises(ResultExpired):
            brief.result("2s")
        assert passes.options(result_ttl="forever").enqueue(8).result("20s") == 8
    assert waits.refresh().state == "scheduled"


NAP = """
@app.job
async def nap(seconds):
    import asyncio
    await asyncio.sleep(seconds)
    return time.time()

@app.job
def later():
    time.sleep(0.05)
    return time.time()
"""


def test_a_thousand_callers_wait_for_a_thousand_results(real_server: Server) -> None:
    """At most three commands a wait; woken within 20 ms of the end, nearly all of them."""
    with Site(real_server, NAP) as site:
        site.start("-c", "8")
        site.jobs.nap.enqueue(0).result("20s")

        def prompt() -> bool:
            return late_p95_s(site) <= 0.02

        assert calm(prompt)


def late_p95_s(site: Site) -> float:
    """How late nearly all of a thousand callers are told of the end; none of them costs more than three commands."""
    with site.server.client() as client:
        late_s: list[float] = []

        async def wait(job: Job[float]) -> None:
            returned_s = await job.aresult("60s")
            late_s.append(time.time() - returned_s)

        async def all_of_them() -> None:
            site.app.control.pause("default")
            jobs = await site.jobs.nap.aenqueue_many([(0.02,)] * 1000)
            waits = [asyncio.create_task(wait(job)) for job in jobs]
            while client.hlen("rqj:{test}:waiters") < 1000:  # type: ignore[operator]
                await asyncio.sleep(0.01)
            site.app.control.resume("default")
            await asyncio.gather(*waits)

        with monitored(site.server) as lines:
            asyncio.run(all_of_them())
            client.echo("all are told")
            until(lambda: any("all are told" in line for line in lines), "what was asked is seen whole")
            asked = [
                line
                for line in lines
                if line.startswith("BRPOP")
                or script("wait").sha in line
                or "Wait for the end of a job" in line
            ]
        assert len(late_s) == 1000
        assert 2000 <= len(asked) <= 3000
        assert client.hlen("rqj:{test}:waiters") == 0
        return sorted(late_s)[949]


def test_a_server_that_restarts_while_they_wait(spawn: Spawn) -> None:
    server = spawn(appendonly=True)
    with Site(server, NAP) as site:
        jobs = [site.jobs.later.enqueue() for _ in range(3)]
        found: list[float] = []
        threads = [threading.Thread(target=lambda job=job: found.append(job.result("30s"))) for job in jobs]
        for thread in threads:
            thread.start()
        with server.client() as client:
            until(lambda: client.hlen("rqj:{test}:waiters") == 3, "they wait")
        server.kill()
        server.start()
        site.start()
        for thread in threads:
            thread.join(30)
        assert len(found) == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_parent_and_forked_child_wait_each_with_a_mailbox_of_its_own(real_server: Server) -> None:
    with Site(real_server, NAP) as site:
        slow = site.jobs.nap.enqueue(0.3)
        other = threading.Thread(target=slow.result, args=("30s",))
        other.start()
        with real_server.client() as client:
            until(lambda: client.hlen("rqj:{test}:waiters") == 1, "the parent waits")
            child = os.fork()
            if child == 0:
                signal.alarm(30)
                code = 1
                try:
                    code = 0 if site.jobs.nap.enqueue(0).result("20s") > 1 and slow.result("20s") > 1 else 2
                finally:
                    os._exit(code)
            until(lambda: client.hlen("rqj:{test}:waiters") == 2, "the child waits too")
        site.start()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        other.join(30)
        assert not other.is_alive()


def test_a_caller_whose_end_was_told_to_nobody_asks_again(
    real_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process stood still until its list had run out, or too many others wait for the same job."""
    monkeypatch.setattr(waiting, "LISTEN_S", 0.2)
    with Site(real_server, NAP) as site, real_server.client() as client:
        job = site.jobs.later.enqueue()
        got: list[float] = []
        caller = threading.Thread(target=lambda: got.append(job.result("20s")))
        caller.start()
        until(lambda: client.delete("rqj:{test}:waiters"), "it waits")
        site.start()
        caller.join(20)
        assert len(got) == 1


def test_a_thread_that_was_not_to_be_had_is_asked_for_again(
    real_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Site(real_server, NAP) as site:
        job = site.jobs.later.enqueue()

        def refuse(_: threading.Thread) -> None:
            raise RuntimeError("no more threads")

        with monkeypatch.context() as limited:
            limited.setattr(threading.Thread, "start", refuse)
            with pytest.raises(RuntimeError, match="no more"):
                job.result("1s")
        site.start()
        assert job.result("20s") > 0
