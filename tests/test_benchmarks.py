"""The benchmarks run, and say what they promise to say. Held to here are only those bars that a busy machine leaves
as they are: counts, bytes, and ratios of what was measured in turns within one run."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.servers import REAL_LANES, why_missing

FOLDER = Path(__file__).resolve().parent.parent / "benchmarks"
QUESTIONS = {
    "enqueue_one": ["one by one, of a bare loop of the same script"],
    "enqueue_bulk": [],
    "process_1_slot": ["jobs a bare trip (0.4: 8,000 jobs/s where it does 20,000 trips/s)"],
    "process_10_slots": ["jobs a bare trip (0.4: 8,000 jobs/s where it does 20,000 trips/s)"],
    "start_latency": [],
    "memory": ["waiting job, bytes"],
    "commands": ["idle worker, commands a second"],
}

pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.skipif(all(why_missing(lane) for lane in REAL_LANES), reason="no server here"),
]


@pytest.mark.parametrize(("name", "bars"), QUESTIONS.items())
def test_short_form_ends_well_and_meets_its_steady_bars(name: str, bars: list[str]) -> None:
    found = run(name, "--quick", "--json")
    assert found["rows"], "nothing was measured"
    for row in found["rows"].values():
        assert 0 <= row["min"] <= row["median"] <= row["max"]
    assert {"python", "redis-py", "cores"} <= set(found["versions"])
    for bar in bars:
        assert found["bars"][bar]["met"], found["bars"][bar]


def test_each_question_has_a_line_in_the_readme_and_here() -> None:
    asked = {
        path.stem
        for path in FOLDER.glob("*.py")
        if "Report(__doc__" in path.read_text() or "measure(__doc__" in path.read_text()
    }
    assert asked == set(QUESTIONS)
    readme = (FOLDER / "README.md").read_text()
    assert [name for name in asked if f"`{name}.py`" not in readme] == []


def test_the_table_for_people_names_question_versions_and_bars() -> None:
    said = subprocess.run(
        [sys.executable, FOLDER / "memory.py", "--quick", "-n", "2000"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    lines = said.splitlines()
    assert lines[0].startswith("How much of the server's memory")
    assert "python 3." in lines[1]
    assert lines[3].split() == ["min", "median", "max"]
    assert "waiting job, bytes" in lines[-1]


def run(name: str, *options: str) -> dict[str, Any]:
    """Run a benchmark; its JSON."""
    ended = subprocess.run(
        [sys.executable, FOLDER / f"{name}.py", *options], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout)
    return found
