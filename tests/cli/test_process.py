"""`rqj` as a process: exit codes, what is on which stream, logging, passwords."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.cli.conftest import SOURCE
from tests.servers import Server, free_port

CHECKOUT = Path(__file__).parents[2]
RQJ = [sys.executable, "-m", "rqlite_jobs.cli"]
DEADLINE_S = 30.0

pytestmark = pytest.mark.real


class Typist:
    """Types commands in a folder with an app in it, as a process each."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        (folder / "tasks.py").write_text(SOURCE, "utf-8")
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("RQJ_", "REDIS_URL"))
        }
        # What pip would do: the package can be found, and nothing else of the checkout.
        (folder / "site").mkdir()
        (folder / "site" / "rqlite_jobs").symlink_to(CHECKOUT / "rqlite_jobs")
        (folder / "site" / "lua").symlink_to(CHECKOUT / "lua")
        self.environ = {**kept, "RQJ_URL": url, "RQJ_EMBEDDED": "0", "PYTHONPATH": str(folder / "site")}

    def rqj(self, *words: str, **environ: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*RQJ, *words],
            cwd=self.folder,
            env={**self.environ, **environ},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )

    def start(self, *words: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [*RQJ, *words],
            cwd=self.folder,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


@pytest.fixture
def typist(real_server: Server, tmp_path: Path) -> Typist:
    return Typist(tmp_path, real_server.url)


def test_g35_by_module_name_from_its_folder(typist: Typist) -> None:
    assert typist.rqj("enqueue", "-a", "tasks", "crunch_sales", "book_id=42").returncode == 0
    done = typist.rqj("worker", "tasks", "--burst")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "serves" in done.stderr
    (job,) = json.loads(typist.rqj("jobs", "--json").stdout)["jobs"]
    assert (job["state"], job["attempts"]) == ("done", 1)


@pytest.mark.parametrize(
    ("words", "code", "named"),
    [
        (["missing_module"], 6, "missing_module"),
        (["missing.module:app"], 6, "missing.module"),
        (["tasks:nope"], 6, "tasks:nope"),
        (["tasks", "--nope"], 2, "--nope"),
        (["tasks", "-c", "many"], 2, "--concurrency"),
        (["tasks", "--lease", "soon"], 2, "--lease"),
        (["tasks", "-q", "a b"], 2, "a b"),
        (["tasks", "-q", ","], 2, "--queues"),
        ([], 2, "MODULE:APP"),
    ],
)
def test_g35_what_a_worker_refuses(typist: Typist, words: list[str], code: int, named: str) -> None:
    began_s = time.monotonic()
    done = typist.rqj("worker", *words)
    assert time.monotonic() - began_s < 5
    assert done.returncode == code
    lines = done.stderr.splitlines()
    assert named in done.stderr
    if code == 6 or named.startswith("--n"):
        assert named in lines[-1]
    assert len(lines) <= 2
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_closed_standard_output_is_no_error(typist: Typist) -> None:
    typist.rqj("enqueue", "-a", "tasks", "crunch_sales", "book_id=42")
    for words in ("jobs", "stats", "doctor", "jobs --json"):
        done = subprocess.run(
            ["sh", "-c", f'exec "$@" {words} >&-', "sh", *RQJ],
            cwd=typist.folder,
            env=typist.environ,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")


def test_g35_logging_of_the_app_is_left_alone(typist: Typist) -> None:
    own = "import logging\nlogging.basicConfig(level=logging.INFO, format='MINE %(message)s')\n"
    (typist.folder / "own.py").write_text(own + SOURCE)
    typist.rqj("enqueue", "-a", "own", "broken")
    done = typist.rqj("worker", "own", "--burst")
    dead = [line for line in done.stderr.splitlines() if "ValueError('bad data')" in line and "dead" in line]
    assert [line[:5] for line in dead] == ["MINE "]


def test_g35_each_line_once_without_logging_of_the_app(typist: Typist) -> None:
    late = (
        SOURCE
        + "\n@app.job\ndef noisy() -> None:\n    import logging\n    logging.basicConfig()\n    1 / 0\n"
    )
    (typist.folder / "late.py").write_text(late)
    typist.rqj("enqueue", "-a", "late", "noisy")
    done = typist.rqj("worker", "late", "--burst")
    assert (
        len([line for line in done.stderr.splitlines() if "ZeroDivisionError" in line and "noisy" in line])
        == 1
    )


def test_a_log_line_is_escaped(typist: Typist) -> None:
    typist.rqj("enqueue", "-a", "tasks", "broken", "text=\x1b[2J\u202e\nfake line")
    done = typist.rqj("worker", "tasks", "--burst")
    assert all(char.isprintable() or char == "\n" for char in done.stderr)
    assert not any(line.startswith("fake line") for line in done.stderr.splitlines())


def test_a_worker_that_is_stopped_ends_with_0(typist: Typist) -> None:
    worker = typist.start("worker", "tasks")
    try:
        assert worker.stderr is not None
        assert any("serves" in worker.stderr.readline() for _ in range(2))  # a warning may come first
        assert len(json.loads(typist.rqj("workers", "--json", "-n", "bookstore").stdout)["workers"]) == 1
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(DEADLINE_S) == 0
    finally:
        worker.kill()
        worker.communicate()
    assert json.loads(typist.rqj("workers", "--json", "-n", "bookstore").stdout)["workers"] == []


@pytest.mark.parametrize(
    "words",
    [["jobs"], ["stats"], ["doctor"], ["enqueue", "-a", "tasks", "daily"], ["worker", "tasks"], ["recover"]],
)
def test_an_unreachable_server_is_69_in_time(typist: Typist, words: list[str]) -> None:
    began_s = time.monotonic()
    done = typist.rqj(*words, RQJ_URL=f"redis://127.0.0.1:{free_port()}")
    assert time.monotonic() - began_s < 5
    assert (done.returncode, done.stdout) == (69, ""), done.stderr
    assert len(done.stderr.splitlines()) == 2
    assert "cannot be reached" in done.stderr


def test_errors_as_json(typist: Typist) -> None:
    done = typist.rqj("jobs", "show", "nope", "--json")
    assert (done.returncode, done.stdout) == (3, "")
    error = json.loads(done.stderr)["error"]
    assert (error["type"], error["exit_code"], error["job_id"]) == ("JobNotFound", 3, "nope")
    assert set(error) == {"type", "message", "hint", "exit_code", "job_id"}
    usage = typist.rqj("jobs", "--json", "--nope")
    assert json.loads(usage.stderr)["error"]["exit_code"] == 2


def test_a_traceback_only_with_debug(typist: Typist) -> None:
    assert "Traceback" not in typist.rqj("jobs", "show", "nope").stderr
    assert "Traceback" in typist.rqj("jobs", "show", "nope", "--debug").stderr


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("http://x", 2),
        ("localhost", 2),
        ("redis+sentinel://x", 2),
        ("redis://x:notaport", 2),
        ("unix:///nowhere/s", 69),
    ],
)
def test_a_wrong_url(typist: Typist, url: str, code: int) -> None:
    done = typist.rqj("jobs", "-u", url)
    assert done.returncode == code
    assert len(done.stderr.splitlines()) == 2


PASSWORD = "p@ss/w%rd#1"
Spawn = Callable[..., Server]


@pytest.mark.crash
def test_g29_the_password_is_never_told(tmp_path: Path, spawn: Spawn) -> None:
    server = spawn(port=free_port())
    with server.client() as client:
        client.config_set("requirepass", PASSWORD)
    encoded = quote(PASSWORD, safe="")
    host = f"127.0.0.1:{server.port}"
    good = [f"redis://:{encoded}@{host}/3", f"redis://default:{encoded}@{host}/3"]
    wrong = f"redis://:{encoded}x@{host}/3"
    typist = Typist(tmp_path, good[0])
    told = ""
    for at, url in enumerate(good):
        for words in (
            ["enqueue", "-a", "tasks", "crunch_sales", f"book_id={at}"], ["worker", "tasks", "--burst", "--debug"],
            ["doctor"], ["jobs", "show", "nope", "--debug"],
        ):  # fmt: skip
            done = typist.rqj(*words, RQJ_URL=url)
            assert done.returncode == (3 if "nope" in words else 0), done.stderr
            told += done.stdout + done.stderr
    for words in (["jobs"], ["worker", "tasks"]):
        done = typist.rqj(*words, RQJ_URL=wrong)
        assert done.returncode == 69
        assert len(done.stderr.splitlines()) == 2
        told += done.stderr + typist.rqj(*words, "--debug", RQJ_URL=wrong).stderr
    assert PASSWORD not in told
    assert encoded not in told


def test_an_interrupt_is_130(typist: Typist) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(DEADLINE_S)
        asking = typist.start("jobs", "-u", f"redis://127.0.0.1:{silent.getsockname()[1]}")
        with silent.accept()[0]:  # from now on it waits for an answer that never comes
            asking.send_signal(signal.SIGINT)
            _, said = asking.communicate(timeout=DEADLINE_S)
    assert asking.returncode == 130
    assert said.strip() == "rqj: interrupted."


def test_an_interrupt_while_it_waits_for_a_job_is_130(typist: Typist, real_server: Server) -> None:
    id = json.loads(typist.rqj("enqueue", "-a", "tasks", "anything", "--json").stdout)["id"]
    waiting = typist.start("jobs", "wait", id)
    deadline_s = time.monotonic() + DEADLINE_S
    with real_server.client() as client:
        while not client.hexists("rqj:{bookstore}:waiters", id):
            assert time.monotonic() < deadline_s
            time.sleep(0.01)
    waiting.send_signal(signal.SIGINT)
    printed, said = waiting.communicate(timeout=DEADLINE_S)
    assert (waiting.returncode, printed, said.strip()) == (130, "", "rqj: interrupted.")


def test_a_reader_that_leaves_is_no_error(typist: Typist) -> None:
    done = subprocess.run(
        f"{' '.join(RQJ)} scripts show turn | head -n 1",
        shell=True,
        cwd=typist.folder,
        env=typist.environ,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=True,
    )
    assert done.stdout.startswith("#!lua")
    assert done.stderr == ""


def test_rqj_alone_shows_its_help(typist: Typist) -> None:
    done = typist.rqj()
    assert done.returncode == 2
    assert done.stderr.startswith("Usage: rqj")
    assert "\\n" not in done.stderr
