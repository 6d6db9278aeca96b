"""The small duties: a loop that ticks, an outage that is told once, signals, the ground that a worker stands on."""

import logging
import os
import random
import signal
import threading
import time
from typing import Any

import pytest

from rqlite_jobs import App
from rqlite_jobs.errors import RqjError, Unreachable
from rqlite_jobs.inspector.checkup import Finding
from rqlite_jobs.worker import Worker
from rqlite_jobs.worker.ground import check_ground
from rqlite_jobs.worker.loop import Loop
from rqlite_jobs.worker.outage import PAUSE_S, Outage
from rqlite_jobs.worker.signals import handled
from tests.servers import Server
from tests.worker.parts import Clock
from tests.worker.site import until

# Loop


def test_a_loop_ticks_at_once_and_again_when_it_is_woken() -> None:
    ticks = threading.Semaphore(0)

    def tick() -> float:
        ticks.release()
        return 1000.0

    loop = Loop("test-loop", tick)
    loop.start()
    assert ticks.acquire(timeout=10)
    loop.wake()
    assert ticks.acquire(timeout=10)
    loop.stop()
    assert not loop._thread.is_alive()
    assert loop._thread.daemon


def test_a_loop_comes_back_when_its_tick_said_so() -> None:
    count = 0
    over = threading.Event()

    def tick() -> float:
        nonlocal count
        count += 1
        if count == 5:
            over.set()
        return 0.001

    loop = Loop("test-loop", tick)
    loop.start()
    assert over.wait(10)
    loop.stop()


def test_stopping_a_loop_waits_for_its_tick_but_not_for_ever() -> None:
    go = threading.Event()
    begun = threading.Event()

    def tick() -> float:
        begun.set()
        go.wait(10)
        return 1000.0

    loop = Loop("test-loop", tick)
    loop.start()
    assert begun.wait(10)
    began_s = time.monotonic()
    loop.stop(timeout_s=0.05)
    assert time.monotonic() - began_s < 5
    assert loop._thread.is_alive()
    go.set()
    loop.stop()
    assert not loop._thread.is_alive()


# Outage


def test_an_outage_is_told_when_it_begins_and_when_it_is_over(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    outage = Outage(random.Random(1), clock)
    outage.over()
    for _ in range(50):
        outage.failed(Unreachable("the server redis://x cannot be reached.", hint="Is it running?"))
    clock.now_s += 90
    outage.over()
    outage.over()
    assert caplog.messages == [
        "the server redis://x cannot be reached. Trying again until it answers.",
        "the server answers again, after 1m30s.",
    ]
    assert [one.levelno for one in caplog.records] == [logging.ERROR, logging.WARNING]
    outage.failed(OSError("again"))
    assert len(caplog.messages) == 3


def test_what_was_sent_before_the_server_was_back_is_no_second_outage(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Clock()
    outage = Outage(random.Random(1), clock)
    sent_s = outage.now_s
    outage.failed(OSError("gone"))
    clock.now_s += 1
    outage.over()
    clock.now_s += 1
    outage.failed(OSError("it was asked long ago"), sent_s)
    assert not outage.lasts
    assert len(caplog.messages) == 2
    outage.failed(OSError("gone again"), outage.now_s)
    assert outage.lasts


def test_pauses_double_up_to_the_longest_and_differ() -> None:
    outage = Outage(random.Random(1))
    first, longest = PAUSE_S
    for tries in (0, 1, 2, 5, 10, 10**6):
        whole = min(longest, first * 2.0 ** min(tries, 10))
        pauses = [outage.pause_s(tries) for _ in range(50)]
        assert whole / 2 <= min(pauses) < max(pauses) <= whole


# Signals


def test_signals_mean_what_they_say_while_it_lasts() -> None:
    heard: list[str] = []
    known = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGTSTP)}
    with handled(lambda: heard.append("stop"), lambda: heard.append("quiet")):
        for count, number in enumerate(known, 1):
            os.kill(os.getpid(), number)
            until(lambda count=count: len(heard) == count, "it is heard")
    assert heard == ["stop", "stop", "quiet"]
    assert {number: signal.getsignal(number) for number in known} == known


def test_off_the_main_thread_no_signal_is_touched() -> None:
    seen: list[Any] = []

    def run() -> None:
        with handled(lambda: None, lambda: None):
            seen.append(signal.getsignal(signal.SIGTERM))

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [before]


def test_signals_that_a_platform_does_not_have_are_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(signal, "SIGTSTP")
    with handled(lambda: None, lambda: None):
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL


# Ground


def test_bad_ground_is_refused_with_its_remedy() -> None:
    good, bad = (
        Finding("version", "ok", "redis 7.0.0"),
        Finding("eviction", "error", "allkeys-lru", "Set noeviction."),
    )
    with pytest.raises(RqjError, match="by its eviction: allkeys-lru") as caught:
        check_ground([good, bad])
    assert caught.value.hint == "Set noeviction."


def test_doubtful_ground_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    check_ground(
        [Finding("persistence", "warning", "no append-only file", "Type: CONFIG SET appendonly yes.")]
    )
    assert "no append-only file. Type: CONFIG SET appendonly yes." in caplog.text


def test_a_worker_refuses_a_real_server_that_may_evict(real_server: Server, real_app: App) -> None:
    @real_app.job
    def fine() -> None: ...

    job = fine.enqueue()
    with real_server.client() as client:
        client.config_set("maxmemory-policy", "volatile-ttl")
        try:
            with pytest.raises(RqjError, match="volatile-ttl"):
                Worker(real_app, burst=True).run()
            assert job.refresh().state == "ready"
            Worker(real_app, burst=True, allow_eviction=True).run()
            assert job.refresh().state == "done"
        finally:
            client.config_set("maxmemory-policy", "noeviction")
