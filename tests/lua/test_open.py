"""open: a namespace's format is written once, and told ever after."""

from tests.lua.stage import Stage


def test_a_new_namespace(stage: Stage) -> None:
    answer, changed = stage.did(stage.ops.open())
    assert answer == 1
    assert changed == {"meta": {"format": (None, "1"), "partitions": (None, "1")}}
    assert stage.did(stage.ops.open()) == (1, {})


def test_one_of_another_format_is_left_as_it_is(stage: Stage) -> None:
    stage.client.hset(stage.key("meta"), mapping={"format": "7", "partitions": "16"})
    assert stage.did(stage.ops.open()) == (7, {})
