"""luacheck over every script as it is sent, its parts joined: no undefined name can hide in one of them."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from rqlite_jobs.script import script, verbs

CHECKOUT = Path(__file__).parents[2]
LUACHECK = shutil.which("luacheck")

pytestmark = pytest.mark.skipif(
    LUACHECK is None, reason="luacheck is not on the PATH (Debian: apt-get install lua-check)"
)


def check(folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run luacheck over every file of a folder."""
    config = str(CHECKOUT / ".luacheckrc")
    return subprocess.run(
        [str(LUACHECK), "--config", config, "--formatter", "plain", "--codes", "--no-color", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_script_is_clean(tmp_path: Path) -> None:
    for verb in verbs():
        (tmp_path / f"{verb}.lua").write_text(script(verb).text, "utf-8")
    said = check(tmp_path)
    found = set()  # a part is in many scripts, and its faults should be told once
    for line in said.stdout.splitlines():
        place = re.fullmatch(r".*/(\w+)\.lua:(\d+):\d+: (.*)", line)
        assert place, line
        origin = script(place[1]).origin(int(place[2]))
        found.add(f"lua/{origin.file}:{origin.number}: {place[3]}")
    assert sorted(found) == []
    assert said.returncode == 0, said.stderr


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("#!lua\nreturn undefined_name", "W113"),
        ("#!lua\nsome_global = 1", "W111"),
        ("#!lua\nlocal unused = 1", "W211"),
        ("#!lua\nreturn bit.band(1, 1)", "W113"),
        ("#!lua\nreturn (", "E011"),
    ],
)
def test_it_would_find(tmp_path: Path, text: str, code: str) -> None:
    (tmp_path / "bad.lua").write_text(text)
    said = check(tmp_path)
    assert said.returncode != 0
    assert f"({code})" in said.stdout
