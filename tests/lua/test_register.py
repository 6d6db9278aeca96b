"""register: a worker gets its lease; if all leases are over, the server was away and all are extended."""

from tests.lua.stage import LEASE_MS, Stage, job, nearly


def test_a_new_worker(stage: Stage) -> None:
    stage.enqueue(job("a"), job("b", "mail"))
    (now_ms, queues), changed = stage.did(stage.ops.register("w1", LEASE_MS, {"host": "h", "pid": "7"}))
    assert (now_ms, sorted(queues)) == (1000, ["mail", "sales"])
    assert changed == {
        "workers": {"w1": (None, 16_000)},
        "worker:w1": {
            "host": (None, "h"),
            "pid": (None, "7"),
            "lease_ms": (None, "15000"),
            "started_ms": (None, "1000"),
        },
    }
    assert stage.ttls_ms() == {}
    assert stage.did(stage.ops.register("w1", LEASE_MS, {"host": "h", "pid": "7"}))[1] == {}


def test_others_keep_their_leases_while_one_is_running(stage: Stage) -> None:
    stage.worker("w1")
    stage.now_ms = 9000
    stage.worker("w2")
    stage.now_ms = 17_000
    _, changed = stage.did(stage.ops.register("w3", LEASE_MS, {}))
    assert changed["workers"] == {"w3": (None, 32_000)}


def test_all_leases_are_extended_when_all_are_over(stage: Stage) -> None:
    stage.worker("w1")
    stage.run(stage.ops.register("w2", 2000, {}))
    stage.now_ms = 16_000  # a lease ends at its end
    _, changed = stage.did(stage.ops.register("w3", 100, {}))
    assert changed["workers"] == {"w1": (16_000, 31_000), "w2": (3000, 18_000), "w3": (None, 16_100)}


def test_a_worker_whose_facts_are_gone_or_foreign_gets_the_asked_length(stage: Stage) -> None:
    for worker in ("w1", "w2", "w3"):
        stage.worker(worker)
    stage.client.delete(stage.key("worker:w1"), stage.key("worker:w2"))
    stage.client.set(stage.key("worker:w2"), "mine")
    stage.client.hset(stage.key("worker:w3"), "lease_ms", "long")
    stage.now_ms = 50_000
    stage.run(stage.ops.register("w4", 700, {}))
    assert stage.world()["workers"] == dict.fromkeys(["w1", "w2", "w3", "w4"], 50_700)


def test_the_servers_clock_gives_the_facts_a_ttl(stage: Stage) -> None:
    stage.now_ms = -1
    stage.worker()
    (left_ms,) = stage.ttls_ms().values()
    assert nearly(left_ms, 7 * 86_400_000)
