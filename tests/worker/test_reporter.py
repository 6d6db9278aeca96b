"""The reporter: the newest of each job, all in one call, a few times a second, and never in a job's way."""

import logging
import threading
from typing import Any

import pytest

from rqlite_jobs import App, Unreachable, current_job
from rqlite_jobs.current import CurrentJob
from rqlite_jobs.worker.holdings import Holdings
from rqlite_jobs.worker.reporter import AWAY_S, EVERY_S, REST_S, Reporter
from tests.conftest import app_on
from tests.servers import Server
from tests.worker.inside import KINDS, of_kind, working
from tests.worker.parts import claim, operations
from tests.worker.site import until


class Desk:
    """A reporter without a thread of its own; the test ticks."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.sent: list[list[Any]] = []
        self.answer: Any = None
        self.holdings = Holdings()
        self.worker = "w"
        heart: Any = self
        self.reporter = Reporter(operations(), self.holdings, heart, self.call, lambda: self.now_s)
        self.reporter._awake = True  # so that it starts no thread

    def call(self, call: Any) -> Any:
        assert call.verb == "report"
        args = call.args[1:]
        self.sent.append(
            [args[at] for at in range(0, len(args), 4)] + [args[at + 2] for at in range(0, len(args), 4)]
        )
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer or ["noted"] * (len(args) // 4)

    def job(self, id: str) -> CurrentJob:
        """A job that runs."""
        held = claim(id)
        self.holdings.receive([held])
        return CurrentJob(id, "f", 1, held.token, self.reporter)


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_the_newest_of_each_in_one_call(desk: Desk) -> None:
    a, b = desk.job("a"), desk.job("b")
    for value in (0.1, 0.2, 0.3):
        a.progress(value)
    b.progress(0.9)
    assert desk.reporter.tick() == EVERY_S
    assert desk.sent == [["a", "b", "0.3", "0.9"]]


def test_a_few_times_a_second_and_the_last_is_never_left_out(desk: Desk) -> None:
    a = desk.job("a")
    for at in range(1000):
        a.progress(at / 1000)
        desk.now_s = at / 1000
        desk.reporter.tick()
    a.progress(1)
    desk.now_s += desk.reporter.tick()
    assert desk.reporter.tick() == EVERY_S
    assert 4 <= len(desk.sent) <= 1 / EVERY_S + 2
    assert desk.sent[-1] == ["a", "1"]
    desk.now_s += EVERY_S
    assert desk.reporter.tick() == REST_S
    assert not desk.reporter._awake


def test_what_is_not_held_any_more_is_not_sent(desk: Desk) -> None:
    a = desk.job("a")
    a.progress(0.5)
    assert not a.lost
    desk.holdings.drop()
    assert a.lost
    assert desk.reporter.tick() == REST_S
    assert desk.sent == []


def test_a_stale_one_is_lost_and_the_others_are_not(desk: Desk) -> None:
    a, b = desk.job("a"), desk.job("b")
    a.progress(0.5)
    b.progress(0.5)
    desk.answer = ["stale", "noted"]
    desk.reporter.tick()
    assert (a.lost, b.lost) == (True, False)
    # What it remembers is no more than what is held.
    desk.holdings.drop()
    c = desk.job("c")
    c.progress(0.5)
    desk.answer, desk.now_s = ["stale"], 1.0
    desk.reporter.tick()
    assert desk.reporter._stale == {"c": c.token}


def test_what_was_said_in_an_outage_is_told_behind_it(desk: Desk) -> None:
    a, b = desk.job("a"), desk.job("b")
    a.progress(0.1)
    b.progress(0.1)
    desk.answer = Unreachable("away")
    assert desk.reporter.tick() == AWAY_S
    a.progress(0.2)
    desk.now_s += 1
    assert desk.reporter.tick() == 1
    desk.answer, desk.now_s = None, AWAY_S
    assert desk.reporter.tick() == EVERY_S
    assert desk.sent[-1] == ["a", "b", "0.2", "0.1"]


def test_a_server_that_refuses_it_is_told_of_once(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    a = desk.job("a")
    desk.answer = RuntimeError("no rights\nat all")
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            a.progress(0.5)
            assert desk.reporter.tick() == EVERY_S
            desk.now_s += EVERY_S
    assert [record.getMessage() for record in caplog.records] == ["how far jobs are is not told: no rights"]
    assert not a.lost


def test_without_a_lease_nothing_is_sent(desk: Desk) -> None:
    a = desk.job("a")
    a.progress(0.5)
    desk.worker = ""
    assert desk.reporter.tick() == REST_S
    assert desk.sent == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_worker_shows_how_far_its_jobs_are(real_server: Server, kind: str) -> None:
    app = of_kind(app_on(real_server), kind)
    go_on, end = threading.Event(), threading.Event()

    @app.job
    def f() -> str:
        current_job().progress(0.25, "first")
        go_on.wait(20)
        for at in range(100):
            current_job().progress(at / 100, "many")
        current_job().progress(0.75, "last")
        end.wait(20)
        return current_job().id

    @app.job
    def silent() -> None: ...

    silent.enqueue()
    with working(app):
        job = silent.enqueue()
        until(lambda: job.refresh().state == "done", "it is done")
        assert not reporters()
        job_f = f.enqueue()
        first = until(lambda: job_f.refresh().progress, "it says something")
        assert (first.value, first.text) == (0.25, "first")
        go_on.set()
        until(lambda: told(app, job_f.id) == "last", "the last is told")
        end.set()
        assert job_f.result("20s") == job_f.id
        assert job_f.refresh().progress is None
        assert not real_server.client().exists("rqj:{test}:progress")
    until(lambda: not reporters(), "its thread ends")


def told(app: App, id: str) -> str:
    """What a job said last."""
    progress = app.job_by_id(id).progress
    return progress.text if progress else ""


def reporters() -> list[threading.Thread]:
    """The threads of reporters in this process."""
    return [thread for thread in threading.enumerate() if thread.name == "rqj-progress"]
