"""`why`: one plain answer to why a job is where it is."""

import asyncio
import inspect
import json
from collections.abc import Callable

import pytest

from rqlite_jobs import JobNotFound, Retry, until_executed
from rqlite_jobs.inspector import Reason
from rqlite_jobs.operations import Settlement
from rqlite_jobs.testing import FrozenClock, drain
from tests.conftest import app_on
from tests.servers import Server

pytestmark = pytest.mark.lanes("fake", "valkey")

NONCE = "n" * 16


class Shop:
    """An app in simulated time with jobs that end in every way, and workers that only hold a lease."""

    def __init__(self, server: Server) -> None:
        self.clock = FrozenClock(1_900_000_000)
        self.app = app_on(server, clock=self.clock)

        @self.app.job(queue="sales")
        def noop() -> None: ...

        @self.app.job(queue="sales", retry=Retry(max_attempts=2, delay="60s", jitter=False))
        def fails() -> None:
            raise ValueError("bad data")

        @self.app.job(queue="sales", lock=until_executed(on_conflict="reject"))
        def rejecting() -> None: ...

        self.noop, self.fails, self.rejecting = noop, fails, rejecting

    def serve(self, worker: str = "w1", **facts: object) -> None:
        """Register a worker."""
        known = {
            "host": "h1",
            "pid": "17",
            "concurrency": "1",
            "queues": [],
            "names": [],
            "all_queues": "1",
            **facts,
        }
        told = {name: one if isinstance(one, str) else json.dumps(one) for name, one in known.items()}
        self.app.run(self.app.operations.register(worker, 15_000, told))

    def turn(self, *ends: Settlement, worker: str = "w1", count: int = 1) -> list[tuple[str, str]]:
        """Let it settle and claim; ids and tokens."""
        call = self.app.operations.turn(worker, NONCE, ["sales"], ends, count)
        return [(claim.id, claim.token) for claim in self.app.run(call).claims]

    def why(self, id: str) -> Reason:
        """Why a job is where it is."""
        return self.app.inspect.why(id)


@pytest.fixture
def shop(server: Server) -> Shop:
    return Shop(server)


def no_worker(shop: Shop) -> str:
    return shop.noop.enqueue().id


def not_served(shop: Shop) -> str:
    shop.serve(all_queues="0", queues=["mail"])
    return shop.noop.enqueue().id


def not_known(shop: Shop) -> str:
    shop.serve(names=["another"])
    return shop.noop.enqueue().id


def paused(shop: Shop) -> str:
    shop.serve()
    id = shop.noop.enqueue().id
    shop.app.control.pause("sales", for_="10m", by="ann")
    return id


def paused_for_good(shop: Shop) -> str:
    id = paused(shop)
    shop.app.control.pause("sales", by="bob")
    return id


def next_one(shop: Shop) -> str:
    shop.serve(names=["noop"])
    return shop.noop.enqueue().id


def busy(shop: Shop) -> str:
    shop.serve()
    shop.noop.enqueue()
    shop.turn()
    return shop.noop.enqueue().id


def in_the_line(shop: Shop) -> str:
    shop.serve(concurrency="9")
    return shop.noop.enqueue_many([()] * 4)[-1].id


def running(shop: Shop) -> str:
    shop.serve()
    id = shop.noop.enqueue().id
    shop.turn()
    return id


def silent(shop: Shop) -> str:
    id = running(shop)
    shop.clock.advance("16s")
    return id


def fallen(shop: Shop) -> str:
    id = running(shop)
    key = shop.app.keys.fixed
    shop.app.caller.command("ZREM", key("workers"), "w1")
    shop.app.caller.command("ZADD", key("fallen"), 1, "w1")
    return id


def delayed(shop: Shop) -> str:
    return shop.noop.options(delay="5m").enqueue().id


def overdue(shop: Shop) -> str:
    id = shop.noop.options(delay="5m").enqueue().id
    shop.clock.advance("5m")
    shop.serve()
    return id


def retry(shop: Shop) -> str:
    id = shop.fails.enqueue().id
    drain(shop.app)
    return id


def put_off(shop: Shop) -> str:
    id = shop.noop.enqueue().id
    shop.serve()
    (claim,) = shop.turn()
    shop.turn(Settlement("putoff", *claim, delay_ms=2000))
    return id


def failed(shop: Shop) -> str:
    id = retry(shop)
    shop.clock.advance("60s")
    drain(shop.app)
    return id


def crashed(shop: Shop) -> str:
    id = shop.noop.enqueue().id
    shop.serve()
    shop.turn()
    shop.app.run(shop.app.operations.recover(1, ["w1"]))
    return id


def buried(shop: Shop) -> str:
    id = shop.noop.enqueue().id
    shop.app.run(shop.app.operations.bury([id], "the customer is gone"))
    return id


def rejected(shop: Shop) -> str:
    shop.rejecting.enqueue()
    return shop.rejecting.enqueue().id


def done(shop: Shop) -> str:
    id = shop.noop.enqueue().id
    drain(shop.app)
    return id


def cancelled(shop: Shop) -> str:
    job = shop.noop.enqueue()
    job.cancel()
    return job.id


def expired(shop: Shop) -> str:
    id = shop.noop.options(expires_in="5s").enqueue().id
    shop.clock.advance("6s")
    drain(shop.app)
    return id


def malformed(shop: Shop) -> str:
    id = shop.noop.enqueue().id
    shop.app.caller.command("HSET", shop.app.keys.fixed("jobs"), id, "mine")
    return id


@pytest.mark.parametrize(
    ("make", "word", "said"),
    [
        (no_worker, "no_worker", "no worker runs"),
        (not_served, "not_served", "no worker serves its queue 'sales'"),
        (not_known, "not_known", "knows a job 'noop'"),
        (paused, "paused", "'sales' is paused, by ann"),
        (paused_for_good, "paused", "'sales' is paused until somebody resumes it, by bob"),
        (next_one, "next", "about to be started"),
        (busy, "busy", "1 jobs run in 1 slots that serve its queue, and 0 others are ready"),
        (in_the_line, "busy", "0 jobs run in 9 slots that serve its queue, and 3 others are ready"),
        (running, "running", "the worker w1 (h1, pid 17) runs it"),
        (silent, "silent", "its lease is over"),
        (fallen, "silent", "about to be given back"),
        (delayed, "delayed", "waits for the time it was given"),
        (overdue, "next", "about to be started"),
        (retry, "retry", "it failed once, the last time with ValueError('bad data')"),
        (put_off, "unknown_job", "knows a job 'noop'; it was put off once"),
        (failed, "dead", "it failed 2 times, the last time with ValueError('bad data')"),
        (crashed, "dead", "1 of its attempts ended with their process"),
        (buried, "dead", "it was buried: the customer is gone"),
        (rejected, "dead", "it was refused as a duplicate of"),
        (done, "done", "it ran to its end"),
        (cancelled, "cancelled", "cancelled before it was started"),
        (expired, "expired", "its time was over"),
        (malformed, "malformed", "not one of ours"),
    ],
)
def test_why(shop: Shop, make: Callable[[Shop], str], word: str, said: str) -> None:
    id = make(shop)
    reason = shop.why(id)
    assert (reason.id, reason.word) == (id, word)
    assert said in reason.text
    assert reason.state == shop.app.inspect.look([id])[0].state
    waits = {"delayed": 300, "retry": 60, "unknown_job": 2}
    if word in waits:
        assert reason.until is not None
        assert (reason.until - reason.now).total_seconds() == waits[word]
    elif word == "paused":
        assert (reason.until is None) == ("until somebody" in said)
    else:
        assert reason.until is None
    documented = inspect.getdoc(Reason) or ""
    assert word in documented
    assert word in documented.partition("word: why:")[2].partition("text:")[0]


def test_a_worker_of_another_queue_and_name_does_not_count(shop: Shop) -> None:
    shop.serve("w1", all_queues="0", queues=["mail"], concurrency="50")
    shop.serve("w2", all_queues="0", queues=["sales"], names=["noop", "fails"], concurrency="2")
    assert shop.why(shop.noop.enqueue().id).word == "next"
    shop.noop.enqueue_many([(), ()])
    assert "in 2 slots" in shop.why(shop.noop.enqueue().id).text
    shop.clock.advance("16s")
    assert shop.why(shop.noop.enqueue().id).word == "no_worker"


def test_one_that_is_not_known(shop: Shop) -> None:
    with pytest.raises(JobNotFound):
        shop.why("nobody's")


def test_its_twin(shop: Shop) -> None:
    assert asyncio.run(shop.app.inspect.awhy(shop.noop.enqueue().id)).word == "no_worker"
