"""survey: all numbers at one instant."""

import pytest

from rqlite_jobs.answers import QueueSurvey, Survey
from rqlite_jobs.job import Record
from tests.lua.stage import Stage, job, locked


def test_an_empty_namespace(stage: Stage) -> None:
    assert stage.did(stage.ops.survey()) == (Survey(1000, 0, 0, 0, 0, 0, 0, 0, 0, {}, []), {})


def test_all_numbers(stage: Stage) -> None:
    stage.finish(job("done"))
    stage.bury(job("dead", "mail"))
    stage.enqueue(locked("running"), job("also"))
    stage.claim(2)
    stage.now_ms = 1200
    stage.enqueue(locked("rejected", on_conflict="reject"), locked("duplicate"))
    stage.enqueue(job("ready"), job("gone"), job("later", delay_ms=800), job("sooner", delay_ms=300))
    stage.run(stage.ops.cancel(["gone"]))
    survey, changed = stage.did(stage.ops.survey())
    assert changed == {}
    totals = {"enqueued": 9, "refused": 2, "done": 1, "failed": 1, "died": 2, "cancelled": 1}
    assert survey.totals == totals
    assert (survey.now_ms, survey.running, survey.dead, survey.rejected, survey.done) == (
        1200,
        2,
        1,
        1,
        1,
    )
    assert (survey.locks, survey.workers, survey.records) == (1, 1, 8)
    assert sorted(survey.queues, key=lambda one: one.name) == [
        QueueSurvey("mail", 0, 0, 0, 0),
        QueueSurvey("sales", 1, 2, 1200, 1500),
    ]


def test_conservation(stage: Stage) -> None:
    stage.finish(job("a"), job("b"))
    stage.bury(job("c"))
    stage.enqueue(job("d"), job("e", delay_ms=5), job("f"), job("g"))
    stage.claim()
    stage.run(stage.ops.cancel(["f"]))
    survey = stage.run(stage.ops.survey())
    places = survey.running + survey.dead + survey.rejected + survey.done + survey.kept
    assert survey.records == places + sum(one.ready + one.scheduled for one in survey.queues) == 6


def test_workers_being_recovered_count_what_they_hold_but_are_no_workers(stage: Stage) -> None:
    stage.enqueue(*(job(f"{n:03}") for n in range(600)))
    stage.claim(600)
    stage.run(stage.ops.recover(3, ["w1"]))
    survey = stage.run(stage.ops.survey())
    assert (survey.running, survey.workers, survey.queues[0].ready) == (100, 0, 500)


@pytest.mark.parametrize(("tombs", "shown_ms"), [(19, 2000), (20, 0)])
def test_the_next_job_is_looked_for_behind_tombs(stage: Stage, tombs: int, shown_ms: int) -> None:
    ids = [f"{n:02}" for n in range(tombs)]
    stage.enqueue(*map(job, ids))
    stage.now_ms = 2000
    stage.enqueue(job("a"))
    stage.run(stage.ops.cancel(ids))
    (queue,) = stage.run(stage.ops.survey()).queues
    assert (queue.ready, queue.waiting_ms) == (1, shown_ms)


@pytest.mark.parametrize("key", ["ready:sales:0", "scheduled:sales", "tombs:sales", "running:w1"])
def test_a_key_of_a_foreign_type_reads_as_nothing(stage: Stage, key: str) -> None:
    stage.enqueue(job("a"), job("b", "mail"))
    stage.worker()
    stage.client.delete(stage.key(key))
    stage.client.set(stage.key(key), "mine")
    survey = stage.run(stage.ops.survey())
    assert (survey.running, survey.records) == (0, 2)
    ready = {one.name: one.ready for one in survey.queues}
    assert ready == {"sales": 0 if key == "ready:sales:0" else 1, "mail": 1}


def test_a_malformed_record_at_the_head(stage: Stage) -> None:
    stage.enqueue(job("a"))
    stage.client.hset(stage.key("jobs"), "a", "mine")
    assert stage.run(stage.ops.survey()).queues == [QueueSurvey("sales", 1, 0, 0, 0)]


def waiting_ms(stage: Stage) -> int:
    (queue,) = stage.run(stage.ops.survey()).queues
    return queue.waiting_ms


@pytest.mark.parametrize("lock", [None, "k"])
@pytest.mark.parametrize("size", [3, 3000])
def test_since_when_the_next_job_waits(stage: Stage, lock: str | None, size: int) -> None:
    payload = "x" * size
    stage.enqueue(locked("a", lock, payload=payload) if lock else job("a", payload=payload))
    assert waiting_ms(stage) == 1000
    for word, delay_ms in (("retry", 700), ("snooze", 800), ("putoff", 900)):
        claim = stage.claim()[0]
        due_ms = stage.now_ms + delay_ms
        stage.settle(word, claim, delay_ms=delay_ms, error="E")
        assert waiting_ms(stage) == 0
        stage.now_ms = due_ms + 50
        stage.run(stage.ops.turn("w1", "n" * 11, ["sales"], [], 0))  # it is due, and taken by nobody
        assert waiting_ms(stage) == due_ms
    claim = stage.claim()[0]
    stage.now_ms += 60
    stage.settle("back", claim)
    assert waiting_ms(stage) == due_ms  # it was not begun, or not ended
    stage.claim(1)
    stage.now_ms += 70
    stage.run(stage.ops.recover(3, ["w1"]))
    assert waiting_ms(stage) == stage.now_ms
    stage.settle("bury", stage.claim()[0], reason="failed", error="E")
    stage.now_ms += 80
    stage.run(stage.ops.revive(["a"]))
    assert waiting_ms(stage) == stage.now_ms
    stage.settle("retry", stage.claim()[0], delay_ms=5000, error="E")
    stage.now_ms += 90
    stage.run(stage.ops.retry(["a"]))
    assert waiting_ms(stage) == stage.now_ms
    found = stage.looked("a")
    assert (found.record + found.body).endswith(payload.encode())
    assert Record.read(found.record) is not None


def test_a_delayed_job_waits_since_it_was_due(stage: Stage) -> None:
    stage.enqueue(locked("a", delay_ms=3000, expires_ms=90_000))
    stage.now_ms = 5000
    stage.claim(0)
    assert waiting_ms(stage) == 4000
