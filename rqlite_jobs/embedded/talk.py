"""A few words with the embedded server over its socket, without a client library."""

import socket
from enum import Enum
from pathlib import Path

ANSWER_WITHIN_S = 2.0


class Pulse(Enum):
    """How a server answers a PING."""

    UP = "up"
    LOADING = "loading"
    SILENT = "silent"


class Talk:
    """Short commands to one socket, a connection each.

    The client library would do it too, but importing it costs a quarter of a second, and joining a server
    that is up is done by every process.

    Args:
        path: the unix socket.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def pulse(self) -> Pulse:
        """Ask whether the server is up; any answer but that it is loading means that it is."""
        try:
            answer = self._ask("PING")
        except OSError:
            return Pulse.SILENT
        if not answer:
            return Pulse.SILENT
        return Pulse.LOADING if answer.startswith("-LOADING") else Pulse.UP

    def info(self) -> dict[str, str]:
        """Return what INFO says, name -> value.

        Raises:
            OSError: the server does not answer, or answers with an error.
        """
        answer = self._ask("INFO")
        if not answer.startswith("$"):
            raise OSError(f"INFO was answered by {answer[:80]!r}")
        pairs = (line.partition(":") for line in answer.splitlines()[1:] if ":" in line)
        return {name: value for name, _, value in pairs}

    def shutdown(self) -> str:
        """Ask the server to stop; return its refusal, or "" if it goes.

        It syncs its append-only file and removes its socket before it ends.
        """
        try:
            return self._ask("SHUTDOWN").strip().lstrip("-")
        except OSError:
            return ""  # it went so fast that the connection broke; whether it is gone, its lock tells

    def _ask(self, command: str) -> str:
        """Send a command without arguments and return the raw answer; "" if the connection was closed."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
            line.settimeout(ANSWER_WITHIN_S)
            line.connect(str(self._path))
            line.sendall(b"*1\r\n$%d\r\n%s\r\n" % (len(command), command.encode()))
            answer = line.recv(65536)
            while answer and len(answer) < _length(answer):
                more = line.recv(65536)
                if not more:
                    break
                answer += more
        return answer.decode(errors="replace")


def _length(answer: bytes) -> int:
    """Return how long the whole answer will be: a bulk string says so in its first line."""
    head, end, _ = answer.partition(b"\r\n")
    if not end:
        return len(answer) + 1
    return len(head) + 2 + int(head[1:]) + 2 if head[:1] == b"$" else len(answer)
