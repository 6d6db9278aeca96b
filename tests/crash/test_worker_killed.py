"""Workers killed with their process group, at every point of a job's route: nothing is lost, nothing stays held."""

import os
import random
import signal
import time
from collections.abc import Iterator

import pytest

from rqlite_jobs.inspector.rows import Stats
from tests.conftest import Spawn
from tests.servers import Server
from tests.worker.site import Site, until

pytestmark = pytest.mark.crash

JOBS = """
@app.job
def slow(k, seconds):
    mark("start:" + k)
    time.sleep(seconds)
    mark("done:" + k)

@app.job
def once_slow(k):
    mark("start:" + k)
    if marked("start:" + k) == 1:
        time.sleep(600)
    mark("done:" + k)

@app.job
def quick(k):
    mark("done:" + k)

@app.job(lock=until_executed(key="{k}"))
def unique(k):
    mark("start:" + k)
    if os.environ.get("KILL") == "running":
        die()
    mark("done:" + k)

@app.job(lock=until_expired("1h", key="hour {k}"))
def hourly(k):
    mark("start:" + k)

@app.job
def poison(k):
    mark("start:" + k)
    die()

def die():
    mark("killed")
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)

def dies(owner, name, when):
    # Have a method of the worker's end its process, before or after it has done its duty.
    plain = getattr(owner, name)
    def dying(self, *args, **kwargs):
        if when == "before":
            die()
        plain(self, *args, **kwargs)
        die()
    setattr(owner, name, dying)

point = os.environ.get("KILL", "")
if point:
    from rqlite_jobs.worker.executor import Executor
    from rqlite_jobs.worker.heart import Heart
    from rqlite_jobs.worker.turn import Turn
if point == "registered":
    dies(Heart, "register", "after")
elif point == "claimed":
    dies(Executor, "prepare", "before")
elif point == "finished":
    dies(Executor, "perform", "after")
elif point == "settled":
    plain = Turn.answered
    def answered(self, turned):
        if self._asked.settlements:
            die()
        return plain(self, turned)
    Turn.answered = answered
"""


@pytest.fixture
def site(real_server: Server) -> Iterator[Site]:
    with Site(real_server, JOBS) as made:
        yield made


def adds_up(stats: Stats) -> bool:
    now = stats.ready + stats.scheduled + stats.running + stats.parked + stats.dead
    return stats.enqueued == now + stats.done + stats.cancelled + stats.deleted


@pytest.mark.slow
def test_g17_a_worker_killed_in_the_middle_of_a_job(site: Site, spawn: Spawn) -> None:
    with Site(spawn(), JOBS) as default:
        # With default settings, meanwhile: a lease of 15 s.
        default.jobs.once_slow.enqueue("d")
        first = default.serve()
        default.wait("start:d")
        default.serve()
        first.kill()
        default_killed_s = time.time()

        # Lease 3 s; the job takes 6 s; killed 2 s in.
        job = site.jobs.slow.enqueue("a", 6)
        first = site.start("--lease", "3s")
        (started_s,) = site.wait("start:a")
        site.serve("--lease", "3s")
        until(lambda: time.time() >= started_s + 2, "two seconds have gone by")
        first.kill()
        killed_s = time.time()
        site.jobs.quick.enqueue("other")
        site.wait("done:other", deadline_s=1)
        assert site.wait("start:a", 2)[1] - killed_s <= 8
        assert site.wait("done:a")[0] - killed_s <= 16
        until(lambda: job.refresh().state == "done", "it is settled")
        done = job.refresh()
        assert (done.attempts, done.crashes, site.count("start:a"), site.count("done:a")) == (2, 1, 2, 1)
        stats = site.app.inspect.stats()
        assert (stats.dead, stats.crashed, stats.running, stats.workers) == (0, 1, 0, 1)

        assert default.wait("start:d", 2)[1] - default_killed_s <= 90
        default.wait("done:d")


POINTS = {
    # where the worker dies: how often its job starts and ends in all, its attempts, its crashes
    "registered": (1, 1, 1, 0),
    "claimed": (1, 1, 2, 1),
    "running": (2, 1, 2, 1),
    "finished": (2, 2, 2, 1),
    "settled": (1, 1, 1, 0),
}


@pytest.mark.parametrize("between", ["nothing", "script flush", "server killed"])
def test_at_every_point_of_the_route(spawn: Spawn, between: str) -> None:
    server = spawn(appendonly=True)
    with Site(server, JOBS) as site:
        jobs = {point: site.jobs.unique.options(queue=point).enqueue(point) for point in POINTS}
        hourly = site.jobs.hourly.options(queue="claimed").enqueue("h")
        doomed = [site.start("-q", point, "--lease", "1s", "-c", "1", KILL=point) for point in POINTS]
        for one in doomed:
            assert one.ended() == -signal.SIGKILL
        assert site.count("killed") == len(POINTS)
        if between == "script flush":
            with server.client() as client:
                client.script_flush()
        elif between == "server killed":
            server.kill()
            server.start()
        for point, job in jobs.items():
            held = point != "settled"
            assert site.jobs.unique.enqueue(point).outcome == ("duplicate" if held else "enqueued")
            if not held:
                assert job.refresh().state == "done"
                site.wait("done:settled", 1)
        site.start("--lease", "1s")
        until(lambda: all(job.refresh().state == "done" for job in [*jobs.values(), hourly]), "all are done")
        until(
            lambda: site.app.inspect.stats().ready == site.app.inspect.stats().running == 0, "nothing is left"
        )
        for point, (starts, ends, attempts, crashes) in POINTS.items():
            extra = point == "settled"  # the second one, whose lock was free
            found = jobs[point].refresh()
            seen = (site.count(f"start:{point}"), site.count(f"done:{point}"), found.attempts, found.crashes)
            assert seen == (starts + extra, ends + extra, attempts, crashes), point
        until(lambda: len(site.app.inspect.workers()) == 1, "the dead workers are cleared away")
        stats = site.app.inspect.stats()
        assert (stats.dead, adds_up(stats)) == (0, True)
        assert [lock.key for lock in site.app.inspect.locks()] == ["hourly:hour h"], "till its hour is over"
        with server.client() as client:
            held_by_running = client.hlen(site.app.keys.fixed("where"))
        assert held_by_running == 0


def test_what_lay_in_the_hand_of_a_killed_worker_counts_no_crash(site: Site) -> None:
    site.start("-c", "1", "--lease", "1s")
    site.jobs.quick.enqueue_many([("practice",)] * 300)
    until(lambda: site.app.inspect.stats().done == 300, "it has practised")
    jobs = [site.jobs.poison.s("p"), *(site.jobs.quick.s("q") for _ in range(20))]
    poison, *others = site.app.enqueue_many(jobs)
    site.wait("killed")
    site.start("-c", "1", "--lease", "1s", "-q", "nothing")  # it recovers, and runs nothing of this queue
    until(lambda: site.app.inspect.stats().ready == 21, "all are back")
    with site.server.client() as client:
        key = site.app.keys.prefix("ready") + "default:0"
        order = [raw.decode() for raw in client.lrange(key, 0, -1)][::-1]
    assert order == [poison.id, *(job.id for job in others)]
    assert [job.refresh().crashes for job in [poison, *others]] == [1] + [0] * 20


def test_a_poison_job_is_buried_and_takes_no_neighbour_along(site: Site) -> None:
    poison = site.jobs.poison.enqueue("p")
    lives = 0
    neighbours = []
    while poison.refresh().state != "dead":
        assert lives < 6
        worker = site.start("-c", "1", "--lease", "300ms", "--max-crashes", "2")
        lives += 1
        neighbours.append(site.jobs.quick.enqueue(f"n{lives}"))
        until(
            lambda w=worker: w.code is not None or poison.refresh().state == "dead", "one of the two has died"
        )
    until(lambda: all(job.refresh().state == "done" for job in neighbours), "the neighbours are done")
    dead = poison.refresh()
    assert (dead.attempts, dead.crashes, site.count("start:p")) == (2, 2, 2)
    assert dead.last_error is not None
    assert dead.last_error.startswith("crashed 2 times")
    assert {job.refresh().crashes for job in neighbours} == {0}
    assert worker.code is None


def test_a_frozen_worker_that_thaws_changes_nothing(site: Site) -> None:
    """It is stopped for longer than its lease; its job runs elsewhere; its own late outcome is told of and dropped."""
    job = site.jobs.once_slow.enqueue("a")
    frozen = site.start("--lease", "500ms")
    site.wait("start:a")
    frozen.send(signal.SIGSTOP)
    other = site.start("--lease", "500ms")
    site.wait("done:a")
    until(lambda: job.refresh().state == "done", "it is done")
    before = job.refresh()
    frozen.send(signal.SIGCONT)
    until(
        lambda: "is lost; jobs that run elsewhere now: 1" in frozen.log(), "it hears that its lease is lost"
    )
    until(lambda: len(site.app.inspect.workers()) == 2, "it comes back under another id")
    assert len({row.id for row in site.app.inspect.workers()}) == 2
    site.jobs.quick.enqueue_many([("q",)] * 50)
    site.wait("done:q", 50)
    assert job.refresh() == before
    assert other.stopped() == 0


@pytest.mark.slow
def test_a_storm_of_kills_loses_nothing(spawn: Spawn) -> None:
    """Workers die at random, and once the server; 400 jobs, half of them with a lock."""
    rng = random.Random(5)
    server = spawn(appendonly=True)
    with Site(server, JOBS) as site:
        jobs = site.app.enqueue_many(
            [site.jobs.unique.s(f"u{n}") if n % 2 else site.jobs.slow.s(f"s{n}", 0.02) for n in range(400)]
        )
        options = ("--lease", "700ms", "-c", "2", "--max-crashes", "50")
        workers = [site.start(*options) for _ in range(2)]
        kills = 0
        deadline_s = time.monotonic() + 40
        while site.app.inspect.stats().done < 400:
            assert time.monotonic() < deadline_s, site.app.inspect.stats()
            progress = site.app.inspect.stats().done
            target = progress + rng.randrange(10, 60)
            until(lambda t=target: site.app.inspect.stats().done >= min(t, 400), "it goes on", 20)
            if kills < 6:
                kills += 1
                victim = rng.randrange(len(workers))
                os.killpg(workers[victim].pid, signal.SIGKILL)
                workers[victim].kill()
                workers[victim] = site.start(*options)
                if kills == 3:
                    # One that finds no server at its start ends with 69, and rightly so.
                    until(lambda: all(" serves " in one.log() for one in workers), "both have begun")
                    server.kill()
                    server.start()
        stats = site.app.inspect.stats()
        assert (stats.done, stats.dead, stats.ready, stats.running, stats.locks) == (400, 0, 0, 0, 0)
        assert kills >= 4
        assert adds_up(stats)
        for n, job in enumerate(jobs):
            name = f"u{n}" if n % 2 else f"s{n}"
            starts = site.count(f"start:{name}")
            assert starts >= 1
            assert site.count(f"done:{name}") >= 1
            assert job.refresh().attempts <= starts + 1
        for worker in workers:
            assert worker.stopped() == 0
