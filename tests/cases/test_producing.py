"""G01 G03 G06 G11 G12 G16 G22 G23 G24 G27: what a producer sees of them, on real servers."""

import math
import sys
from datetime import UTC, datetime
from typing import Any

import pytest

from rqlite_jobs import App, until_executed
from rqlite_jobs.errors import BadDuration, BadOption, UnknownJob, UnserializableArguments, WrongArguments
from rqlite_jobs.testing import FrozenClock, drain
from tests.cases.processes import told
from tests.conftest import app_on
from tests.servers import Server

pytestmark = pytest.mark.lanes("valkey", "redis", "cluster")


def numbers(app: App) -> dict[str, int]:
    """How many jobs are where, and how many locks there are."""
    found = app.run(app.operations.survey())
    return {
        "ready": sum(queue.ready for queue in found.queues),
        "scheduled": sum(queue.scheduled for queue in found.queues),
        "running": found.running,
        "locks": app.run(app.operations.holders()).count,
    }


# G01: same call, other spelling, is one unique job.

SYNC = """
import json, sys
from rqlite_jobs import App, until_executed
app = App("test", url=sys.argv[1])
@app.job(lock=until_executed())
def sync(user_id, opts=None, *, full=False): ...
job = sync.enqueue(8, {"x": {"p": 1, "q": 2}})
print(json.dumps([job.outcome, job.id]))
"""


def test_g01_same_call_other_spelling(app: App, server: Server) -> None:
    @app.job(lock=until_executed())
    def sync(user_id: int, opts: Any = None, *, full: bool = False) -> None: ...

    first = sync.enqueue(7, {"a": 1, "b": 2})
    others = [
        sync.enqueue(7, {"b": 2, "a": 1}),
        sync.enqueue(user_id=7, opts={"a": 1, "b": 2}),
        sync.enqueue(7, opts={"b": 2, "a": 1}, full=False),
    ]
    full = sync.enqueue(7, {"a": 1, "b": 2}, full=True)
    assert first.outcome == "enqueued"
    assert [(job.outcome, job.holder_id, job.id) for job in others] == [("duplicate", first.id, first.id)] * 3
    assert full.outcome == "enqueued"
    assert numbers(app) == {"ready": 2, "scheduled": 0, "running": 0, "locks": 2}

    one, two = (told(SYNC, server.url, PYTHONHASHSEED=seed) for seed in ("1", "2"))
    assert (one[0], two) == ("enqueued", ["duplicate", one[1]])
    assert numbers(app)["ready"] == numbers(app)["locks"] == 3


# G03: deleting or emptying frees the locks.


def test_g03_deleting_frees_the_lock(app: App) -> None:
    @app.job(lock=until_executed(ttl=3600))
    def mail(n: int) -> None: ...

    later = mail.options(delay=3600)
    first = later.enqueue(1)
    assert app.run(app.operations.delete([first.id])) == ["deleted"]
    again = later.enqueue(1)
    assert (again.outcome, again.id != first.id) == ("enqueued", True)
    assert numbers(app) == {"ready": 0, "scheduled": 1, "running": 0, "locks": 1}
    assert app.run(app.operations.delete(["nope"])) == ["unknown"]
    assert app.cancel_job("nope") is False


def test_g03_emptying_frees_the_locks(app: App) -> None:
    @app.job(lock=until_executed(ttl=3600))
    def mail(n: int) -> None: ...

    calls = [(n,) for n in range(1, 1001)]
    assert {job.outcome for job in mail.enqueue_many(calls)} == {"enqueued"}
    assert {job.outcome for job in mail.enqueue_many(calls)} == {"duplicate"}
    assert numbers(app) == {"ready": 1000, "scheduled": 0, "running": 0, "locks": 1000}
    while app.run(app.operations.purge("default"))[2]:
        pass
    assert numbers(app) == {"ready": 0, "scheduled": 0, "running": 0, "locks": 0}
    assert {job.outcome for job in mail.enqueue_many(calls)} == {"enqueued"}


# G06: a thousand callers, one job.

HERD = """
import json, multiprocessing, sys
from rqlite_jobs import App, until_executed
app = App("test", url=sys.argv[1])
@app.job(lock=until_executed())
def unique(n): ...

def child(barrier, pipe):
    for _ in range(5):
        barrier.wait()
        try:
            answers = [unique.enqueue(1) for _ in range(25)]
        except BaseException:
            barrier.abort()
            pipe.send([])
            raise
        pipe.send([(job.outcome, job.id, job.holder_id) for job in answers])

fork = multiprocessing.get_context("fork")
barrier = fork.Barrier(41, timeout=20)
pipes = [fork.Pipe(duplex=False) for _ in range(40)]
children = [fork.Process(target=child, args=(barrier, pipe)) for _, pipe in pipes]
for process in children:
    process.start()
rounds = []
for _ in range(5):
    barrier.wait()
    answers = [answer for pipe, _ in pipes for answer in pipe.recv()]
    survey = app.run(app.operations.survey())
    rounds.append([answers, survey.queues[0].ready, survey.locks])
    app.caller.command("FLUSHALL")
for process in children:
    process.join()
print(json.dumps(rounds))
"""


def test_g06_a_thousand_callers_one_job(real_server: Server) -> None:
    rounds = told(HERD, real_server.url)
    assert len(rounds) == 5
    for answers, ready, locks in rounds:
        assert len(answers) == 1000
        queued = [id for outcome, id, _ in answers if outcome == "enqueued"]
        assert len(queued) == 1
        duplicates = [(id, holder) for outcome, id, holder in answers if outcome == "duplicate"]
        assert duplicates == [(queued[0], queued[0])] * 999
        assert (ready, locks) == (1, 1)


# G11: aware, naive and ambiguous times. Naive ones are refused.

TIMES = """
import json, sys, time
from datetime import datetime
from zoneinfo import ZoneInfo
from rqlite_jobs import App
time.tzset()
app = App("test", url=sys.argv[1])
@app.job
def at(): ...
sydney = ZoneInfo("Australia/Sydney")
when = [
    datetime.fromisoformat("2031-07-01T02:00:00+00:00"),
    datetime(2031, 7, 1, 12, tzinfo=sydney),
    datetime(2031, 4, 6, 2, 30, tzinfo=sydney, fold=0),
    datetime(2031, 4, 6, 2, 30, tzinfo=sydney, fold=1),
    datetime(2031, 7, 1, 12),
    datetime(2031, 1, 15, 12),
]
told = []
for one in when:
    try:
        told.append(at.options(run_at=one).enqueue().refresh().run_at.timestamp())
    except ValueError as error:
        told.append(str(error))
print(json.dumps(told))
"""


@pytest.mark.parametrize("zone", ["Australia/Sydney", "UTC", "America/New_York"])
def test_g11_aware_naive_and_ambiguous_times(app: App, server: Server, zone: str) -> None:
    *aware, c, d = told(TIMES, server.url, TZ=zone)
    assert aware == [1_940_637_600, 1_940_637_600, 1_933_169_400, 1_933_173_000]
    assert "2031-07-01T12:00:00, which has no zone" in c
    assert "2031-01-15T12:00:00, which has no zone" in d
    listed = app.run(app.operations.page("scheduled", "default", limit=10)).jobs
    assert sorted(job.run_at_ms for job in listed) == sorted(int(second) * 1000 for second in aware)


# G12: past, negative and senseless delays.


def test_g12_what_is_over_is_due_now(server: Server) -> None:
    app = app_on(server)
    ran: list[str] = []

    @app.job
    def mark(what: str) -> None:
        ran.append(what)

    mark.options(delay=-5).enqueue("-5")
    mark.options(delay=-1e13).enqueue("-1e13")
    mark.options(run_at=datetime(1969, 1, 1, tzinfo=UTC)).enqueue("1969")
    mark.options(delay=0).enqueue("0")
    assert numbers(app)["ready"] == 4
    assert drain(app) == 4
    assert ran == ["-5", "-1e13", "1969", "0"]


@pytest.mark.parametrize("delay", [math.nan, math.inf, -math.inf, "abc", "", True, "5 minutes", [5], 1e13])
def test_g12_senseless_delays_leave_nothing(app: App, server: Server, delay: Any) -> None:
    handler = app.job(name="job")(lambda: None)
    with pytest.raises(BadDuration) as caught:
        handler.options(delay=delay).enqueue()
    assert isinstance(caught.value, ValueError)
    with pytest.raises(BadOption):
        handler.options(run_at=datetime(2031, 7, 1)).enqueue()
    assert server.client().dbsize() == 0


# G16: the delayed job of it.


def test_g16_a_delayed_job_is_cancelled_once(server: Server) -> None:
    clock = FrozenClock(1_900_000_000)
    app = app_on(server, clock=clock)
    ran: list[int] = []

    @app.job
    def mark(n: int) -> None:
        ran.append(n)

    job = mark.options(delay="2s").enqueue(1)
    clock.advance("1s")
    assert [job.cancel(), job.cancel()] == [True, False]
    clock.advance("5s")
    assert drain(app) == 0
    assert ran == []
    assert job.refresh().state == "cancelled"
    assert numbers(app) == {"ready": 0, "scheduled": 0, "running": 0, "locks": 0}


# G22: keyword arguments that look like options.

LOOKALIKES: dict[str, Any] = {
    "timeout": 5,
    "ttl": 9,
    "delay": 3,
    "at": "x",
    "queue": "x",
    "retry": 1,
    "max_retries": 1,
    "unique": 1,
    "priority": 1,
    "id": "i",
    "job_id": "j",
    "name": "n",
    "description": "d",
    "meta": {},
    "args": 1,
    "kwargs": 2,
}


@pytest.mark.parametrize("lock", [None, until_executed()])
def test_g22_arguments_that_look_like_options(app: App, lock: Any) -> None:
    met: list[dict[str, Any]] = []

    @app.job(lock=lock)
    def f(**kw: Any) -> None:
        met.append(kw)

    job = f.enqueue(**LOOKALIKES)
    assert (job.state, job.queue, len(job.id), job.run_at) == ("ready", "default", 20, None)
    assert job.kwargs == LOOKALIKES
    proper = f.options(queue="slow", delay=-1).enqueue(**LOOKALIKES, self=1, fn=2)
    assert (proper.state, proper.queue) == ("ready", "slow")
    assert drain(app) == 2
    assert met == [LOOKALIKES, {**LOOKALIKES, "self": 1, "fn": 2}] or met == [
        {**LOOKALIKES, "self": 1, "fn": 2},
        LOOKALIKES,
    ]
    assert len(LOOKALIKES) == 16


# G23: bad calls are refused at the door.


@pytest.mark.parametrize(
    ("args", "kwargs", "error", "argument"),
    [
        ((), {}, WrongArguments, "'a'"),
        ((1, 2), {}, WrongArguments, "argument 2 of 2"),
        ((1,), {"c": 3}, WrongArguments, "'c'"),
        ((1,), {"b": lambda: 0}, UnserializableArguments, "'b'"),
        ((object(),), {}, UnserializableArguments, "'a'"),
        ((sys.stdout,), {}, UnserializableArguments, "'a'"),
    ],
)
def test_g23_bad_calls_are_refused(
    app: App, server: Server, args: Any, kwargs: Any, error: type[Exception], argument: str
) -> None:
    @app.job(lock=until_executed())
    def f(a: Any, *, b: Any = 1) -> None: ...

    for call in (f.enqueue, f.options(lock=None).enqueue):
        with pytest.raises(TypeError) as caught:
            call(*args, **kwargs)
        assert type(caught.value) is error
        assert "job 'f'" in str(caught.value)
        assert argument in str(caught.value)
    assert server.client().dbsize() == 0


def test_g23_an_unknown_job_is_refused(app: App, server: Server) -> None:
    with pytest.raises(UnknownJob) as caught:
        app.handler("nope").enqueue(1)
    assert isinstance(caught.value, LookupError)
    assert server.client().dbsize() == 0


# G24: a client that decodes, and text of any script.


def test_g24_decoding_client_and_text_of_any_script(server: Server) -> None:
    app = App("größe", redis=server.client(decode_responses=True))
    met: list[str] = []

    @app.job(name="größe", queue="очередь", lock=until_executed(key="{text}"))
    def measure(text: str) -> None:
        met.append(text)

    job = measure.enqueue("☃\U0001d518")
    assert (job.name, job.queue, job.lock_key) == ("größe", "очередь", "größe:☃\U0001d518")
    again = measure.enqueue("☃\U0001d518")
    assert (again.id, again.name, again.queue, again.args) == (job.id, "größe", "очередь", ("☃\U0001d518",))
    measure.options(lock=None).enqueue("☃\x00\U0001d518")
    assert drain(app) == 2
    assert sorted(met) == ["☃\x00\U0001d518", "☃\U0001d518"]


# G27: fork after the first use.

FORKS = """
import asyncio, json, os, random, sys
from rqlite_jobs import App
app = App("test", url=sys.argv[1])
@app.job
def work(n): ...

async def some():
    return [(await work.aenqueue(n)).id for n in range(50)]

ids = [work.enqueue(0).id]
random.seed(1)
children = []
for _ in range(8):
    reader, writer = os.pipe()
    if not (pid := os.fork()):
        os.close(reader)
        found = [work.enqueue(n).id for n in range(100)] + asyncio.run(some())
        found += [job.id for job in work.enqueue_many([(n,) for n in range(50)])]
        stats = app.run(app.operations.survey())
        with os.fdopen(writer, "w") as pipe:
            json.dump([found, stats.queues[0].ready], pipe)
        os._exit(0)
    os.close(writer)
    children.append((pid, reader))
for pid, reader in children:
    with os.fdopen(reader) as pipe:
        found, ready = json.load(pipe)
    assert 200 <= ready <= 1601, ready
    ids += found
    assert os.waitpid(pid, 0)[1] == 0
ids.append(work.enqueue(1).id)
print(json.dumps([ids, app.run(app.operations.survey()).queues[0].ready]))
"""


def test_g27_fork_after_the_first_use(server: Server) -> None:
    ids, ready = told(FORKS, server.url)
    assert (len(ids), len(set(ids)), ready) == (1602, 1602, 1602)
