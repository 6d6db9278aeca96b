"""The plugin of pytest: it costs a run nothing until a test uses it, and what it isolates is put back."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
PLUGIN = "rqlite_jobs.testing.plugin"
APP = """
from rqlite_jobs import App
app = App("shop", url="redis://127.0.0.1:1")
@app.job
def send_email(to: str) -> None: ...
"""
TESTS = """
import sys
import shop
from rqlite_jobs.testing import FrozenClock, assert_enqueued, assert_not_enqueued, drain

def test_one(rqj_isolated):
    clock = FrozenClock(0)
    assert rqj_isolated(shop.app, clock=clock) is shop.app
    shop.send_email.options(delay="2s").enqueue("ada@example.org")
    assert_enqueued(shop.send_email, "ada@example.org")
    clock.advance("2s")
    assert drain(shop.app) == 1
    shop.send_email.enqueue("ada@example.org")

def test_two(rqj_isolated):
    rqj_isolated(shop.app)
    assert_not_enqueued(shop.send_email)

def test_it_is_back():
    assert shop.app.address.shown == "redis://127.0.0.1:1/0"
"""
NOTHING = """
import json, sys
def test_nothing():
    print("LOADED", json.dumps(sorted(sys.modules)))
"""


def pytest_in(folder: Path, *options: str) -> str:
    """Run pytest in a fresh process with no plugin but ours."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", PLUGIN, "-W", "error", "-p", "no:cacheprovider", *options],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(CHECKOUT),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTEST_ADDOPTS": "",
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_run_that_does_not_use_it_loads_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_nothing.py").write_text(NOTHING)
    said = pytest_in(tmp_path, "-s")
    [line] = [line for line in said.splitlines() if "LOADED" in line]
    loaded = json.loads(line.partition("LOADED ")[2])
    assert [name for name in loaded if name.startswith("rqlite_jobs")] == [
        "rqlite_jobs", "rqlite_jobs.testing", PLUGIN
    ]  # fmt: skip
    assert {"redis", "fakeredis", "msgspec", "click", "rich"}.isdisjoint(loaded)


def test_it_costs_no_time(tmp_path: Path) -> None:
    """Counted in modules and not by a clock: what it imports that pytest itself has not loaded already."""
    code = (
        "import sys, json, pytest; before = set(sys.modules)\n"
        f"import {PLUGIN}\n"
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, check=True
    ).stdout
    assert json.loads(said) == ["rqlite_jobs", "rqlite_jobs.testing", PLUGIN]


def test_its_fixture_isolates_an_app_for_one_test(tmp_path: Path) -> None:
    pytest.importorskip("fakeredis", reason="fakeredis is not installed")
    (tmp_path / "shop.py").write_text(APP)
    (tmp_path / "test_shop.py").write_text(TESTS)
    assert "3 passed" in pytest_in(tmp_path, "-q")
    assert "rqj_isolated" in pytest_in(tmp_path, "--fixtures")


def test_pytest_finds_it_by_itself() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))
    assert project["project"]["entry-points"]["pytest11"] == {"rqj": PLUGIN}
    addopts = project["tool"]["pytest"]["ini_options"]["addopts"]
    assert addopts[:2] == ["-p", "no:rqj"], "an installed copy would be loaded before this checkout"
