"""`rqj queues locks scheduled workers stats recover scripts`: what is there, and how much of it."""

import json

import pytest

from rqlite_jobs.identity import who
from rqlite_jobs.script import script, verbs
from rqlite_jobs.testing import drain
from tests.cli.conftest import Shop

pytestmark = pytest.mark.lanes("fake", "valkey")


def register(shop: Shop, worker: str, lease_ms: int = 60_000) -> None:
    facts = {
        "host": "h1",
        "pid": "17",
        "version": "0.1.0",
        "queues": '["sales"]',
        "concurrency": "10",
        "names": '["f"]',
    }
    shop.app.run(shop.app.operations.register(worker, lease_ms, facts))


def claim(shop: Shop, worker: str, queue: str, count: int = 1) -> list[str]:
    turned = shop.app.run(shop.app.operations.turn(worker, "n" * 11, [queue], [], count))
    return [claim.id for claim in turned.claims]


def test_queues(shop: Shop) -> None:
    shop.enqueue("crunch_sales", 1)
    shop.app.handler("anything").options(delay="10m").enqueue()
    page = shop.json("queues")
    by_name = {row["name"]: row for row in page["queues"]}
    assert (by_name["sales"]["ready"], by_name["sales"]["next_due_at"]) == (1, None)
    assert (by_name["default"]["scheduled"], by_name["default"]["waiting_since"]) == (1, None)
    rows = [line.split() for line in shop.ok("queues", "ls").splitlines()]
    assert rows[0] == ["QUEUE", "READY", "SCHEDULED", "WAITING", "FOR", "NEXT", "DUE", "PAUSED"]
    assert rows[2] == ["default", "0", "1", "-", "in", "10m"]
    assert rows[3][:4] == ["sales", "1", "0", "0s"]


def test_pause_and_resume(shop: Shop) -> None:
    shop.enqueue("crunch_sales", 1)
    shop.enqueue("anything")
    assert shop.ok("queues", "pause", "sales", "--for", "90m") == "paused queue 'sales' for 1h30m\n"
    assert shop.ok("queues", "pause", "default") == "paused queue 'default', until resumed\n"
    by_name = {row["name"]: row["pause"] for row in shop.json("queues")["queues"]}
    assert by_name["default"]["until"] is None
    assert by_name["sales"]["until"] > by_name["sales"]["since"]
    assert by_name["sales"]["by"] == who()
    assert shop.json("stats")["paused"] == by_name
    rows = shop.ok("queues").splitlines()
    assert f"until resumed, by {who()}" in rows[2]
    assert "ends in 1h" in rows[3]
    assert "paused: default, sales" in shop.ok("stats")
    assert drain(shop.app) == 0
    assert shop.json("queues", "resume", "sales", "default", "sales")["queues"] == {
        "sales": "resumed", "default": "resumed",
    }  # fmt: skip
    assert shop.ok("queues", "resume", "sales") == "queue 'sales' was not paused\n"
    assert "paused" not in shop.ok("stats")
    assert drain(shop.app) == 2


def test_what_cannot_be_paused(shop: Shop) -> None:
    shop.enqueue("crunch_sales", 1)
    result = shop.rqj("queues", "pause", "sales", "sale")
    assert result.exit_code == 3
    assert "Did you mean 'sales'?" in result.stderr
    assert shop.json("stats")["paused"] == {}
    for for_ in ("0", "soon", "-1"):
        result = shop.rqj("queues", "pause", "sales", "--for", for_)
        assert (result.exit_code, "--for" in result.stderr, "for_" in result.stderr) == (2, True, False)
    assert shop.json("stats")["paused"] == {}


def test_release_of_a_lock(shop: Shop) -> None:
    id_ = shop.enqueue("crunch_sales", 1)
    key = shop.json("locks")["locks"][0]["key"]
    result = shop.rqj("locks", "release", key)
    assert (result.exit_code, result.stdout) == (4, "")
    assert f"not released: job {id_} holds it and is ready; --force frees it all the same" in result.stderr
    assert "Would release the lock" in shop.rqj("locks", "release", "--force", "--dry-run", key).stderr
    assert shop.rqj("locks", "release", "--force", key, input="n\n").exit_code == 7
    assert shop.json("stats")["locks"] == 1
    assert shop.json("locks", "release", "--force", "-y", key)["word"] == "released"
    assert shop.json("stats")["locks"] == 0
    assert shop.rqj("locks", "release", "-y", key).exit_code == 3
    assert shop.enqueue("crunch_sales", 1) != id_


def test_purge(shop: Shop) -> None:
    shop.app.handler("crunch_sales").enqueue_many([(n,) for n in range(1500)])
    shop.app.handler("crunch_sales").options(delay="1h").enqueue(2000)
    shop.enqueue("anything")
    assert (
        "Would delete 1,501 waiting jobs of queue 'sales' in namespace"
        in shop.rqj("queues", "purge", "sales", "--dry-run").stderr
    )
    assert shop.json("stats")["locks"] == 1501
    assert shop.ok("queues", "purge", "sales", "-y") == "deleted 1,501 jobs of queue 'sales'\n"
    stats = shop.json("stats")
    assert (stats["ready"], stats["scheduled"], stats["locks"], stats["deleted"]) == (1, 0, 0, 1501)
    assert shop.json("queues", "purge", "sales", "default", "-y")["deleted"] == {"sales": 0, "default": 1}


def test_a_purge_goes_on_behind_cancelled_jobs(shop: Shop) -> None:
    handler = shop.app.handler("crunch_sales")
    ids = [job.id for job in handler.enqueue_many((n,) for n in range(1_010))]
    shop.app.control.cancel(ids[:1_000])  # what a first step meets
    assert shop.ok("queues", "purge", "sales", "-y") == "deleted 10 jobs of queue 'sales'\n"


def test_purge_of_an_unknown_queue_touches_none(shop: Shop) -> None:
    shop.enqueue("crunch_sales", 1)
    result = shop.rqj("queues", "purge", "-y", "sales", "sale")
    assert result.exit_code == 3
    assert "Did you mean 'sales'?" in result.stderr
    assert shop.json("stats")["ready"] == 1


def test_locks(shop: Shop) -> None:
    holder, daily = shop.enqueue("crunch_sales", 1), shop.enqueue("daily")
    page = shop.json("locks")
    assert [(row["key"], row["mode"], row["holder_id"], row["holder_state"]) for row in page["locks"]] == [
        ("daily:", "until_expired", daily, "ready"),
        ("crunch_sales:book:1", "until_executed", holder, "ready"),
    ]
    assert 3_590_000 < page["locks"][0]["left_ms"] <= 3_600_000
    assert page["locks"][1]["left_ms"] is None
    assert "with its job" in shop.ok("locks", "ls")
    cursor = shop.json("locks", "--limit", "1")["next"]
    assert [row["key"] for row in shop.json("locks", "--cursor", cursor)["locks"]] == ["crunch_sales:book:1"]


def test_a_lock(shop: Shop) -> None:
    holder = shop.enqueue("crunch_sales", 1)
    told = shop.json("locks", "show", "crunch_sales:book:1")
    assert (told["holder_id"], told["holder"]["call"]) == (holder, "crunch_sales(1)")
    said = shop.ok("locks", "show", "crunch_sales:book:1")
    assert f"holder     {holder}" in said
    assert "an enqueue of the same work is answered with the holder" in said


def test_a_lock_whose_holder_holds_no_more(shop: Shop) -> None:
    holder = shop.enqueue("crunch_sales", 1)
    client, keys = shop.server.client(), shop.app.keys
    client.delete(keys.fixed("jobs"), keys.prefix("ready") + "sales:0")
    said = shop.ok("locks", "show", "crunch_sales:book:1")
    assert f"holder     {holder}" in said
    assert "the next enqueue of the same work takes it over" in said


def test_a_lock_that_nobody_holds(shop: Shop) -> None:
    shop.enqueue("crunch_sales", 1)
    result = shop.rqj("locks", "show", "crunch_sales:book:2")
    assert result.exit_code == 3
    assert "nobody holds the lock 'crunch_sales:book:2'" in result.stderr
    assert "Did you mean 'crunch_sales:book:1'?" in result.stderr


def test_scheduled(shop: Shop) -> None:
    shop.app.handler("anything").options(delay="10m").enqueue()
    shop.enqueue("flaky", "ann")
    drain(shop.app)
    page = shop.json("scheduled")
    assert [(job["name"], job["attempts"]) for job in page["jobs"]] == [("anything", 0), ("flaky", 1)]
    said = shop.ok("scheduled", "ls")
    assert "delayed" in said
    assert "retry after ConnectionError('provider timeout')" in said


def test_a_job_that_no_worker_knows(shop: Shop) -> None:
    shop.enqueue("anything")
    register(shop, "w1")
    operations = shop.app.operations
    turned = shop.app.run(operations.turn("w1", "n" * 11, ["default"], [], 1))
    from rqlite_jobs.operations import Settlement

    (claimed,) = turned.claims
    putoff = Settlement("putoff", claimed.id, claimed.token, 60_000)
    shop.app.run(operations.turn("w1", "m" * 11, ["default"], [putoff], 0))
    assert "no worker that took it knows this job" in shop.ok("scheduled")


def test_workers(shop: Shop) -> None:
    register(shop, "w1")
    shop.enqueue("crunch_sales", 1)
    claim(shop, "w1", "sales")
    (row,) = shop.json("workers")["workers"]
    assert (row["id"], row["state"], row["host"], row["pid"]) == ("w1", "alive", "h1", 17)
    assert (row["queues"], row["running"], row["concurrency"], row["names"]) == (["sales"], 1, 10, ["f"])
    cells = shop.ok("workers").splitlines()[2].split()
    assert cells[:6] == ["w1", "alive", "h1", "17", "sales", "1/10"]


def test_history(shop: Shop) -> None:
    assert "Nothing was counted in the last 60 minutes." in shop.ok("stats", "--history", "minute")
    shop.dead(2)
    shop.enqueue("crunch_sales", 1)
    for by, last in (("minute", 3), ("day", 2)):
        page = shop.json("stats", "--history", by, "--last", str(last))
        assert (page["count"], len(page["history"])) == (last, last)
        for name, count in {"enqueued": 3, "died": 2, "failed": 2, "attempts": 2, "done": 0}.items():
            assert sum(row[name] for row in page["history"]) == count
        rows = [line.split() for line in shop.ok("stats", "--history", by, "--last", str(last)).splitlines()]
        heads = [by.upper(), "ENQUEUED", "DONE", "DIED", "FAILED", "ATTEMPTS"]
        assert heads in rows
        assert any(row[:1] == ["enqueued"] and "\N{FULL BLOCK}" in row[1] for row in rows)


@pytest.mark.parametrize(
    "words",
    [
        ("--last", "5"),
        ("--history", "hour"),
        ("--history", "day", "--last", "367"),
        ("--history", "minute", "--last", "0"),
    ],
)
def test_a_history_that_is_none(shop: Shop, words: tuple[str, ...]) -> None:
    result = shop.rqj("stats", *words)
    assert result.exit_code == 2
    assert f"{words[-2]}" in result.stderr


def test_stats_add_up(shop: Shop) -> None:
    shop.dead(2)
    shop.enqueue("crunch_sales", 1)
    shop.enqueue("crunch_sales", 1)
    shop.app.handler("anything").options(delay="10m").enqueue()
    shop.ok("jobs", "cancel", "-y", shop.enqueue("anything"))
    stats = shop.json("stats")
    assert stats["enqueued"] == 5
    left = (
        "ready",
        "scheduled",
        "running",
        "parked",
        "dead",
        "done",
        "cancelled",
        "deleted",
        "expired",
        "superseded",
    )
    assert sum(stats[name] for name in left) == 5
    assert (stats["dead"], stats["failed"], stats["attempts"], stats["refused"], stats["locks"]) == (
        2,
        2,
        2,
        1,
        1,
    )
    rows = [line.split() for line in shop.ok("stats").splitlines()]
    assert ["ready", "1", "enqueued", "5"] in rows
    assert ["longest", "wait:", "0s,", "in", "sales"] in rows
    assert list(stats["waiting_since"]) == ["sales"]


def test_recover(shop: Shop) -> None:
    register(shop, "alive")
    assert shop.ok("recover") == "No worker is dead.\n"
    shop.app.handler("crunch_sales").enqueue_many([(n,) for n in range(3)])
    assert len(claim(shop, "alive", "sales", 3)) == 3
    result = shop.rqj("recover", "alive", input="n\n")
    assert result.exit_code == 7
    assert "Give back 3 jobs of 1 worker in namespace 'bookstore'" in result.stderr
    assert shop.ok("recover", "--yes", "alive") == "gave back 3 jobs of 1 worker\n"
    stats = shop.json("stats")
    assert (stats["ready"], stats["running"], stats["crashed"], stats["workers"]) == (3, 0, 3, 0)
    missing = shop.rqj("recover", "--yes", "alive")
    assert missing.exit_code == 3
    assert "there is no worker 'alive'" in missing.stderr


def test_recover_of_those_whose_lease_is_over(shop: Shop) -> None:
    register(shop, "gone")
    shop.enqueue("crunch_sales", 1)
    claim(shop, "gone", "sales")
    client = shop.server.client()
    client.zadd(shop.app.keys.fixed("workers"), {"gone": 1})
    assert shop.json("workers")["workers"][0]["state"] == "silent"
    assert shop.json("recover")["recovered"] == 1
    assert shop.json("stats")["ready"] == 1


def test_scripts(shop: Shop) -> None:
    told = shop.json("scripts")
    assert [one["script"] for one in told["scripts"]] == list(verbs())
    assert shop.ok("scripts", "show", "turn") == script("turn").text
    assert shop.json("scripts", "show", "turn")["sha1"] == script("turn").sha
    result = shop.rqj("scripts", "show", "trun")
    assert result.exit_code == 3
    assert "Did you mean 'turn'?" in result.stderr


@pytest.mark.parametrize(
    "words", [["jobs"], ["queues"], ["locks"], ["dead"], ["scheduled"], ["workers"], ["stats"], ["scripts"]]
)
def test_json_is_one_ascii_document(shop: Shop, words: list[str]) -> None:
    shop.enqueue("anything", "gr\u00f6\u00dfe \u2603")
    shop.dead(1, "\u043e\u0448\u0438\u0431\u043a\u0430")
    said = shop.ok(*words, "--json")
    assert said.isascii()
    json.loads(said)
