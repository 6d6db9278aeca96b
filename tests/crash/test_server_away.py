"""A server that goes away, refuses to write, freezes or is full: workers wait, and neither lose nor repeat a job."""

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator

import pytest
import redis

from rqlite_jobs.address import TIMEOUT_S
from rqlite_jobs.errors import ServerFull, ServerReadOnly
from rqlite_jobs.worker.outage import PAUSE_S
from tests.conftest import Spawn
from tests.servers import Server
from tests.worker.inside import working
from tests.worker.site import Process, Site, until

pytestmark = pytest.mark.crash

JOBS = """
@app.job
def note(k):
    mark("start:" + k)

@app.job
def slow(k, seconds):
    mark("start:" + k)
    time.sleep(seconds)
    mark("done:" + k)

@app.job(retry=ONCE)
def broken(k):
    mark("start:" + k)
    time.sleep(0.5)
    raise ValueError("bad data")
"""
LOOP = """
@app.job
async def never_enqueued(): ...
"""
SOURCES = {"threads": JOBS, "loop": JOBS + LOOP}


@pytest.fixture(params=SOURCES)
def site(spawn: Spawn, request: pytest.FixtureRequest) -> Iterator[Site]:
    with Site(spawn(appendonly=True), SOURCES[request.param]) as made:
        yield made


def down_and_up(server: Server, seconds: float) -> None:
    """Kill a server and start it again later."""
    server.kill()
    up_s = time.monotonic() + seconds
    until(lambda: time.monotonic() >= up_s, "it stays down for a while")
    server.start()


def worries(worker: Process) -> list[str]:
    """The lines of a worker's log that are no mere news."""
    return [line for line in worker.lines() if " INFO " not in line]


@pytest.mark.parametrize(
    ("site", "due_s", "down_s"), [("threads", 6.0, 4.0), ("loop", 2.5, 1.0)], indirect=["site"]
)
def test_g25_the_server_is_killed_and_comes_back(site: Site, due_s: float, down_s: float) -> None:
    worker = site.serve()
    leaver = site.serve()
    enqueued_s = time.time()
    site.jobs.note.options(delay=due_s).enqueue("due")
    site.server.kill()
    cpu_s, killed_s = worker.cpu_s(), time.monotonic()
    late = site.start()
    late_s = time.monotonic()

    # One that is asked to end while the server is down ends soon, and with 0.
    leaver.send(signal.SIGTERM)
    assert leaver.ended(5) == 0
    # One that is started while it is down says so in a line and a hint, and ends.
    assert late.ended(5) == 69
    assert time.monotonic() - late_s <= 5
    said = late.lines()
    assert len(said) <= 2
    assert "cannot be reached" in said[0]

    until(lambda: time.monotonic() >= killed_s + down_s, "the server stays down")
    assert (worker.cpu_s() - cpu_s) / (time.monotonic() - killed_s) < 0.2
    site.server.start()
    up_s = time.time()
    site.jobs.note.enqueue("new")
    assert site.wait("start:new")[0] - up_s < 5
    # In its time, or when the worker has found that the server is back, for which it looks every two seconds at least.
    began_s = site.wait("start:due")[0]
    assert enqueued_s + due_s <= began_s < max(enqueued_s + due_s, up_s + PAUSE_S[1]) + 0.25
    assert worker.code is None
    assert len(worker.lines()) <= 20
    assert len(worries(worker)) == 2, worker.log()
    assert worker.stopped() == 0
    assert (site.count("start:new"), site.count("start:due")) == (1, 1)


def test_an_outage_longer_than_the_lease_recovers_nothing_wrongly(site: Site) -> None:
    """Two jobs run over it, one in each worker; when the server is back, nobody takes the other for dead."""
    workers = [site.serve("--lease", "400ms", "-c", "1") for _ in range(2)]
    jobs = [site.jobs.slow.enqueue(k, 2) for k in "ab"]
    site.wait("start:a")
    site.wait("start:b")
    down_and_up(site.server, 1.0)
    site.jobs.note.enqueue("waits")
    until(lambda: all(job.refresh().state == "done" for job in jobs), "both are done")
    site.wait("start:waits")
    for k, job in zip("ab", jobs, strict=True):
        found = job.refresh()
        assert (found.attempts, found.crashes, site.count("start:" + k)) == (1, 0, 1)
    stats = site.app.inspect.stats()
    assert (stats.crashed, stats.done, stats.workers) == (0, 3, 2)
    for worker in workers:
        assert worker.stopped() == 0
        assert not any("lease" in line for line in worries(worker)), worker.log()


def test_an_outcome_of_the_outage_is_kept_and_settled_when_it_is_over(site: Site) -> None:
    worker = site.serve("-c", "3")
    jobs = [site.jobs.slow.enqueue("a", 0.5), site.jobs.broken.enqueue("b")]
    site.wait("start:a")
    site.wait("start:b")
    site.server.kill()
    site.wait("done:a")
    until(lambda: "is dead: ValueError" in worker.log(), "both have ended")
    site.server.start()
    until(lambda: [job.refresh().state for job in jobs] == ["done", "dead"], "both are settled")
    assert [(job.refresh().attempts, job.refresh().crashes) for job in jobs] == [(1, 0), (1, 0)]
    assert site.count("start:a") == site.count("start:b") == 1
    assert worker.stopped() == 0


REFUSALS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "READONLY": (("REPLICAOF", "127.0.0.1", "1"), ("REPLICAOF", "NO", "ONE")),
    "NOREPLICAS": (
        ("CONFIG", "SET", "min-replicas-to-write", "1"),
        ("CONFIG", "SET", "min-replicas-to-write", "0"),
    ),
}


@pytest.mark.parametrize("word", REFUSALS)
def test_a_server_that_takes_no_writes_is_waited_for(site: Site, word: str) -> None:
    """For longer than a lease: what ends meanwhile is settled later, and nothing is recovered wrongly."""
    refuse, allow = REFUSALS[word]
    worker, other = site.serve("--lease", "400ms"), site.serve("--lease", "400ms")
    job = site.jobs.slow.enqueue("a", 0.5)
    site.wait("start:a")
    cpu_s = worker.cpu_s()
    with site.server.client() as client:
        client.execute_command(*refuse)
        with pytest.raises(ServerReadOnly, match=word):
            site.jobs.note.enqueue("refused")
        site.wait("done:a")
        over_s = time.monotonic() + 0.6
        until(lambda: time.monotonic() > over_s, "the leases are over")
        assert job.refresh().state == "running"
        assert worker.cpu_s() - cpu_s < 0.4
        client.execute_command(*allow)
    site.jobs.note.enqueue("b")
    site.wait("start:b")
    until(lambda: job.refresh().state == "done", "it is settled")
    assert (job.refresh().attempts, job.refresh().crashes, site.count("start:a")) == (1, 0, 1)
    assert site.count("start:refused") == 0
    for one in (worker, other):
        assert len(worries(one)) <= 4, one.log()
        # Whoever meets it first tells of it: a turn, or the listener, in the server's own words.
        assert any(word in line or "read only" in line for line in worries(one)), one.log()
        assert one.stopped() == 0


def test_a_frozen_server_is_waited_for(site: Site) -> None:
    """It does not refuse, it says nothing at all, for longer than a lease."""
    worker = site.serve("--lease", "400ms", "-c", "2")
    site.serve("--lease", "400ms", "-c", "2")
    job = site.jobs.slow.enqueue("a", 1.2)
    site.wait("start:a")
    os.kill(site.server.pid, signal.SIGSTOP)
    thaws_s = time.monotonic() + 0.7
    until(lambda: time.monotonic() > thaws_s, "the leases are over")
    os.kill(site.server.pid, signal.SIGCONT)
    site.jobs.note.enqueue("b")
    site.wait("start:b")
    until(lambda: job.refresh().state == "done", "it is done")
    assert (job.refresh().attempts, job.refresh().crashes, site.count("start:a")) == (1, 0, 1)
    assert worker.stopped() == 0


def test_a_stop_while_the_server_is_away_and_a_job_runs(site: Site) -> None:
    """It waits for the job as always, tries to settle, gives up at the deadline; the lease does the rest."""
    worker = site.serve("--lease", "500ms", "--stop-after", "600ms", "-c", "1")
    job = site.jobs.slow.enqueue("a", 0.3)
    site.wait("start:a")
    site.server.kill()
    asked_s = time.monotonic()
    worker.send(signal.SIGTERM)
    assert worker.ended(5) == 0
    assert time.monotonic() - asked_s < 4
    assert site.count("done:a") == 1
    site.server.start()
    assert job.refresh().state == "running"
    site.serve("--lease", "500ms")
    site.wait("done:a", 2)
    until(lambda: job.refresh().state == "done", "it has run again, for its outcome was never recorded")
    assert job.refresh().crashes == 1


def test_a_stop_while_the_server_hangs_waits_for_one_timeout_and_not_for_several(site: Site) -> None:
    worker = site.serve("--stop-after", "200ms", "-c", "2")
    site.jobs.slow.enqueue("a", 0.1)
    site.wait("start:a")
    os.kill(site.server.pid, signal.SIGSTOP)
    try:
        asked_s = time.monotonic()
        worker.send(signal.SIGTERM)
        assert worker.ended(15) == 0
        assert time.monotonic() - asked_s < 0.2 + 1.5 * TIMEOUT_S
    finally:
        os.kill(site.server.pid, signal.SIGCONT)
    assert "left without telling the server" in worker.log()
    assert site.count("done:a") == 1


def test_a_full_server_refuses_new_jobs_and_drains(spawn: Spawn) -> None:
    server = spawn()
    with Site(server, JOBS) as site, server.client() as client:
        app = site.app
        gate = threading.Event()
        done = []

        @app.job
        def step(n: int) -> None:
            gate.wait(10)
            done.append(n)
            if n == 0:
                step.enqueue(100)

        jobs = step.enqueue_many([(n,) for n in range(30)])
        client.config_set("maxmemory", "1")
        with pytest.raises(ServerFull):
            step.enqueue(99)
        with working(app, concurrency=3, lease="1s", beat="100ms"):
            gate.set()
            until(lambda: app.inspect.stats().done == 29, "the queue drains")
            first = jobs[0]
            until(
                lambda: first.refresh().state == "scheduled", "one could not enqueue, and waits for its retry"
            )
            assert "ServerFull" in str(first.refresh().last_error)
            client.config_set("maxmemory", "0")
        assert sorted(done) == list(range(30))


def test_flapping_connections_lose_nothing(spawn: Spawn) -> None:
    """Every connection is cut again and again; each job runs, and settles, once."""
    server = spawn()
    rng = random.Random(3)
    with Site(server, JOBS) as site:
        app, runs = site.app, []

        @app.job
        def step(n: int) -> None:
            runs.append(n)

        def cut(client: "redis.Redis") -> None:
            client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")

        with working(app, concurrency=4, lease="2s", beat="50ms"), server.client() as client:
            step.enqueue_many([(n,) for n in range(500)])
            for _ in range(25):
                cut(client)
                pause_s = time.monotonic() + rng.uniform(0, 0.02)
                until(lambda end=pause_s: time.monotonic() > end, "a moment goes by")
                step.enqueue(1000 + len(runs))
            until(_done_is(client, site, 525), "all are done")
        assert len(runs) >= 525
        stats = app.inspect.stats()
        assert (stats.enqueued, stats.done, stats.failed, stats.crashed) == (525, 525, 0, 0)
        assert len(runs) == 525, "a cut connection is nobody's death"


def _done_is(client: "redis.Redis", site: Site, count: int) -> Callable[[], bool]:
    return lambda: int(client.hget(site.app.keys.fixed("totals"), "done") or 0) == count
