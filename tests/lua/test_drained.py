"""After everything was drained only those keys are left that the dictionary marks *stays*."""

from tests.lua.source import family, table
from tests.lua.stage import LEASE_MS, Stage, job, locked, once

STAY = {family(key) for key, row in table().items() if row[4]}


def test_a_busy_day_leaves_only_what_stays(stage: Stage) -> None:
    ops = stage.ops
    stage.now_ms = 86_400_000
    stage.run(ops.open())
    stage.enqueue(
        job("plain"), job("big", payload="x" * 3000), job("later", delay_ms=50), job("other", "mail"),
        job("cancelled"), job("gone", delay_ms=50), job("deleted"), job("buried"), locked("locked"), once("once", "k2"),
    )  # fmt: skip
    stage.enqueue(locked("rejected", on_conflict="reject"))
    for id in ("plain", "cancelled", "gone", "deleted", "buried"):
        stage.run(ops.wait("p", 1, id))
    stage.run(ops.cancel(["cancelled", "gone"]))
    stage.run(ops.delete(["deleted"]))
    stage.run(ops.bury(["buried"], "why"))
    stage.enqueue(job("purged", "spam"), job("purged too", "spam", delay_ms=5))
    stage.run(ops.purge("spam"))
    stage.settle("retry", stage.claim()[0], error="E", traceback="tb", delay_ms=50)
    stage.settle("bury", stage.claim()[0], reason="failed", error="E", traceback="tb")
    stage.claim(1, worker="crashes")
    stage.run(ops.recover(3, ["crashes"]))
    stage.claim(1, worker="forgets")
    stage.now_ms += LEASE_MS + 1
    stage.run(ops.heartbeat("forgets", LEASE_MS, 3, []))
    stage.run(ops.revive(["buried"]))
    while claims := [*stage.claim(5), *stage.claim(5, queue="mail")]:
        for claim in claims:
            if claim.id == "other":
                assert stage.settle("returned", claim, result=b'["f",[1]]', ttl_ms=5) == {}
            elif claim.id == "big":
                assert stage.settle("returned", claim, result=b'["f",[1]]') == {}
            else:
                assert stage.settle("done", claim) == {}
    for worker in ("w1", "forgets"):
        stage.run(ops.leave(worker, ["sales", "mail"]))

    left = stage.world()
    assert left.pop("answers:p")  # nobody takes them, so its TTL has to end it
    assert {key for key in left if family(key) not in STAY} == set()
    assert {family(key) for key in left} == STAY
    survey = stage.run(ops.survey())
    assert survey.running + sum(one.ready + one.scheduled for one in survey.queues) == 0
    assert survey.records == survey.dead + survey.rejected + survey.done + survey.kept
    assert survey.locks == 1

    # And what is kept goes with its bounds.
    stage.now_ms += 181 * 86_400_000
    stage.set(done_max_count=0)
    stage.finish(job("last"))
    stage.enqueue(job("kept"))
    stage.settle("returned", stage.claim()[0], result=b"[]", ttl_ms=-1)
    assert stage.world()["results"] == {"kept": "[]"}
    stage.run(ops.delete(["kept"]))
    stage.client.delete(stage.key("answers:p"))
    stage.run(ops.heartbeat("w1", LEASE_MS, 3, []))
    stage.run(ops.leave("w1", []))
    assert {family(key) for key in stage.world()} == {
        "changelog", "events", "fence", "gone", "history", "lane", "left", "meta", "queues", "totals", "wake",
    }  # fmt: skip
