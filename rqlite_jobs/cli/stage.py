"""Where `rqj demo` plays: a temporary folder with a server, the bookstore's data, and workers that can be killed."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType, ModuleType, TracebackType
from typing import Any, Self, TypeVar

from rqlite_jobs.cli.narrator import Narrator
from rqlite_jobs.embedded import Embedded
from rqlite_jobs.errors import RqjError

T = TypeVar("T")

LONGEST_S = 28.0
"""So long the story may take; what is not seen by then is not there."""
_LOOK_S = 0.03
_LEAVE_S = 5.0
_RQJ = [sys.executable, "-m", "rqlite_jobs.cli"]
_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class NotSeen(RqjError):
    """Something that the demo was to show did not happen."""


class Stage:
    """Used in a `with`: at its end nothing of it is running and its folder is gone, whatever happened.

    A signal to stop is only noted, and heeded at the next look around: never while a process is half started.

    Args:
        narrator: who says what is waited for.
    """

    def __init__(self, narrator: Narrator) -> None:
        self._narrator = narrator
        self._began_s = time.monotonic()
        self._ended_s = 0.0
        self._workers: list[subprocess.Popen[bytes]] = []
        self._handlers: dict[int, Any] = {}
        self._stopped = False

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # no other may handle signals
            heeded = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
            self._handlers = {number: signal.signal(number, self._note) for number in heeded}
        self.folder = Path(tempfile.mkdtemp(prefix="rqj-demo-")).resolve()
        self._server = Embedded(self.folder / "server")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._narrator.quiet()
            for worker in self._workers:
                _end(worker)
            self._server.stop()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)
            for number, handler in self._handlers.items():
                signal.signal(number, handler)
        self._ended_s = time.monotonic()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the beginning, or from there to the end."""
        return (self._ended_s or time.monotonic()) - self._began_s

    @property
    def server_version(self) -> str:
        """Program and version of the server, once it is up."""
        status = self._server.status()
        return status.version if status else "gone"

    def open(self) -> ModuleType:
        """Start the server, and load the bookstore's app on it.

        Returns:
            The module `shop` of the example.

        Raises:
            ServerMissing: there is no program to start.
        """
        Embedded.announce = False
        url = self._server.url()
        # The server is named by its socket: nothing that outlives the demo could start it again.
        self._environ = {
            name: value for name, value in os.environ.items() if not name.startswith(("RQJ_", "REDIS_"))
        }
        self._environ |= {"RQJ_URL": url, "BOOKSTORE_DB": str(self.folder / "bookstore.db")}
        package = Path(__file__).parents[2]
        paths = [str(package), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._environ["PYTHONPATH"] = os.pathsep.join(paths)
        # Settings of the folder that the user happens to be in are none of the bookstore's.
        os.environ.clear()
        os.environ.update(self._environ)
        os.chdir(example_folder())
        from rqlite_jobs.cli.loading import load_app

        load_app("shop:app")
        return sys.modules["shop"]

    def start_worker(self) -> int:
        """Start a worker of the bookstore with a lease of 2 s; answers with its process id."""
        log = self.folder / f"worker-{len(self._workers) + 1}.log"
        with log.open("wb") as file:
            worker = subprocess.Popen(
                [*_RQJ, "worker", "shop:app", "--lease", "2s"],
                env=self._environ, stdin=subprocess.DEVNULL, stdout=file, stderr=file,
                start_new_session=True,  # a group of its own, so that all of it can be killed, and only it
            )  # fmt: skip
        self._workers.append(worker)
        return worker.pid

    def kill_worker(self, pid: int) -> None:
        """Kill the worker of this process, with everything it started, as a crash or the kernel would."""
        group = os.getpgid(pid)
        [worker] = [worker for worker in self._workers if worker.pid == group]
        os.killpg(group, signal.SIGKILL)
        worker.wait(_LEAVE_S)

    def run(self, *words: str) -> None:
        """Type a command of `rqj`, and show what it says.

        Raises:
            NotSeen: it failed.
        """
        self._narrator.quiet()
        code = subprocess.run([*_RQJ, *words], env=self._environ, stdin=subprocess.DEVNULL).returncode
        self.look_around()
        if code:
            raise NotSeen(f"`rqj {' '.join(words)}` ended with exit code {code}.")

    def until(self, wanted: str, seen: Callable[[], T | None], doing: Callable[[], str] | str = "") -> T:
        """Wait until something is seen; `seen` answers None until then.

        Args:
            wanted: what, for the message if it is not.
            seen: looks.
            doing: what to show meanwhile; `wanted` without it.

        Raises:
            NotSeen: it was not seen in time, or a worker ended that was not to.
        """
        while (found := seen()) is None:
            self.look_around()
            if self.elapsed_s > LONGEST_S:
                raise NotSeen(f"{wanted}: not seen within {LONGEST_S:.0f} s.", hint=self._last_words())
            self._narrator.busy(doing() if callable(doing) else doing or f"waiting: {wanted}")
            time.sleep(_LOOK_S)
        self._narrator.quiet()
        return found

    def look_around(self) -> None:
        """Heed a signal to stop, and a worker that ended by itself.

        Raises:
            KeyboardInterrupt: a signal came.
            NotSeen: a worker ended.
        """
        if self._stopped:
            raise KeyboardInterrupt
        for worker in self._workers:
            if worker.poll() not in (None, -signal.SIGKILL):
                raise NotSeen(
                    f"worker {worker.pid} ended by itself, with exit code {worker.returncode}.",
                    hint=self._last_words(),
                )

    def _last_words(self) -> str:
        for log in sorted(self.folder.glob("worker-*.log"), reverse=True):
            if lines := log.read_text("utf-8", "replace").strip().splitlines():
                return f"The last line of {log.name} is: {lines[-1]}"
        return "No worker said anything."

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._stopped = True


def example_folder() -> Path:
    """Where the bookstore is: inside the installed package, or beside it in a checkout.

    Raises:
        NotSeen: in neither.
    """
    package = Path(__file__).parents[1]
    for place in (package, package.parent):
        if (place / "examples" / "bookstore" / "shop.py").is_file():
            return place / "examples" / "bookstore"
    raise NotSeen(
        f"the bookstore example is not in {package}.", hint="Install rqlite-jobs anew: its wheel has it."
    )


def _end(worker: "subprocess.Popen[bytes]") -> None:
    """End a worker: politely, and then not."""
    if worker.poll() is None:
        worker.terminate()
        try:
            worker.wait(_LEAVE_S)
        except subprocess.TimeoutExpired:
            os.killpg(worker.pid, signal.SIGKILL)
            worker.wait(_LEAVE_S)
