"""mypy and pyright on what users type: `holds.py` and `reads.py` are accepted, marked lines of `fails.py` are not."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import rqlite_jobs
from rqlite_jobs import App, CurrentJob, Handler, Job, inspector, testing, worker
from rqlite_jobs.control import Control
from rqlite_jobs.inspector import Inspector
from rqlite_jobs.testing import FrozenClock
from rqlite_jobs.worker import Worker

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
HOLDS, READS, FAILS = (HERE / f"{name}.py" for name in ("holds", "reads", "fails"))

FOR_OUR_OWN_ROOMS = set(
    "address arun async_caller bind_payload caller declaration declared keys operations prepare run set_flags "
    "settings".split()
)
"""What app and handler show to the worker, the readers and the command line, and not to users."""


def run(*command: str) -> str:
    """What a checker says; it may find errors, but must not fail itself."""
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=ROOT,
        env={**os.environ, "MYPYPATH": str(ROOT), "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def mypy(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, dict[int, str]]:
    """The errors of mypy --strict, by file and line."""
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed: pip install 'rqlite-jobs[dev]'")
    cache = tmp_path_factory.mktemp("mypy")
    said = run(
        "mypy", "--strict", "--hide-error-context", f"--cache-dir={cache}", str(HOLDS), str(READS), str(FAILS)
    )
    found: dict[Path, dict[int, str]] = {}
    for file, line, text in re.findall(r"^(\S+?):(\d+): error: (.*)$", said, re.MULTILINE):
        found.setdefault((ROOT / file).resolve(), {})[int(line)] = text
    return found


@pytest.fixture(scope="module")
def pyright() -> dict[Path, dict[int, str]]:
    """The errors of pyright, by file and line."""
    if importlib.util.find_spec("pyright") is None:
        pytest.skip("pyright is not installed: pip install 'rqlite-jobs[dev]'")
    said = json.loads(
        run("pyright", "--pythonpath", sys.executable, "--outputjson", str(HOLDS), str(READS), str(FAILS))
    )
    assert said["summary"]["filesAnalyzed"] == 3
    found: dict[Path, dict[int, str]] = {}
    for one in said["generalDiagnostics"]:
        if one["severity"] == "error":
            line = one["range"]["start"]["line"] + 1
            found.setdefault(Path(one["file"]).resolve(), {})[line] = one["message"]
    return found


def refused() -> set[int]:
    """The lines of `fails.py` that must be refused."""
    lines = FAILS.read_text("utf-8").splitlines()
    return {number for number, line in enumerate(lines, 1) if line.endswith("  # refused")}


def public(thing: Any) -> set[str]:
    """What a module exports, or what a class has for its users."""
    if isinstance(thing, ModuleType):
        return set(thing.__all__)
    return {name for name in dir(thing) if not name.startswith("_")}


@pytest.mark.slow
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
@pytest.mark.parametrize("file", [HOLDS, READS], ids=lambda file: file.stem)
def test_what_users_type_is_accepted(checker: str, file: Path, request: pytest.FixtureRequest) -> None:
    assert request.getfixturevalue(checker).get(file, {}) == {}


@pytest.mark.parametrize(
    "thing",
    [
        rqlite_jobs,
        inspector,
        testing,
        worker,
        App,
        Control,
        CurrentJob,
        Handler,
        Inspector,
        Job,
        Worker,
        FrozenClock,
    ],
)
def test_no_public_name_is_left_out(thing: Any) -> None:
    typed = set(re.findall(r"\w+", HOLDS.read_text("utf-8") + READS.read_text("utf-8")))
    assert public(thing) - typed - FOR_OUR_OWN_ROOMS == set()


@pytest.mark.slow
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_what_must_fail_fails(checker: str, request: pytest.FixtureRequest) -> None:
    found = request.getfixturevalue(checker).get(FAILS, {})
    assert len(refused()) > 40
    assert set(found) == refused(), {line: found.get(line, "accepted") for line in set(found) ^ refused()}
