"""crew: the workers and what they registered."""

from rqlite_jobs.answers import Crew, WorkerEntry
from tests.lua.stage import Stage, job


def test_keys_of_a_foreign_type_hide_no_worker(stage: Stage) -> None:
    stage.worker("w1")
    stage.worker("w2")
    stage.client.set(stage.key("running:w1"), "mine")
    stage.client.delete(stage.key("worker:w2"))
    stage.client.set(stage.key("worker:w2"), "mine")
    crew, _ = stage.did(stage.ops.crew())
    assert [(one.id, one.running, one.facts.get("lease_ms")) for one in crew.workers] == [
        ("w1", 0, "15000"),
        ("w2", 0, None),
    ]


def test_nobody(stage: Stage) -> None:
    assert stage.did(stage.ops.crew()) == (Crew(1000, []), {})


def test_those_that_live_and_those_being_recovered(stage: Stage) -> None:
    stage.enqueue(*(job(f"{n:03}") for n in range(600)))
    stage.claim(598, worker="w2")
    stage.run(stage.ops.recover(3, ["w2"]))
    stage.now_ms = 2000
    stage.run(stage.ops.register("w1", 700, {"host": "ü", "queues": "sales mail"}))
    crew, changed = stage.did(stage.ops.crew())
    assert changed == {}
    facts = {"host": "ü", "queues": "sales mail", "lease_ms": "700", "started_ms": "2000"}
    assert crew.workers == [
        WorkerEntry("w1", 2700, 0, False, facts),
        WorkerEntry("w2", 1000, 98, True, {"lease_ms": "15000", "started_ms": "1000"}),
    ]
