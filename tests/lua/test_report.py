"""report: how far running jobs are; and that nothing is left of it when their runs are over."""

from collections.abc import Callable
from typing import Any

import pytest

from rqlite_jobs.durations import instant
from rqlite_jobs.progress import Progress
from tests.lua.stage import LEASE_MS, NONCE, Stage, job, locked

TOKEN = f"1000000-{NONCE}"


def said(stage: Stage, id: str, value: float = 0.4, text: str = "pages") -> list[str]:
    """Let a running job say how far it is."""
    return stage.run(stage.ops.report("w1", [(id, TOKEN, value, text)]))


def test_it_is_noted_with_the_servers_time(stage: Stage) -> None:
    stage.enqueue(job("a"))
    (claim,) = stage.claim()
    assert claim.token == TOKEN
    stage.now_ms = 2000
    answer, changed = stage.did(stage.ops.report("w1", [("a", TOKEN, 1 / 3, "two words")]))
    assert answer == ["noted"]
    assert changed == {"progress": {"a": (None, "0.333333 2000 two words")}}
    assert stage.looked("a").progress == Progress(0.333333, "two words", instant(2000))
    assert [one.progress for one in stage.run(stage.ops.page("running", "", b"", 5)).jobs] == [
        stage.looked("a").progress
    ]
    said(stage, "a", 1, "")
    assert stage.looked("a").progress == Progress(1, "", instant(2000))


def test_one_whose_token_is_not_the_jobs_changes_nothing(stage: Stage) -> None:
    stage.enqueue(job("a"), job("b"), job("c"))
    a, _ = stage.claim(2)
    reports = [("a", a.token, 0.5, ""), ("b", a.token, 0.5, ""), ("c", a.token, 0.5, ""), ("d", "", 0.5, "")]
    answer, changed = stage.did(stage.ops.report("w1", reports))
    assert answer == ["noted", "stale", "stale", "stale"]
    assert changed == {"progress": {"a": (None, "0.5 1000 ")}}
    assert stage.run(stage.ops.report("w2", reports)) == ["stale"] * 4


def crash(stage: Stage) -> None:
    stage.now_ms += LEASE_MS + 1
    stage.run(stage.ops.recover(5, ["w1"]))


def unheard(stage: Stage) -> None:
    stage.now_ms += LEASE_MS + 1
    stage.run(stage.ops.heartbeat("w1", LEASE_MS, 5, []))


def settle(word: str, **facts: Any) -> Callable[[Stage], object]:
    def end(stage: Stage) -> None:
        for claim in stage.claims:  # type: ignore[attr-defined]
            stage.settle(word, claim, **facts)

    return end


ENDS: dict[str, Callable[[Stage], object]] = {
    "done": settle("done"),
    "returned": settle("returned", result=b"7"),
    "returned, kept": settle("returned", result=b"7", ttl_ms=5),
    "buried": settle("bury", reason="failed"),
    "retried": settle("retry", delay_ms=5),
    "snoozed": settle("snooze", delay_ms=5),
    "put off": settle("putoff", delay_ms=5),
    "handed back": settle("back"),
    "left": lambda stage: stage.run(stage.ops.leave("w1", ["sales"])),
    "crashed": crash,
    "unheard of": unheard,
}


@pytest.mark.parametrize("how", ENDS)
def test_nothing_is_left_when_the_run_is_over(stage: Stage, how: str) -> None:
    stage.enqueue(job("a"), locked("b"), job("silent"), job("other"))
    a, b, silent = stage.claim(3)
    stage.worker("w2")
    (other,) = stage.claim(1, worker="w2")
    for claim in (a, b):
        assert stage.run(stage.ops.report("w1", [(claim.id, claim.token, 0.5, "x")])) == ["noted"]
    stage.run(stage.ops.report("w2", [(other.id, other.token, 0.5, "x")]))
    stage.claims = [a, b, silent]  # type: ignore[attr-defined]
    ENDS[how](stage)
    assert stage.world()["progress"] == {"other": "0.5 1000 x"}
    stage.settle("done", other, worker="w2")
    assert "progress" not in stage.world()


def test_a_key_of_a_foreign_type_stops_nothing_but_reports(stage: Stage) -> None:
    stage.enqueue(job("a"), job("b"))
    a, b = stage.claim(2)
    stage.client.set(stage.key("progress"), "mine")
    assert stage.looked("a").progress is None
    assert stage.settle("done", a) == {}
    assert stage.settle("retry", b, delay_ms=1) == {}
    assert (stage.state("a"), stage.state("b")) == ("done", "scheduled")


@pytest.mark.parametrize(
    "entry", ["", "mine", "0.5 1000", "x 1000 t", "0.5 x t", "0.5 99999999999999999999 t"]
)
def test_an_entry_that_is_none_of_ours_reads_as_none(stage: Stage, entry: str) -> None:
    stage.enqueue(job("a"))
    stage.claim()
    stage.client.hset(stage.key("progress"), "a", entry)
    assert stage.looked("a").progress is None


def test_a_text_may_hold_anything(stage: Stage) -> None:
    stage.enqueue(job("a"))
    stage.claim()
    for text in ("a\0b  c\n", "größe 📚", " "):
        said(stage, "a", 0.5, text)
        found = stage.looked("a").progress
        assert found is not None
        assert found.text == text
