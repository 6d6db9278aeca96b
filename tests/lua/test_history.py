"""history: what each minute and day has counted, and the copies that the counting scripts keep for it."""

import pytest

from rqlite_jobs.counters import Copies, Copy
from tests.lua.stage import LEASE_MS, Stage, job, locked

MINUTE_MS = 60_000
DAY = 24 * 60


def at(stage: Stage, minute: int, ms: int = 0) -> None:
    stage.now_ms = minute * MINUTE_MS + ms


def counted(stage: Stage, unit: str = "minute", last: int = 60) -> dict[int, dict[str, int]]:
    found, changed = stage.did(stage.ops.history(unit, last))
    assert changed == {}
    assert found.now_ms == stage.now_ms
    return found.added()


def test_nothing_yet(stage: Stage) -> None:
    at(stage, 5)
    assert stage.did(stage.ops.history("minute", 3)) == (Copies(300_000, {}, []), {})


def test_minutes_and_days(stage: Stage) -> None:
    at(stage, 3 * DAY - 2)
    stage.enqueue(job("a"), job("b"))
    at(stage, 3 * DAY - 2, 59_999)
    stage.enqueue(job("c"))
    at(stage, 3 * DAY - 1)
    stage.settle("done", stage.claim()[0])
    at(stage, 3 * DAY + 7)
    stage.settle("bury", stage.claim()[0], reason="failed", error="E")
    stage.enqueue(locked("d"), locked("e"))
    minutes = {
        3 * DAY + 7: {"failed": 1, "died": 1, "enqueued": 1, "refused": 1},
        3 * DAY - 1: {"done": 1},
        3 * DAY - 2: {"enqueued": 3},
    }
    assert counted(stage) == minutes
    assert counted(stage, last=9) == {number: minutes[number] for number in list(minutes)[:2]}
    assert counted(stage, last=8) == {3 * DAY + 7: minutes[3 * DAY + 7]}
    days = {3: minutes[3 * DAY + 7], 2: {"done": 1, "enqueued": 3}}
    assert counted(stage, "day") == days
    assert counted(stage, "day", 1) == {3: days[3]}
    at(stage, 4 * DAY + 1)
    assert counted(stage, "day", 2) == {3: days[3]}
    assert counted(stage, "day", 1) == {}
    assert counted(stage) == {}


def test_the_copies_are_a_chain(stage: Stage) -> None:
    at(stage, DAY)
    _, changed = stage.did(stage.ops.enqueue([job("a"), job("b")]))
    assert changed["totals"] == {"minute": (None, str(DAY)), "enqueued": (None, "2")}
    assert changed[f"history:minute:{DAY}"] == changed["history:day:1"] == {"minute": (None, "0")}
    at(stage, DAY + 4)
    _, changed = stage.did(stage.ops.enqueue([job("c")]))
    assert changed["totals"] == {"minute": (str(DAY), str(DAY + 4)), "enqueued": ("2", "3")}
    assert changed[f"history:minute:{DAY + 4}"] == {"minute": (None, str(DAY)), "enqueued": (None, "2")}
    assert not any(key.startswith("history:day") for key in changed)
    _, changed = stage.did(stage.ops.enqueue([job("d")]))
    assert changed["totals"] == {"enqueued": ("3", "4")}


def test_it_is_read_in_steps(stage: Stage) -> None:
    for minute in (5, 7, 8, 9):
        at(stage, minute)
        stage.enqueue(job(f"{minute}"))
    copies = [
        Copy(9, {"enqueued": 3}, 8),
        Copy(8, {"enqueued": 2}, 7),
        Copy(7, {"enqueued": 1}, 5),
        Copy(5, {}, 0),
    ]
    assert stage.run(stage.ops.history("minute", 5, limit=2)).copies == copies[:2]
    assert stage.run(stage.ops.history("minute", 5, limit=9)).copies == copies
    assert stage.run(stage.ops.history("minute", 4, limit=9)).copies == copies[:3]
    assert stage.run(stage.ops.history("minute", 3, 7, 9)).copies == copies[2:]
    assert stage.run(stage.ops.history("minute", 2, 7, 9)).copies == copies[2:3]
    assert stage.run(stage.ops.history("minute", 3, 8, 1)).copies == copies[1:2]


def test_a_clock_that_goes_back_begins_nothing_anew(stage: Stage) -> None:
    at(stage, 10)
    stage.enqueue(job("a"))
    at(stage, 8)
    stage.enqueue(job("b"))
    found = stage.run(stage.ops.history("minute", 2))
    assert found.added() == {10: {"enqueued": 2}}
    at(stage, 11)
    stage.enqueue(job("c"))
    assert counted(stage) == {11: {"enqueued": 1}, 10: {"enqueued": 2}}


def test_the_first_minute_of_all_has_no_copy(stage: Stage) -> None:
    stage.enqueue(job("a"))
    assert counted(stage) == {0: {"enqueued": 1}}
    assert counted(stage, "day") == {0: {"enqueued": 1}}
    at(stage, 3)
    stage.enqueue(job("b"))
    assert counted(stage) == {3: {"enqueued": 1}, 0: {"enqueued": 1}}
    assert counted(stage, last=3) == {3: {"enqueued": 1}}


def test_what_was_counted_before_there_was_a_history_is_in_no_row(stage: Stage) -> None:
    stage.client.hset(stage.key("totals"), "enqueued", 7)
    at(stage, DAY)
    stage.enqueue(job("a"))
    assert counted(stage) == {DAY: {"enqueued": 1}}
    assert counted(stage, "day", 1) == {1: {"enqueued": 1}}


def test_every_script_that_counts_begins_a_minute(stage: Stage) -> None:
    stage.enqueue(*(job(name) for name in "abcdefgh"))
    stage.enqueue(job("i", "spam"))
    stage.claim(2)
    stage.claim(1, worker="w2")
    asked = {
        "enqueue": lambda: stage.ops.enqueue([job("x"), job("y")]),
        "push": lambda: stage.ops.enqueue([job("z")]),
        "cancel": lambda: stage.ops.cancel(["e"]),
        "delete": lambda: stage.ops.delete(["f"]),
        "bury": lambda: stage.ops.bury(["g"], "why"),
        "purge": lambda: stage.ops.purge("spam"),
        "recover": lambda: stage.ops.recover(3, ["w1"]),
        "heartbeat": lambda: stage.ops.heartbeat("w3", LEASE_MS, 3, []),
    }
    for minute, (verb, make) in enumerate(asked.items(), 1):
        at(stage, minute)
        if verb == "heartbeat":
            stage.worker("w3")
            stage.client.zadd(stage.key("workers"), {"w2": 1})
        call = make()
        assert call.verb == verb
        _, changed = stage.did(call)
        assert changed["totals"]["minute"][1] == str(minute), verb
        assert f"history:minute:{minute}" in changed
    assert len(counted(stage)) == 1 + len(asked)


def test_ttls_by_the_servers_clock(stage: Stage) -> None:
    stage.now_ms = -1
    stage.enqueue(job("a"))
    ttls = {key: stage.client.ttl(stage.key(key)) for key in stage.world() if key.startswith("history:")}
    assert sorted(key.split(":")[1] for key in ttls) == ["day", "minute"]
    for key, ttl_s in ttls.items():
        whole_s = 25 * 3600 if ":minute:" in key else 400 * 86_400
        assert whole_s - 100 < ttl_s <= whole_s


@pytest.mark.parametrize("junk", ["mine", None, {"minute": "99999999"}, {"minute": "x", "enqueued": "-4"}])
def test_what_is_none_of_our_copies(stage: Stage, junk: str | dict[str, str] | None) -> None:
    for minute in (5, 6):
        at(stage, minute)
        stage.enqueue(job(f"{minute}"))
    key = stage.key("history:minute:6")
    stage.client.delete(key)
    if isinstance(junk, str):
        stage.client.set(key, junk)
    elif junk:
        stage.client.hset(key, mapping=junk)
    assert set(counted(stage, last=3)) == ({6} if isinstance(junk, dict) else set())


def test_a_foreign_key_in_the_place_of_a_copy_stops_nobody(stage: Stage) -> None:
    at(stage, 5)
    stage.client.set(stage.key("history:minute:5"), "mine")
    for new in ([job("a")], [job("b"), job("c")]):
        stage.enqueue(*new)
    assert stage.world()["totals"] == {"minute": "5", "enqueued": "3"}
    assert stage.run(stage.ops.survey()).totals == {"enqueued": 3}
