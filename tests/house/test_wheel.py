"""The wheel: built, installed into an environment that has nothing else, and a script run from it."""

import subprocess
import sys
import tempfile
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
# Phrases of pip where there is no network at all; whatever else goes wrong is a failure.
OFFLINE = ("Failed to establish a new connection", "Temporary failure in name resolution")
# Enqueues on a server of its own, runs what it enqueued, and says where the package was found.
USE_IT = """
import sys
from pathlib import Path
import rqlite_jobs
from rqlite_jobs import App, until_executed
from rqlite_jobs.embedded import Embedded
home = Path(sys.argv[1])
app = App("wheel", url=f"embedded://{home}")
@app.job(lock=until_executed())
def double(x: int) -> int:
    return 2 * x
try:
    first, second = double.enqueue(21), double.enqueue(21)
    print(first.outcome, second.outcome, second.id == first.id)
    print(Path(rqlite_jobs.__file__).parent)
finally:
    print(Embedded(home).stop())
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=CHECKOUT,
        capture_output=True,
        check=True,
    )
    [built] = folder.glob("*.whl")
    return built


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder whose path leaves room for a socket's."""
    with tempfile.TemporaryDirectory(prefix="rqj-", dir="/tmp") as folder:
        yield Path(folder).resolve()


def test_holds_the_package_its_scripts_and_its_example(wheel: Path) -> None:
    held = set(zipfile.ZipFile(wheel).namelist())
    expected = {"rqlite_jobs/py.typed"}
    for source in CHECKOUT.glob("rqlite_jobs/**/*.py"):
        expected.add(str(source.relative_to(CHECKOUT)))
    for folder in ("lua", "examples/bookstore"):
        for source in (CHECKOUT / folder).rglob("*"):
            if source.is_file() and "__pycache__" not in source.parts:
                expected.add(f"rqlite_jobs/{source.relative_to(CHECKOUT)}")
    assert expected - held == set()
    assert {name.split("/")[0].split("-")[0] for name in held} == {"rqlite_jobs"}
    assert [name for name in held if "test" in name and "testing" not in name] == []
    assert any(name.endswith("licenses/LICENSE") for name in held)


@pytest.mark.slow
def test_runs_a_script_from_a_clean_environment(wheel: Path, short: Path) -> None:
    venv.create(short / "env", with_pip=True)
    python = short / "env" / "bin" / "python"
    installed = subprocess.run(
        [str(python), "-m", "pip", "install", "--quiet", f"{wheel}[server]"], capture_output=True, text=True
    )
    if installed.returncode and any(phrase in installed.stderr for phrase in OFFLINE):
        pytest.skip("no network: what the wheel depends on cannot be installed")
    assert installed.returncode == 0, installed.stderr

    # From another folder and without the environment of these tests, so that nothing comes from the checkout.
    used = subprocess.run(
        [str(python), "-I", "-c", USE_IT, str(short / "home")],
        cwd=short,
        env={"HOME": str(short), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert used.returncode == 0, used.stderr
    answers, where, stopped = used.stdout.splitlines()
    assert answers == "enqueued duplicate True"
    assert (short / "env") in Path(where).parents
    assert stopped == "True"

    command = short / "env" / "bin" / "rqj"
    said = subprocess.run([str(command), "--help"], capture_output=True, text=True, cwd=short)
    assert said.returncode == 0
    assert "worker" in said.stdout
