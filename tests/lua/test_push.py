"""push: the short way of one plain job is the long one's, key for key."""

from typing import Any

import pytest

from rqlite_jobs.answers import Enqueued, read_enqueued
from rqlite_jobs.call import Arg, Call
from rqlite_jobs.errors import RqjError
from rqlite_jobs.job import NewJob
from rqlite_jobs.operations import INLINE_MAX
from rqlite_jobs.script import script
from tests.lua.stage import Stage, job, locked


def the_long_way(stage: Stage, one: NewJob) -> Call[list[Enqueued]]:
    """What `enqueue` would be sent for one plain job."""
    settings = stage.ops.settings
    args: list[Arg] = [
        stage.ops.clock.now_ms(),
        settings.lock_safety_ms,
        settings.rejected_max_count,
        settings.done_max_count,
        settings.changelog_max,
    ]
    args += [one.id, one.queue, one.level, "", b"", b"", b"0", b"", one.payload, b"", b""]
    keys = stage.ops.keys.of_script(script("enqueue").bindings)
    return Call("enqueue", keys, args, lambda reply: read_enqueued([one], reply), "laned")


@pytest.mark.parametrize("before", [[], [job("first")]])
def test_it_does_what_enqueue_does(stage: Stage, before: list[NewJob]) -> None:
    answers, worlds = [], []
    for call in (stage.ops.enqueue([job("a")]), the_long_way(stage, job("a"))):
        stage.server.flush()
        for one in before:
            stage.enqueue(one)
        answers.append(stage.run(call))
        worlds.append({key: value for key, value in stage.world().items() if not key.startswith("lane:")})
    assert answers[0] == answers[1]
    assert worlds[0] == worlds[1]


@pytest.mark.parametrize(
    "one",
    [job("a", delay_ms=0), job("a", run_at_ms=1), locked("a", "k"), job("a", payload=" " * (INLINE_MAX + 1))],
)
def test_what_is_not_plain_goes_the_long_way(stage: Stage, one: NewJob) -> None:
    assert stage.ops.enqueue([one]).verb == "enqueue"


@pytest.mark.parametrize("make", [job, lambda id, payload: locked(id, "k", payload=payload)])
def test_both_ways_agree_on_how_long_a_payload_lies_in_its_record(stage: Stage, make: Any) -> None:
    stage.enqueue(make("in", payload="x" * INLINE_MAX))
    assert "bodies" not in stage.world()
    stage.run(stage.ops.delete(["in"]))
    stage.enqueue(make("out", payload="x" * (INLINE_MAX + 1)))
    assert list(stage.world()["bodies"]) == ["out"]


def test_asked_again_in_its_lane(stage: Stage) -> None:
    call = stage.ops.enqueue([job("a")])
    first = stage.sent(call)
    before = stage.world()
    assert stage.sent(call) == first
    assert stage.world() == before


def test_an_id_that_is_there(stage: Stage) -> None:
    stage.enqueue(job("a"))
    before = stage.world()
    with pytest.raises(RqjError, match="a job with the id a exists already"):
        stage.caller.run(stage.ops.enqueue([job("a")]))
    assert stage.world() == before


def test_a_list_of_a_foreign_type(stage: Stage) -> None:
    stage.caller.command("SET", stage.key("ready:sales:0"), "mine")
    before = stage.world()
    with pytest.raises(RqjError, match="foreign type"):
        stage.caller.run(stage.ops.enqueue([job("a")]))
    assert stage.world() == before
