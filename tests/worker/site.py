"""Real workers on a real server: a folder with one module of jobs, served by `rqj worker` processes.

The jobs mark what they do in a file beside the module, so it is counted outside the product, and while the server
is away too.
"""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Self, TypeVar

import psutil

from rqlite_jobs import App
from tests.servers import Server

T = TypeVar("T")

CHECKOUT = Path(__file__).parents[2]
DEADLINE_S = 30.0

_COMMAND = [sys.executable, "-c", "from rqlite_jobs.cli.main import main; main()"]
_BEFORE = """
import asyncio, os, signal, sys, time
from rqlite_jobs import App, Bury, Retry, RetryIn, Snooze, until_executed, until_expired

app = App("test", url={url!r})
ONCE = Retry(max_attempts=1)

def mark(what):
    line = f"{{what}} {{time.time():.6f}}\\n".encode()
    file = os.open({marks!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, line)
    os.close(file)

def marked(what):
    with open({marks!r}) as file:
        return sum(line.split()[0] == what for line in file)
"""


def until(met: Callable[[], T], what: str, deadline_s: float = DEADLINE_S) -> T:
    """Wait for a condition, with a deadline; answers with what made it true."""
    end_s = time.monotonic() + deadline_s
    while not (result := met()):
        assert time.monotonic() < end_s, f"never happened: {what}"
        time.sleep(0.002)
    return result


def calm(within: Callable[[], bool]) -> bool:
    """Is it within its bounds in one of three rounds?

    What is asked is how long the product takes; what else the machine does at the moment only adds to it.
    """
    return any(within() for _ in range(3))


class Process:
    """One `rqj worker` in a session, and so a process group, of its own.

    Args:
        arguments: behind `rqj worker`.
        folder: where it runs.
        number: of its log.
        environ: more of the environment.
        before: words before the command: `faketime -f +300s`.
    """

    def __init__(
        self, arguments: list[str], folder: Path, number: int, environ: dict[str, str], before: list[str]
    ) -> None:
        self._log = folder / f"worker-{number}.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*before, *_COMMAND, "worker", *arguments],
                cwd=folder,
                env={**_environ(), **environ},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def code(self) -> int | None:
        """Its exit code, None while it runs."""
        return self._process.poll()

    def log(self) -> str:
        """What it has said so far, on both streams."""
        return self._log.read_text("utf-8", "replace")

    def lines(self) -> list[str]:
        """The same, line by line."""
        return self.log().splitlines()

    def send(self, number: int) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """End its whole process group without mercy, and wait."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(DEADLINE_S)

    def ended(self, deadline_s: float = DEADLINE_S) -> int:
        """Wait until it has ended; its exit code."""
        until(lambda: self.code is not None, "the worker ends", deadline_s)
        assert self.code is not None
        return self.code

    def stopped(self) -> int:
        """Ask it to end, and wait; its exit code."""
        self.send(signal.SIGTERM)
        return self.ended()

    def cpu_s(self) -> float:
        """Processor time that it has used so far, its children included."""
        process = psutil.Process(self.pid)
        return float(sum(sum(one.cpu_times()[:2]) for one in [process, *process.children(recursive=True)]))


class Site:
    """A folder with a module `jobs`, and the workers that serve it; all of them are killed at the end.

    Args:
        server: what it works on.
        source: of the module, behind imports, `app`, `ONCE`, `mark(what)` and `marked(what)`.

    Attributes:
        app: that of the module.
        jobs: the module, loaded here too, to enqueue its jobs.
        kind: what a test notes of it.
    """

    def __init__(self, server: Server, source: str) -> None:
        self.server = server
        self._folder = tempfile.TemporaryDirectory(prefix="rqj-", dir="/tmp", ignore_cleanup_errors=True)
        self.folder = Path(self._folder.name)
        self._marks = self.folder / "marks"
        self._marks.touch()
        self._processes: list[Process] = []
        text = _BEFORE.format(url=server.url, marks=str(self._marks)) + source
        (self.folder / "jobs.py").write_text(text, "utf-8")
        module = ModuleType("jobs")
        exec(compile(text, str(self.folder / "jobs.py"), "exec"), module.__dict__)
        self.jobs: Any = module
        self.app: App = module.app
        self.kind = ""

    def start(self, *options: str, before: tuple[str, ...] = (), **environ: str) -> Process:
        """Start a worker: `rqj worker jobs:app` and these options. It is not waited for."""
        made = Process(["jobs:app", *options], self.folder, len(self._processes), environ, list(before))
        self._processes.append(made)
        return made

    def serve(self, *options: str, **environ: str) -> Process:
        """Start a worker, and wait until it is idle and listens."""
        known = len(self.listeners())
        made = self.start(*options, before=(), **environ)

        def listens() -> bool:
            assert made.code is None, made.log()
            return len(self.listeners()) > known

        until(listens, "the worker listens")
        return made

    def rqj(self, command: str) -> str:
        """What a command of one word prints about the app."""
        return self._said([*_COMMAND, command, "-a", "jobs:app"])

    def python(self, code: str, *arguments: str, before: tuple[str, ...] = ()) -> str:
        """What a fresh interpreter prints that runs this code beside the module."""
        return self._said([*before, sys.executable, "-c", code, *arguments])

    def listeners(self) -> list[Any]:
        """The connections on which workers wait for a wake-up."""
        with self.server.client() as client:
            return [one for one in client.client_list() if one["cmd"] == "blpop" and "b" in one["flags"]]

    def times(self, what: str) -> list[float]:
        """When something was marked, by the clock of this machine, in order."""
        found = (line.split() for line in self._marks.read_text().splitlines())
        return [float(at) for name, at in found if name == what]

    def count(self, what: str) -> int:
        """How often something was marked."""
        return len(self.times(what))

    def wait(self, what: str, count: int = 1, deadline_s: float = DEADLINE_S) -> list[float]:
        """Wait until something was marked so often; when that was."""
        until(lambda: self.count(what) >= count, f"{count} times {what}", deadline_s)
        return self.times(what)

    def _said(self, command: list[str]) -> str:
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=_environ(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
        self._folder.cleanup()


def _environ() -> dict[str, str]:
    """The environment, without what would choose another server, and with this checkout."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RQJ_", "REDIS_URL"))}
    return {**kept, "PYTHONPATH": str(CHECKOUT)}


@contextlib.contextmanager
def monitored(server: Server) -> Iterator[list[str]]:
    """What clients ask of a server while this lasts: their lines in MONITOR as they come, those of scripts left out."""
    lines: list[str] = []
    with server.client() as client, client.monitor() as monitor:
        begun = threading.Event()

        def read() -> None:
            with contextlib.suppress(Exception):
                for one in monitor.listen():
                    if one["client_type"] != "lua":
                        lines.append(one["command"])
                    begun.set()

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        with server.client() as other:
            other.ping()
        assert begun.wait(DEADLINE_S)
        lines.clear()
        yield lines
        monitor.connection.disconnect()
        reader.join(DEADLINE_S)
