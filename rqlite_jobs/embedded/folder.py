"""The folder of an embedded server: its lock, its log, and where its socket lies."""

import hashlib
import os
import stat
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import ClassVar

from rqlite_jobs.errors import BadOption

if sys.platform != "win32":
    import fcntl

# The kernel takes 107 bytes (103 on macOS) for the path of a unix socket.
SOCKET_PATH_MAX = 100
LOG_MAX = 1024 * 1024


class Folder:
    """One folder that can hold one embedded server.

    Args:
        path: the folder; it need not exist yet.

    Raises:
        BadOption: the path begins with `~` and this user has no home.
    """

    def __init__(self, path: Path) -> None:
        try:
            self.path = path.expanduser().resolve()
        except RuntimeError as error:  # as in many containers, or a path of links that lead in a circle
            raise BadOption(
                f"the folder of the embedded server, {path}, cannot be found: {error}",
                hint="Set RQJ_DATA_DIR to a folder that you can write to, or RQJ_URL to a server.",
                option="data_dir",
            ) from error
        self.lock = self.path / "server.lock"
        self.log = self.path / "server.log"

    def prepare(self) -> None:
        """Make the folder (0700) if it is not there, and refuse one that others could put files into.

        A folder that was there keeps its mode, since it may serve others too; what the server writes into it
        only its owner can read in any case.

        Raises:
            BadOption: it cannot be made, or others may write to it.
        """
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            mode = self.path.stat().st_mode
        except OSError as error:
            raise BadOption(
                f"the folder of the embedded server cannot be made: {error}",
                hint="Set RQJ_DATA_DIR to a folder that you can write to, or RQJ_URL to a server.",
                option="data_dir",
            ) from error
        if mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise BadOption(
                f"the folder of the embedded server, {self.path}, may be written to by others.",
                hint=f"Type: chmod 700 {self.path}, or set RQJ_DATA_DIR to a folder of your own.",
                option="data_dir",
            )

    def socket(self) -> Path:
        """Return where the server of this folder listens, or would listen.

        What its starter noted comes first: a long path is moved by the environment of whoever starts the
        server, and a process with another environment must find it all the same.
        """
        _, noted = self._note()
        return noted or socket_for(self.path, os.environ)

    def noted_pid(self) -> int:
        """Return the process id of the server that holds the lock; 0 if it is not known."""
        pid, _ = self._note()
        return pid

    def try_lock(self) -> "FolderLock | None":
        """Take the lock if nobody holds it: no server lives here then, nor is one being started.

        Raises:
            BadOption: the lock file cannot be written.
        """
        try:
            descriptor = os.open(self.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise BadOption(
                f"the lock of the embedded server cannot be opened: {error}",
                hint="Set RQJ_DATA_DIR to a folder that you can write to, or RQJ_URL to a server.",
                option="data_dir",
            ) from error
        try:
            # flock, not lockf: a record lock belongs to one process and would not pass to the server.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except OSError:
            os.close(descriptor)
            raise
        return FolderLock(descriptor)

    def roll_log(self) -> None:
        """Put a log that has grown past 1 MiB aside; the one put aside before is dropped."""
        if self.log.exists() and self.log.stat().st_size > LOG_MAX:
            self.log.replace(self.log.with_suffix(".log.1"))

    def last_words(self) -> str:
        """Return the last line of the log that says anything."""
        try:
            text = self.log.read_bytes()[-4096:].decode(errors="replace")
        except OSError as error:
            return f"its log cannot be read ({error.strerror})"
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return lines[-1] if lines else "its log is empty"

    def _note(self) -> tuple[int, Path | None]:
        try:
            pid, _, path = self.lock.read_bytes().partition(b"\n")
        except OSError:
            return 0, None
        return int(pid) if pid.isdigit() else 0, Path(os.fsdecode(path)) if path else None


class FolderLock:
    """The lock of a folder, held through an open descriptor.

    It is given to the server by inheritance: a server that was started with it keeps it, whatever becomes of
    the starter, and the kernel lets it go when the server ends, however it ends.
    """

    # Forked children of the starter would keep the lock of a dead server alive, and so they drop it.
    _held: ClassVar["set[FolderLock]"] = set()

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        FolderLock._held.add(self)

    def note(self, pid: int, socket: Path) -> None:
        """Write into the lock file who will hold it and where it will listen."""
        text = b"%d\n%s" % (pid, os.fsencode(socket))
        os.pwrite(self.descriptor, text, 0)
        os.ftruncate(self.descriptor, len(text))

    def close(self) -> None:
        """Let go of this descriptor; the lock stays with a server that has inherited it."""
        if self in FolderLock._held:
            FolderLock._held.discard(self)
            os.close(self.descriptor)

    def __enter__(self) -> "FolderLock":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @classmethod
    def _drop_all(cls) -> None:
        for lock in list(cls._held):
            lock.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=FolderLock._drop_all)


def socket_for(folder: Path, environ: Mapping[str, str]) -> Path:
    """Return where a server of this folder is to listen.

    In the folder itself; where that path is longer than a socket's may be, under a hash in
    `$XDG_RUNTIME_DIR`, or in a folder of this user among the temporary ones.

    Args:
        folder: the folder of the server, absolute.
        environ: the environment variables to look at.
    """
    socket = folder / "server.sock"
    if _fits(socket):
        return socket
    name = hashlib.blake2b(os.fsencode(folder), digest_size=8).hexdigest() + ".sock"
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    private = f"rqlite-jobs-{os.getuid()}"
    rooms = [Path(tempfile.gettempdir()) / private, Path("/tmp") / private]
    if os.path.isabs(runtime) and os.path.isdir(runtime):
        rooms.insert(0, Path(runtime) / "rqlite-jobs")
    return next(room / name for room in rooms if _fits(room / name))


def make_private(room: Path) -> None:
    """Make the folder that a socket was moved to, and refuse one that is not ours alone.

    Raises:
        BadOption: somebody else made it first, or others may enter it: they could listen in our place.
    """
    room.mkdir(mode=0o700, exist_ok=True)
    found = room.lstat()  # not stat: a link planted here must not count as a folder
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise BadOption(
            f"the runtime folder {room} is not a folder of yours alone (0700).",
            hint="Remove it, or set RQJ_DATA_DIR to a folder with a short path.",
            option="data_dir",
        )


def _fits(socket: Path) -> bool:
    return len(os.fsencode(socket)) <= SOCKET_PATH_MAX
