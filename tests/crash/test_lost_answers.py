"""Promise P6: repeating a request whose answer was lost has the effect of doing it once.

A real proxy cuts the connection after the server has carried the request out (and before it has seen it, and in the
middle, and long after the client gave up on it).
"""

import asyncio
import os
import random
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from rqlite_jobs import App
from rqlite_jobs.address import Address
from rqlite_jobs.caller import AsyncCaller, Caller
from rqlite_jobs.connection import Connections
from rqlite_jobs.operations import Call, Settlement
from rqlite_jobs.worker import Worker
from tests.lua.stage import LEASE_MS, NONCE, Stage, job, locked
from tests.servers import Server
from tests.wires import How, Proxy, proxied

pytestmark = [pytest.mark.crash, pytest.mark.real]
EVERY_WAY: list[How] = ["answer", "torn answer", "request", "torn request", "held request"]


@pytest.fixture
def proxy(real_server: Server) -> Iterator[Proxy]:
    with proxied(real_server) as made:
        yield made


@pytest.fixture
def stage(real_server: Server) -> Stage:
    """What the test looks at, past the proxy."""
    return Stage(real_server)


class Driver:
    """A caller behind the proxy, blocking or async; both are asked in the same way."""

    def __init__(self, kind: str, proxy: Proxy) -> None:
        connections = Connections(Address.parse(proxy.url))
        self._runner = asyncio.Runner() if kind == "async" else None
        if kind == "async":
            self.caller: Any = AsyncCaller(connections, random.Random(7), sleep=self._rest)
        else:
            self.caller = Caller(connections, random.Random(7), sleep=lambda _: None)

    def run(self, call: Call[Any], **options: Any) -> Any:
        """Send a call."""
        if self._runner:
            return self._runner.run(self.caller.run(call, **options))
        return self.caller.run(call, **options)

    def close(self) -> None:
        """End its loop."""
        if self._runner:
            self._runner.run(self.caller.connections.aclose())
            self._runner.close()

    @staticmethod
    async def _rest(_: float) -> None:
        await asyncio.sleep(0)


@pytest.fixture(params=["blocking", "async"])
def driver(request: pytest.FixtureRequest, proxy: Proxy) -> Iterator[Driver]:
    made = Driver(request.param, proxy)
    yield made
    made.close()


def jobs_of(stage: Stage) -> dict[str, str]:
    return dict(stage.world().get("jobs", {}))


# Enqueue.


@pytest.mark.parametrize("how", EVERY_WAY)
@pytest.mark.parametrize("times", [1, 3])
def test_one_job_comes_of_one_enqueue(
    stage: Stage, proxy: Proxy, driver: Driver, how: How, times: int
) -> None:
    proxy.lose(how, times)
    answer = driver.run(stage.ops.enqueue([job("a")]))
    assert proxy.lost == times
    assert [(one.outcome, one.id, one.state, one.now_ms) for one in answer] == [
        ("enqueued", "a", "ready", 1000)
    ]
    proxy.deliver()  # what was still under way comes in late
    after = stage.world()
    assert (after["ready:sales:0"], after["totals"]) == (["a"], {"enqueued": "1"})


@pytest.mark.parametrize("how", EVERY_WAY)
def test_a_batch_gets_the_same_answers(stage: Stage, proxy: Proxy, driver: Driver, how: How) -> None:
    stage.enqueue(locked("holder", "held"))
    batch = [
        job("a"), job("b", delay_ms=5), locked("c"), locked("d"),
        locked("e", "held"), locked("f", "held", on_conflict="reject"), job("g", payload="x" * 100_000),
    ]  # fmt: skip
    proxy.lose(how)
    answer = driver.run(stage.ops.enqueue(batch))
    assert [(one.outcome, one.id, one.holder_id) for one in answer] == [
        ("enqueued", "a", ""), ("enqueued", "b", ""), ("enqueued", "c", ""), ("duplicate", "c", "c"),
        ("duplicate", "holder", "holder"), ("rejected", "f", "holder"), ("enqueued", "g", ""),
    ]  # fmt: skip
    assert answer[4].record.endswith(b'["f"]')
    proxy.deliver()
    after = stage.world()
    assert after["totals"] == {"enqueued": "6", "refused": "3", "died": "1"}
    assert (after["ready:sales:0"], after["rejected"]) == (["g", "c", "a", "holder"], ["f"])


def test_the_holder_of_a_lock_is_not_told_that_it_is_held(stage: Stage, proxy: Proxy, driver: Driver) -> None:
    proxy.lose("answer")
    assert driver.run(stage.ops.enqueue([locked("a")]))[0].outcome == "enqueued"
    assert driver.run(stage.ops.enqueue([locked("b")]))[0].holder_id == "a"


def test_the_very_first_request_of_all_is_an_eval(stage: Stage, proxy: Proxy, driver: Driver) -> None:
    stage.client.script_flush()
    proxy.lose("answer", 2)
    driver.run(stage.ops.enqueue([job("a")]))
    assert proxy.lost == 2
    assert list(jobs_of(stage)) == ["a"]


def test_the_scripts_are_forgotten_between_request_and_repetition(
    stage: Stage, proxy: Proxy, driver: Driver
) -> None:
    driver.run(stage.ops.enqueue([job("before")]))
    original, driver.caller._sleep = driver.caller._sleep, lambda seconds: (
        stage.client.script_flush(), original(seconds)
    )[1]  # fmt: skip
    proxy.lose("answer")
    driver.run(stage.ops.enqueue([job("a")]))
    assert stage.world()["ready:sales:0"] == ["a", "before"]


# Lanes.


def lanes(stage: Stage) -> set[str]:
    return {key for key in stage.world() if key.startswith("lane:")}


def test_a_lane_that_had_to_ask_again_is_not_used_again(stage: Stage, proxy: Proxy, driver: Driver) -> None:
    for name in ("a", "b", "c"):
        driver.run(stage.ops.enqueue([job(name)]))
    used = lanes(stage)
    assert len(used) == 1
    proxy.lose("answer")
    driver.run(stage.ops.enqueue([job("d")]))
    assert lanes(stage) == used  # that very request was in it
    driver.run(stage.ops.enqueue([job("e")]))
    driver.run(stage.ops.enqueue([job("f")]))
    assert len(lanes(stage)) == 2


def test_a_request_that_comes_in_late_does_nothing_twice(stage: Stage, proxy: Proxy, driver: Driver) -> None:
    driver.run(stage.ops.enqueue([job("before")]))
    proxy.lose("held request")
    driver.run(stage.ops.enqueue([job("a")]))
    for number in range(5):
        driver.run(stage.ops.enqueue([job(f"after{number}")]))
    stage.run(stage.ops.delete(["a"]))  # so that its id alone would not stop the late one
    before = stage.world()
    assert proxy.deliver() == [b":1000\r\n"]
    assert stage.world() == before


def test_a_refused_request_leaves_its_lane_too(stage: Stage, proxy: Proxy, driver: Driver) -> None:
    stage.client.set(stage.key("ready:sales:0"), "mine")
    with pytest.raises(Exception, match="foreign type"):
        driver.run(stage.ops.enqueue([job("a")]))
    stage.client.delete(stage.key("ready:sales:0"))
    driver.run(stage.ops.enqueue([job("a")]))
    assert list(jobs_of(stage)) == ["a"]


# Many at once.


def test_from_several_threads(stage: Stage, proxy: Proxy) -> None:
    caller = Caller(Connections(Address.parse(proxy.url)), sleep=lambda _: None)
    caller.run(stage.ops.survey())
    for number in range(60):
        proxy.lose(EVERY_WAY[number % 5])
        proxy.skip(number % 3)
    outcomes: list[str] = []

    def produce(thread: int) -> None:
        for number in range(10):
            answer = caller.run(
                stage.ops.enqueue([job(f"{thread}-{number}"), locked(f"{thread}-{number}x", str(number))])
            )
            outcomes.extend(one.outcome for one in answer)

    threads = [threading.Thread(target=produce, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    proxy.deliver()
    after = stage.world()
    assert proxy.lost == 60
    assert (outcomes.count("enqueued"), outcomes.count("duplicate")) == (90, 70)
    assert len(after["jobs"]) == len(after["ready:sales:0"]) == len({*after["ready:sales:0"]}) == 90
    assert {f"{n}-{m}" for n in range(8) for m in range(10)} <= after["jobs"].keys()
    assert after["totals"] == {"enqueued": "90", "refused": "70"}


def test_from_several_tasks(stage: Stage, proxy: Proxy) -> None:
    for number in range(60):
        proxy.lose(EVERY_WAY[number % 5])
        proxy.skip(number % 2)

    async def produce() -> list[str]:
        caller = AsyncCaller(Connections(Address.parse(proxy.url)), sleep=lambda _: asyncio.sleep(0))
        calls = [caller.run(stage.ops.enqueue([job(f"{n:02}"), locked(f"{n:02}x", "k")])) for n in range(40)]
        outcomes = [one.outcome for answer in await asyncio.gather(*calls) for one in answer]
        await caller.connections.aclose()
        return outcomes

    outcomes = asyncio.run(produce())
    proxy.deliver()
    after = stage.world()
    assert proxy.lost == 60
    assert (outcomes.count("enqueued"), outcomes.count("duplicate")) == (41, 39)
    assert sorted(after["ready:sales:0"]) == sorted(after["jobs"])
    assert len(after["jobs"]) == 41


def test_after_a_fork(stage: Stage, proxy: Proxy) -> None:
    caller = Caller(Connections(Address.parse(proxy.url)), random.Random(7), sleep=lambda _: None)
    for name in ("a", "b"):
        caller.run(stage.ops.enqueue([job(name)]))
    used = lanes(stage)
    proxy.lose("answer", 4)
    children = []
    for number in range(2):
        child = os.fork()
        if not child:
            try:
                answer = caller.run(stage.ops.enqueue([job(f"child{number}")]))
                os._exit(0 if answer[0].outcome == "enqueued" else 1)
            except BaseException:
                os._exit(2)
        children.append(child)
    caller.run(stage.ops.enqueue([job("parent")]))
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0]
    caller.run(stage.ops.enqueue([job("after")]))
    assert proxy.lost == 4
    assert sorted(jobs_of(stage)) == ["a", "after", "b", "child0", "child1", "parent"]
    assert sorted(stage.world()["ready:sales:0"]) == sorted(jobs_of(stage))
    assert len(lanes(stage) - used) >= 2  # no child went on in its parent's lane


def test_in_an_app(real_server: Server, proxy: Proxy) -> None:
    app = App("shop", url=proxy.url)

    @app.job(queue="sales")
    def crunch(book: int) -> None:
        """Count."""

    first = crunch.enqueue(0)
    proxy.lose("answer", 2)
    second = crunch.enqueue(1)
    assert (first.outcome, second.outcome) == ("enqueued", "enqueued")

    async def produce() -> Any:
        proxy.lose("torn answer", 2)
        return await crunch.aenqueue(2)

    third = asyncio.run(produce())
    assert proxy.lost == 4
    with real_server.client() as client:
        waiting = client.lrange(app.keys.prefix("ready") + "sales:0", 0, -1)
    assert waiting == [one.id.encode() for one in (third, second, first)]


def test_the_first_call_of_a_process(real_server: Server, proxy: Proxy) -> None:
    app = App("shop", url=proxy.url)

    @app.job(queue="sales")
    def crunch(book: int) -> None:
        """Count."""

    proxy.lose("answer", 3)
    job_id = crunch.enqueue(1).id
    assert proxy.lost == 3
    with real_server.client() as client:
        assert client.lrange(app.keys.prefix("ready") + "sales:0", 0, -1) == [job_id.encode()]
        assert client.smembers("rqj:namespaces") == {b"shop"}


def test_a_worker_whose_first_answers_are_lost_begins_all_the_same(real_server: Server, proxy: Proxy) -> None:
    ran = []
    app = App("shop", url=proxy.url)

    @app.job
    def note() -> None:
        ran.append(1)

    note.enqueue()
    worker = Worker(app, burst=True, concurrency=1)
    proxy.lose("answer")  # whether it has the rights
    proxy.skip()  # the same again
    proxy.lose("answer", 2)  # its lease
    worker.run()
    assert proxy.lost == 3
    assert ran == [1]
    with real_server.client() as client:
        assert client.zcard(app.keys.fixed("workers")) == 0, "no lease is left behind"


# What workers ask.


@pytest.mark.parametrize("how", EVERY_WAY)
def test_a_turn_gives_the_same_jobs(stage: Stage, proxy: Proxy, driver: Driver, how: How) -> None:
    stage.enqueue(*(job(f"{n}") for n in range(6)))
    stage.worker()
    proxy.lose(how, 2)
    turned = driver.run(stage.ops.turn("w1", NONCE, ["sales"], [], 2, 1))
    assert [one.id for one in turned.claims] == ["0", "1", "2"]
    proxy.deliver()
    after = stage.world()
    assert {one.id: one.token for one in turned.claims}.items() <= {
        name: entry[1:] for name, entry in after["running:w1"].items()
    }.items()
    if how != "held request":  # the late one claims again: a beat that does not name those gives them back
        assert after["ready:sales:0"] == ["5", "4", "3"]


def test_what_a_late_turn_claimed_goes_back_with_a_beat(stage: Stage, proxy: Proxy, driver: Driver) -> None:
    stage.enqueue(job("a"), job("b"))
    stage.worker()
    proxy.lose("held request")
    assert [one.id for one in driver.run(stage.ops.turn("w1", NONCE, ["sales"], [], 1)).claims] == ["a"]
    proxy.deliver()
    assert sorted(stage.world()["running:w1"]) == ["a", "b"]
    stage.now_ms += LEASE_MS + 1
    driver.run(stage.ops.heartbeat("w1", LEASE_MS, 3, ["a"]))
    assert stage.world()["ready:sales:0"] == ["b"]
    assert "tries" not in stage.world()


@pytest.mark.parametrize("how", EVERY_WAY)
@pytest.mark.parametrize("word", ["done", "retry", "bury", "snooze", "back"])
def test_a_settlement_counts_once(stage: Stage, proxy: Proxy, driver: Driver, how: How, word: str) -> None:
    stage.enqueue(job("a"))
    claim = stage.claim()[0]
    proxy.lose(how)
    settlement = Settlement(word, "a", claim.token, 5, "failed", "E", "tb")
    turned = driver.run(stage.ops.turn("w1", "m" * 16, [], [settlement], 0))
    assert turned.refused == ({"a": "gone"} if "answer" in how else {})
    proxy.deliver()
    totals = stage.world()["totals"]
    expected = {"done": {"done": "1"}, "retry": {"failed": "1"}, "bury": {"failed": "1", "died": "1"}}
    assert totals == {"enqueued": "1", **expected.get(word, {})}
    assert stage.looked("a").tries.attempts == (word in ("retry", "bury"))


@pytest.mark.parametrize("how", EVERY_WAY)
def test_the_rest_of_what_may_be_asked(stage: Stage, proxy: Proxy, driver: Driver, how: How) -> None:
    ops = stage.ops

    def ask(call: Call[Any]) -> Any:
        proxy.lose(how)
        answer = driver.run(call)
        before = stage.world()
        proxy.deliver()
        assert stage.world() == before
        return answer

    stage.bury(job("dead"))
    stage.enqueue(*(job(name) for name in ("a", "b", "c", "d", "e")))
    assert ask(ops.open()) == 1
    assert ask(ops.register("w2", LEASE_MS, {"host": "h"}))[0] == 1000
    assert ask(ops.cancel(["a", "x"])) == ["cancelled", "unknown"]
    assert ask(ops.bury(["b"], "why")) == ["buried"]
    assert ask(ops.delete(["c"])) == ["deleted"]
    assert ask(ops.revive(["dead"])) == [("revived", "")]
    assert ask(ops.purge("sales", 4)) == (1, 0, 2)
    assert ask(ops.heartbeat("w2", LEASE_MS, 3, [])).lost is False
    assert ask(ops.survey()).dead == 1
    assert ask(ops.look(["e"]))[0].state == "ready"
    stage.claim(1, worker="w3")
    driver.run(ops.leave("w3", ["sales"]))
    assert stage.world()["totals"]["deleted"] == "2"


# Giving up.


def test_after_its_patience_it_says_that_the_request_may_have_been_carried_out(
    stage: Stage, proxy: Proxy
) -> None:
    now_s = [0.0]
    caller = Caller(
        Connections(Address.parse(proxy.url)),
        sleep=lambda seconds: now_s.__setitem__(0, now_s[0] + seconds),
        clock=lambda: now_s[0],
    )
    caller.run(stage.ops.enqueue([job("before")]))
    proxy.lose("answer", 1000)
    with pytest.raises(ConnectionError, match="the answer was lost, so it may have been carried out"):
        caller.run(stage.ops.enqueue([job("a")]))
    assert 20.0 <= now_s[0] < 21.0
    assert 40 < proxy.lost < 120  # pauses grow to half a second
    assert stage.world()["ready:sales:0"] == ["a", "before"]


def test_without_patience_it_says_so_at_once(stage: Stage, proxy: Proxy, driver: Driver) -> None:
    driver.run(stage.ops.survey())
    proxy.lose("answer")
    with pytest.raises(ConnectionError, match="the answer was lost"):
        driver.run(stage.ops.survey(), patient=False)
    assert proxy.lost == 1
