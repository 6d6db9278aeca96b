"""The loader: where each line came from, parts once, and an error of the server told with its file and line."""

import hashlib
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rqlite_jobs.script as loader
from rqlite_jobs.errors import ScriptFailed
from rqlite_jobs.operations import Call
from rqlite_jobs.script import Line, script, verbs
from tests.lua.source import LUA
from tests.lua.stage import Stage, job

Planted = Callable[..., None]


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`planted(**files)`: a folder of scripts of a test's own."""

    def plant(**files: str) -> None:
        for name, text in files.items():
            path = tmp_path / f"{name.replace('__', '/')}.lua"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, "utf-8")
        monkeypatch.setattr(loader, "folder", lambda: tmp_path)
        verbs.cache_clear()
        script.cache_clear()

    yield plant
    monkeypatch.undo()
    verbs.cache_clear()
    script.cache_clear()


def test_the_scripts_are_the_files_of_the_folder() -> None:
    assert verbs() == tuple(sorted(path.stem for path in LUA.glob("*.lua")))
    assert len(verbs()) > 15


@pytest.mark.parametrize("verb", verbs())
def test_every_line_knows_where_it_came_from(verb: str) -> None:
    found = script(verb)
    assert found.text == "".join(line.text + "\n" for line in found.lines)
    for line in found.lines:
        assert (LUA / line.file).read_text("utf-8").splitlines()[line.number - 1] == line.text
    assert found.sha == hashlib.sha1(found.text.encode()).hexdigest()
    assert found.plain_sha == hashlib.sha1(found.plain_text.encode()).hexdigest()
    # What is sent to an interpreter without `#!lua` has the same lines.
    assert found.plain_text.splitlines()[1:] == found.text.splitlines()[1:]


@pytest.mark.parametrize("verb", verbs())
def test_its_bindings_are_those_of_the_file(verb: str) -> None:
    text = (LUA / f"{verb}.lua").read_text("utf-8")
    assert list(script(verb).bindings) == re.findall(r"^local (\w+) += KEYS\[", text, re.MULTILINE)


def test_a_part_is_taken_in_once_where_it_is_first_named(planted: Planted) -> None:
    planted(
        one="#!lua\n--- Does one thing.\n--- @include lib/a.lua\n--- @include lib/b.lua\n"
        "--- @include lib/a.lua\nreturn 1\n",
        lib__a="--- A.\n--- @include lib/b.lua\nlocal a = {}\n",
        lib__b="--- B.\n--- @include lib/a.lua\nlocal b = {}\n",  # parts that name each other do no harm
    )
    found = script("one")
    assert verbs() == ("one",)
    assert found.lines == (
        Line("#!lua", "one.lua", 1),
        Line("--- Does one thing.", "one.lua", 2),
        Line("--- A.", "lib/a.lua", 1),
        Line("--- B.", "lib/b.lua", 1),
        Line("local b = {}", "lib/b.lua", 3),
        Line("local a = {}", "lib/a.lua", 3),
        Line("return 1", "one.lua", 6),
    )
    assert found.summary == "Does one thing."


def test_origins_beyond_the_ends(planted: Planted) -> None:
    planted(one="#!lua\nreturn 1\n")
    found = script("one")
    assert [found.origin(number).number for number in (-1, 0, 1, 2, 3, 99)] == [1, 1, 1, 2, 2, 2]


def test_bindings_go_by_their_number(planted: Planted) -> None:
    planted(one="#!lua\nlocal b_key = KEYS[2]\nlocal a_key    = KEYS[1]\nlocal c_prefix = KEYS[10]\n")
    assert script("one").bindings == ("a_key", "b_key", "c_prefix")


def test_a_script_that_does_not_exist() -> None:
    for verb in ("nothing", "lib/lock", "../lua/turn", "", "turn.lua"):
        with pytest.raises(KeyError):
            script(verb)


def test_a_part_that_does_not_exist(planted: Planted) -> None:
    planted(one="#!lua\n--- @include lib/nothing.lua\n")
    with pytest.raises(FileNotFoundError, match=r"nothing\.lua"):
        script("one")


def test_a_broken_installation_says_where_it_looked(tmp_path: Path) -> None:
    (tmp_path / "rqlite_jobs").mkdir()
    for name in ("__init__.py", "script.py"):
        source = Path(loader.__file__).with_name(name)
        (tmp_path / "rqlite_jobs" / name).write_text(source.read_text("utf-8") if name == "script.py" else "")
    code = "from rqlite_jobs.script import script; script('turn')"
    said = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    last = said.stderr.strip().splitlines()[-1]
    assert last.startswith("FileNotFoundError: the Lua scripts are neither in ")
    assert str(tmp_path / "lua") in last
    assert last.endswith("install rqlite-jobs again")


# Errors of a real script, on real servers: fakeredis tells no lines.


def failure(stage: Stage, verb: str = "bad") -> ScriptFailed:
    keys = stage.keys.of_script(script(verb).bindings)
    with pytest.raises(ScriptFailed) as caught:
        stage.run(Call(verb, keys, [], lambda reply: reply))
    return caught.value


BAD = "#!lua\n--- Fails.\nlocal jobs_key = KEYS[1]\n--- @include lib/part.lua\n{}\nreturn part.run()\n"


@pytest.mark.lanes("valkey", "redis", "cluster")
@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("return redis.call('HGET', jobs_key, 'a')", "WRONGTYPE"),
        ("return redis.call('HGET', jobs_key)", "Wrong number of args"),
        ("return redis.call('NOTHING', jobs_key)", "Unknown Redis command|Unknown command"),
        ("return no_such_name", "no_such_name"),
        ("return 1 + {}", "arithmetic on a table"),
        ("error('ähm')", "ähm"),
    ],
)
def test_an_error_is_told_with_the_file_and_line(stage: Stage, planted: Planted, line: str, why: str) -> None:
    part = f"--- A part.\nlocal part = {{}}\n\n--- Fail.\nfunction part.run()\n  {line}\nend\n"
    planted(bad=BAD.format("local x = 1"), lib__part=part)
    stage.client.set(stage.key("jobs"), "mine")
    error = failure(stage)
    assert (error.script, error.file, error.line, error.text) == ("bad", "lib/part.lua", 6, f"  {line}")
    assert error.message.startswith("lua/bad.lua failed at lib/part.lua:6: ")
    assert re.search(why, error.message)
    assert error.hint.startswith(f"There it says: {line}")
    assert ("rqj doctor" in error.hint) == (why == "WRONGTYPE")
    assert script("bad").sha not in error.message


@pytest.mark.lanes("valkey", "redis", "cluster")
def test_a_line_behind_a_part_is_one_of_the_script(stage: Stage, planted: Planted) -> None:
    planted(bad=BAD.format("local x = nil .. ''"), lib__part="--- A part.\nlocal part = {}\n")
    error = failure(stage)
    assert (error.file, error.line, error.text) == ("bad.lua", 5, "local x = nil .. ''")


@pytest.mark.lanes("valkey", "redis", "cluster")
def test_a_script_that_does_not_compile(stage: Stage, planted: Planted) -> None:
    planted(bad=BAD.format("local = 1"), lib__part="--- A part.\nlocal part = {}\n")
    error = failure(stage)
    assert (error.file, error.line) == ("bad.lua", 5)
    assert "near '='" in error.message


@pytest.mark.lanes("valkey", "redis", "cluster")
def test_a_key_of_a_foreign_type_in_a_shipped_script(stage: Stage) -> None:
    stage.client.set(stage.key("jobs"), "mine")
    with pytest.raises(ScriptFailed) as caught:
        stage.enqueue(job("a"))
    assert caught.value.file == "push.lua"
    assert "jobs_key" in caught.value.text or "HMGET" in caught.value.text
    assert stage.world() == {"jobs": "mine"}


@pytest.mark.lanes("fake")
def test_without_a_line_the_script_is_named(stage: Stage) -> None:
    stage.client.set(stage.key("jobs"), "mine")
    with pytest.raises(ScriptFailed, match=r"lua/push\.lua failed") as caught:
        stage.enqueue(job("a"))
    assert caught.value.script == "push"


@pytest.mark.lanes("cluster")
def test_a_cluster_refuses_a_key_of_another_slot(stage: Stage, planted: Planted) -> None:
    planted(bad=BAD.format("redis.call('SET', 'elsewhere', 1)"), lib__part="--- A part.\nlocal part = {}\n")
    error = failure(stage)
    assert (error.file, error.line) == ("bad.lua", 5)
    assert stage.client.dbsize() == 0


@pytest.mark.lanes("valkey", "redis")
def test_a_reader_is_refused_a_write(stage: Stage, planted: Planted) -> None:
    text = BAD.format("redis.call('DEL', jobs_key)").replace("#!lua", "#!lua flags=no-writes")
    planted(bad=text, lib__part="--- A part.\nlocal part = {}\n")
    assert (failure(stage).file, failure(stage).line) == ("bad.lua", 5)
