"""Cases from public reports, the workers' part: G02, G04, G08, G09, G10, G12, G16, G18, G28, G33, G34.

Workers are real processes; what they did is counted by their jobs, outside the product. G17 is in
`tests/crash/test_worker_killed.py` and G25 in `tests/crash/test_server_away.py`.
"""

import contextlib
import hashlib
import itertools
import math
import os
import shutil
import signal
import statistics
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import psutil
import pytest

from rqlite_jobs import Retry
from rqlite_jobs.codec import encode
from rqlite_jobs.errors import PayloadTooLarge
from tests.conftest import Spawn, app_on
from tests.servers import Server
from tests.worker.inside import KINDS, burst, of_kind
from tests.worker.site import Process, Site, calm, monitored, until

pytestmark = pytest.mark.crash

JOBS = """
import hashlib

@app.job(retry=Retry(4, delay="1s", jitter=False), lock=until_executed(ttl="60s"))
def flaky(k):
    mark("start:" + k)
    if marked("start:" + k) % 3:
        raise ConnectionError("provider timeout")
    mark("done:" + k)

@app.job(lock=until_expired("3s", key="{k}"))
def ping(k):
    mark("done:" + k)

@app.job(retry=ONCE)
def huge():
    raise ValueError("x" * 5_000_000)

@app.job
def digest(data):
    mark("digest:" + hashlib.sha256(data if isinstance(data, bytes) else data.encode()).hexdigest())

@app.job
def note(k):
    mark("start:" + k)

@app.job
def nap(k, seconds):
    mark("start:" + k)
    time.sleep(seconds)
    mark("done:" + k)

@app.job
def noop(): ...

@app.job(retry=ONCE)
def fails():
    raise ValueError("bad data")
"""
LOOP = """
@app.job
async def never_enqueued(): ...
"""
SOURCES = {"threads": JOBS, "loop": JOBS + LOOP}


@pytest.fixture
def site(real_server: Server) -> Iterator[Site]:
    with Site(real_server, JOBS) as made:
        yield made


@pytest.fixture(params=SOURCES)
def either(real_server: Server, request: pytest.FixtureRequest) -> Iterator[Site]:
    """A site whose worker runs its jobs in threads, and one where an event loop hands them to threads."""
    with Site(real_server, SOURCES[request.param]) as made:
        made.kind = request.param
        yield made


def at(moment_s: float) -> None:
    """Wait for a moment of this machine's clock."""
    until(lambda: time.time() >= moment_s, "the moment comes")


# Uniqueness and locks


def test_g02_a_unique_job_may_retry_itself_and_keeps_its_lock_meanwhile(either: Site) -> None:
    worker = either.start()
    first = either.jobs.flaky.enqueue("a")
    (started_s,) = either.wait("start:a")
    at(started_s + 0.5)
    middle = either.jobs.flaky.enqueue("a")
    assert (middle.outcome, middle.id, middle.state) == ("duplicate", first.id, "scheduled")
    either.wait("done:a")
    until(lambda: first.refresh().state == "done", "it is settled")
    starts = either.times("start:a")
    assert [round(later - earlier) for earlier, later in itertools.pairwise(starts)] == [1, 1]
    assert all(1.0 <= later - earlier < 1.25 for earlier, later in itertools.pairwise(starts))
    stats = either.app.inspect.stats()
    assert (len(starts), either.count("done:a"), stats.failed, stats.dead) == (3, 1, 2, 0)
    assert (first.refresh().attempts, stats.locks) == (3, 0)
    assert either.jobs.flaky.enqueue("a").outcome == "enqueued"
    assert worker.stopped() == 0


def test_g04_until_expired_holds_for_its_whole_ttl_over_maintenance_and_restarts(site: Site) -> None:
    """In half the time of the case: a ttl of 3 s."""
    worker = site.serve("--lease", "600ms")
    begun_s = time.time()
    assert site.jobs.ping.enqueue("k").outcome == "enqueued"
    site.wait("done:k")
    at(begun_s + 0.5)
    site.app.run(site.app.operations.recover(3))
    assert worker.stopped() == 0
    worker = site.start("--lease", "600ms")
    for moment_s in (1, 2, 2.75):
        at(begun_s + moment_s)
        assert site.jobs.ping.enqueue("k").outcome == "duplicate"
        if moment_s == 2:
            left_ms = site.app.inspect.lock("ping:k").left_ms
            assert left_ms is not None
            assert 500 < left_ms <= 1_050
    at(begun_s + 3.25)
    assert site.jobs.ping.enqueue("k").outcome == "enqueued"
    site.wait("done:k", 2)
    until(lambda: site.app.inspect.stats().done == 2, "both are settled")
    assert worker.stopped() == 0


# Retries and dead


@pytest.mark.parametrize("kind", KINDS)
def test_g08_a_job_that_has_failed_99_times_waits_an_hour(real_server: Server, kind: str) -> None:
    app = of_kind(app_on(real_server), kind)

    @app.job(retry=Retry(1_000_000, jitter=False))
    def broken() -> None:
        raise ValueError("again")

    job = broken.enqueue()
    with real_server.client() as client:
        failed = b"\0".join([b"99", b"0", b"0", b"0", b"0", b"", b"ValueError('again')"])
        client.hset(app.keys.fixed("tries"), job.id, failed)
    failed_s = time.time()
    burst(app)
    found = job.refresh()
    assert (found.state, found.attempts) == ("scheduled", 100)
    assert found.run_at is not None
    assert abs(found.run_at.timestamp() - failed_s - 3600) <= 1


def test_g09_huge_error_texts(site: Site) -> None:
    jobs = site.jobs.huge.enqueue_many([()] * 20)

    def used() -> int:
        with site.server.client() as client:
            return int(client.info("memory")["used_memory"])

    before = used()
    worker = site.start("--burst")
    assert worker.ended() == 0
    assert used() - before <= 8 * 1024 * 1024
    assert site.app.inspect.stats().dead == 20
    for job in jobs:
        found = job.refresh()
        assert (found.last_error or "").startswith("ValueError('xxx")
        assert len(found.last_error or "") + len(found.traceback or "") <= 65_536
    listed = site.rqj("dead")
    assert len(listed) <= 1_500_000
    assert listed.count("ValueError") >= 20
    assert len(worker.log()) < 100_000


def test_g10_large_payloads_are_refused_at_the_default_and_carried_if_allowed(site: Site) -> None:
    text, raw = "é" * (4 * 1024 * 1024), os.urandom(8 * 1024 * 1024)
    for data in (text, raw):
        with pytest.raises(PayloadTooLarge, match=r"\d") as refused:
            site.jobs.digest.enqueue(data)
        assert refused.value.size > 8 * 1024 * 1024
        assert refused.value.limit == 256 * 1024
    assert site.app.inspect.stats().enqueued == 0

    # As large as they may be: whole, and no burden for a listing.
    half = 128 * 1024 - 100
    blocks = [os.urandom(half) for _ in range(20)]
    site.jobs.digest.enqueue_many([(one,) for one in blocks])
    began_s = time.monotonic()
    page = site.app.inspect.jobs("ready", limit=20)
    assert len(page) == 20
    assert time.monotonic() - began_s < 1
    assert len(site.rqj("jobs")) < 1_000_000
    assert site.start("--burst").ended() == 0
    for one in blocks:
        assert site.count("digest:" + hashlib.sha256(one).hexdigest()) == 1


def test_g10_with_a_larger_limit_eight_mebibytes_arrive_whole(real_server: Server) -> None:
    roomy = "\napp = App('test', url=app.link.code['url'], payload_max='20MiB')\n"
    with Site(real_server, roomy + JOBS) as site:
        raw = os.urandom(8 * 1024 * 1024)
        text = "☃" * (8 * 1024 * 1024 // 3)
        site.jobs.digest.enqueue(raw)
        site.jobs.digest.enqueue(text)
        assert site.start("--burst").ended() == 0
        for sent in (raw, text.encode()):
            assert site.count("digest:" + hashlib.sha256(sent).hexdigest()) == 1


# Schedule


def test_g12_past_negative_and_senseless_delays(either: Site) -> None:
    worker = either.serve()
    with either.server.client() as client:
        for senseless in (math.nan, math.inf, "abc", True):
            keys = client.dbsize()
            with pytest.raises((ValueError, TypeError)):
                either.jobs.note.options(delay=senseless).enqueue("never")
            assert client.dbsize() == keys
    sent_s = time.time()
    either.jobs.note.options(delay=-5).enqueue("negative")
    either.jobs.note.options(delay=0).enqueue("zero")
    either.jobs.note.options(run_at=datetime(1969, 1, 1, tzinfo=UTC)).enqueue("1969")
    runs = 3
    try:
        either.jobs.note.options(delay=-1e13).enqueue("ages")
        runs += 1
    except ValueError:
        pass
    until(lambda: either.app.inspect.stats().done == runs, "all have run")
    for k in ("negative", "zero", "1969"):
        (started_s,) = either.times("start:" + k)
        assert started_s - sent_s < 1
    cpu_s, began_s = worker.cpu_s(), time.monotonic()
    with monitored(either.server) as lines:
        at(time.time() + 1.5)
        assert len(lines) < 30
    assert (worker.cpu_s() - cpu_s) / (time.monotonic() - began_s) < 0.05
    assert either.app.inspect.stats().done == runs


# Cancel


def test_g16_cancel_against_a_running_herd(site: Site) -> None:
    for _ in range(4):
        site.start("-c", "1")
    jobs = site.app.enqueue_many([site.jobs.nap.s(f"k{n}", 0.02) for n in range(400)])
    site.wait("start:k0")
    answers = []
    for job in jobs:
        answers.append(job.cancel())
    until(lambda: site.app.inspect.stats().ready == site.app.inspect.stats().running == 0, "all is quiet")
    starts = [site.count(f"start:k{n}") for n in range(400)]
    assert [started == 0 for started in starts] == answers
    assert max(starts) == 1
    assert sum(answers) + sum(starts) == 400
    assert 0 < sum(answers) < 400
    stats = site.app.inspect.stats()
    assert (stats.cancelled, stats.done) == (sum(answers), sum(starts))

    begun_s = time.time()
    late = site.jobs.note.options(delay=1).enqueue("late")
    at(begun_s + 0.5)
    assert [late.cancel(), late.cancel()] == [True, False]
    at(begun_s + 1.3)
    assert site.count("start:late") == 0
    assert late.refresh().state == "cancelled"


# Stopping


def test_g18_a_polite_stop_lets_the_job_finish(spawn: Spawn) -> None:
    """TERM and INT, in threads and on the loop, side by side: a job of 3 s runs and one is ready. And two idle ones."""
    with contextlib.ExitStack() as stack:

        def serve(source: str) -> tuple[Site, Process]:
            site = stack.enter_context(Site(spawn(), SOURCES[source]))
            return site, site.serve("-c", "1", "--stop-after", "10s")

        kinds = [(source, number) for source in SOURCES for number in (signal.SIGTERM, signal.SIGINT)]
        busy = [serve(source) for source, _ in kinds]
        idle = [serve(source) for source in SOURCES]
        waiting = []
        for site, _ in busy:
            site.jobs.nap.enqueue("a", 3)
            waiting.append(site.jobs.nap.enqueue("b", 3))
        started_s = [site.wait("start:a")[0] for site, _ in busy]
        at(max(started_s) + 0.5)
        for (_, worker), (_, number) in zip(busy, kinds, strict=True):
            worker.send(number)
        asked_s = time.time()
        for _, worker in idle:
            worker.send(signal.SIGTERM)
            assert worker.ended() == 0
            assert time.time() - asked_s < 1.5
        for (site, worker), began_s, job in zip(busy, started_s, waiting, strict=True):
            assert worker.ended() == 0
            assert 3.0 <= time.time() - began_s <= 4.0
            assert (site.count("done:a"), site.count("start:b"), job.refresh().state) == (1, 0, "ready")
        for site, _ in [*busy, *idle]:
            assert len(site.app.inspect.workers()) == 0


def test_g18_a_second_term_hands_back_at_once_and_tstp_makes_it_quiet(either: Site) -> None:
    worker = either.serve("-c", "2")
    job = either.jobs.nap.enqueue("a", 30)
    either.wait("start:a")
    worker.send(signal.SIGTSTP)
    # It is quiet once it does not listen any more.
    until(lambda: not either.listeners(), "it listens no more")
    other = either.jobs.note.enqueue("b")
    worker.send(signal.SIGTERM)
    until(lambda: worker.code is None and "serves" in worker.log(), "it waits for its job")
    asked_s = time.time()
    worker.send(signal.SIGINT)
    assert worker.ended() == 0
    assert time.time() - asked_s < 3
    assert [one.refresh().state for one in (job, other)] == ["ready", "ready"]
    assert (job.refresh().attempts, either.count("start:b")) == (0, 0)
    assert len(either.app.inspect.workers()) == 0


def test_a_deadline_hands_back_with_no_attempt_counted(either: Site) -> None:
    worker = either.serve("-c", "1", "--stop-after", "500ms")
    job = either.jobs.nap.enqueue("a", 30)
    (started_s,) = either.wait("start:a")
    worker.send(signal.SIGTERM)
    assert worker.ended() == 0
    assert 0.5 <= time.time() - started_s < 4
    assert (job.refresh().state, job.refresh().attempts, either.app.inspect.stats().attempts) == (
        "ready",
        0,
        0,
    )


def test_a_burst_ends_with_0_when_nothing_is_ready_or_due(either: Site) -> None:
    later = either.jobs.note.options(delay="1h").enqueue("later")
    jobs = either.jobs.note.enqueue_many([("now",)] * 30)
    assert either.start("--burst").ended() == 0
    assert either.count("start:now") == 30
    assert {job.refresh().state for job in jobs} == {"done"}
    assert later.refresh().state == "scheduled"


def test_queues_in_the_order_of_the_command_line(site: Site) -> None:
    for n, queue in enumerate(["low", "high"] * 5):
        site.jobs.note.options(queue=queue).enqueue(f"{queue}{n}")
    site.jobs.note.options(queue="other").enqueue("other")
    assert site.start("-q", "high,low", "-c", "1", "--burst").ended() == 0
    names = [line.split()[0] for line in (site.folder / "marks").read_text().splitlines()]
    wanted = [f"start:high{n}" for n in range(1, 10, 2)] + [f"start:low{n}" for n in range(0, 10, 2)]
    assert names == wanted


# Clocks


PRODUCE = """
import jobs, redis, sys
job = jobs.unique.options(delay=2, queue="a").enqueue()
print(job.outcome, redis.Redis(unix_socket_path=sys.argv[1]).pttl("rqj:{test}:lock:unique:k"))
"""


def with_faketime(offset: str) -> tuple[str, ...]:
    # A wrong clock on the wall goes with a right monotonic one. (Shifted, timed waits of threads would last longer.)
    return ("faketime", "--exclude-monotonic", "-f", offset)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("faketime") is None, reason="faketime is not on the PATH")
def test_g28_wrong_clocks(spawn: Spawn) -> None:
    """A producer 300 s slow, worker A 300 s fast, worker B right; HB 2 s."""
    server = spawn(lane="valkey")
    source = (
        JOBS
        + """
@app.job(lock=until_executed(key="k", ttl="10s"))
def unique():
    mark("start:unique")
"""
    )
    with Site(server, source) as site:
        site.start("--lease", "2s", "-q", "a", before=with_faketime("+300s"))
        until(lambda: len(site.app.inspect.workers()) == 1, "A is registered")
        before_s = time.time()
        outcome, left = site.python(PRODUCE, str(server.socket), before=with_faketime("-300s")).split()
        after_s = time.time()
        assert outcome == "enqueued"
        assert 9_900 <= int(left) <= 10_000
        until(lambda: site.count("start:unique") == 1, "it starts")
        started_s = time.time()
        assert before_s + 2.0 <= started_s <= after_s + 2.5

        right = site.start("--lease", "2s", "-q", "b")
        job = site.jobs.nap.options(queue="b").enqueue("long", 4)
        site.wait("start:long")
        site.wait("done:long")
        until(lambda: job.refresh().state == "done", "it is done")
        assert (site.count("start:long"), job.refresh().attempts, job.refresh().crashes) == (1, 1, 0)
        now = site.app.inspect.now()
        for row in site.app.inspect.workers():
            assert row.started_at is not None
            assert row.lease_ends_at is not None
            assert -2 <= (now - row.started_at).total_seconds() <= 30
            assert 0 <= (row.lease_ends_at - now).total_seconds() <= 2.5
        for moment in (job.refresh().enqueued_at, job.refresh().started_at, job.refresh().finished_at):
            assert moment is not None
            assert -0.1 <= (now - moment).total_seconds() <= 30
        assert right.stopped() == 0


# Cost


@pytest.mark.slow
def test_g33_cost_of_doing_nothing_and_of_a_single_job(spawn: Spawn) -> None:
    """In a shorter time than the case has; a worker with threads and one with a loop, each on a server of its own."""
    idle_s = 6
    with contextlib.ExitStack() as stack:
        sites = [stack.enter_context(Site(spawn(), source)) for source in SOURCES.values()]
        workers = [site.serve() for site in sites]
        logs = [stack.enter_context(monitored(site.server)) for site in sites]
        cpu_s, began_s = [worker.cpu_s() for worker in workers], time.monotonic()
        at(time.time() + idle_s)
        for worker, used_s, lines in zip(workers, cpu_s, logs, strict=True):
            assert len(lines) <= 2 * idle_s, [line[:60] for line in lines]
            assert (worker.cpu_s() - used_s) / (time.monotonic() - began_s) <= 0.02
        for site in sites:

            def prompt(site: Site = site) -> bool:
                took_ms = []
                for _ in range(40):
                    known = site.count("start:one")
                    sent_s = time.time()
                    site.jobs.note.enqueue("one")
                    took_ms.append((site.wait("start:one", known + 1)[-1] - sent_s) * 1000)
                    at(time.time() + 0.01)
                return statistics.median(took_ms) <= 10 and sorted(took_ms)[37] <= 50

            assert calm(prompt)


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES)
def test_g33_one_job_among_20_idle_workers(real_server: Server, source: str) -> None:
    """20 children of two processes; what a job costs beyond what they cost idle."""
    code = (
        SOURCES[source]
        + """
if os.environ.get("CREW"):
    import threading
    from rqlite_jobs.worker import Worker
    for _ in range(9):
        threading.Thread(target=Worker(app).run, daemon=True).start()
"""
    )
    with Site(real_server, code) as site:
        for _ in range(2):
            site.start(CREW="1")
        until(lambda: len(site.listeners()) == 20, "20 listen")

        def cheap() -> bool:
            with monitored(real_server) as lines:
                at(time.time() + 1)
                idle = len(lines)
                lines.clear()
                known = site.count("start:one")
                site.jobs.note.enqueue("one")
                site.wait("start:one", known + 1)
                at(time.time() + 1)
                return len(lines) - idle <= 15 and idle <= 2 * 20

        assert calm(cheap)


@pytest.mark.slow
def test_g34_memory_of_a_long_lived_worker(either: Site) -> None:
    worker = either.serve()
    process = psutil.Process(worker.pid)

    def run(noops: int, failures: int) -> tuple[float, int, int]:
        target = either.app.inspect.stats().attempts + noops + failures
        for _ in range(10):
            either.jobs.noop.enqueue_many([()] * (noops // 10))
            either.jobs.fails.enqueue_many([()] * (failures // 10))
        until(lambda: either.app.inspect.stats().attempts == target, "all have run")
        return process.memory_info().rss / 1024 / 1024, process.num_threads(), process.num_fds()

    # The loop hands each of these to a thread, which is slower; a leak would show all the same.
    before, after = run(7_000, 700), run(23_000 if either.kind == "threads" else 8_000, 2_000)
    assert after[0] - before[0] <= 10
    assert abs(after[1] - before[1]) <= 1
    assert abs(after[2] - before[2]) <= 1
    assert len(worker.lines()) <= 3_000 + 20


def test_no_thread_of_a_worker_outlives_it(site: Site) -> None:
    before = threading.active_count()
    for _ in range(3):
        site.jobs.noop.enqueue_many([()] * 10)
        burst(site.app)
    until(lambda: threading.active_count() <= before, "its threads have ended")


# Encoding is checked where the payload is made: a worker never meets an argument it cannot read back.


def test_a_payload_is_what_its_worker_reads(site: Site) -> None:
    job = site.jobs.note.enqueue("☃\0\U0001d518")
    with site.server.client() as client:
        record = client.hget(site.app.keys.fixed("jobs"), job.id)
    assert record.rpartition(b"\0")[2] == encode("note", ("☃\0\U0001d518",), {})


def test_a_worker_that_is_refused_says_so_in_one_line(site: Site) -> None:
    worker: Process = site.start("--lease", "1s", "--beat", "2s")
    assert worker.ended(10) == 2
    assert "Traceback" not in worker.log()
    assert "beat" in worker.log()
