"""A proxy between a test and a real server that loses requests and answers, at the moment the test says."""

import select
import socket
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal

How = Literal["answer", "torn answer", "request", "torn request", "held request"]


@dataclass
class Proxy:
    """Passes bytes on over TCP, until it is told otherwise; use it through `proxied`.

    How a request of a script may go wrong:

        request         cut before the server has seen it
        torn request    cut when the server has half of it
        answer          the server has carried it out; its answer is thrown away, and the connection cut
        torn answer     half of the answer arrives
        held request    cut, as far as the client can see; the server gets it when the test calls `deliver`

    Attributes:
        server: the one behind it.
        lost: how many requests went wrong so far.
        seen: the first word of every request that the client sent, in order.
    """

    server: Any
    lost: int = 0
    seen: list[str] = field(default_factory=list)
    _fates: deque[How | bytes] = field(default_factory=deque)
    _held: list[tuple[socket.socket, bytes]] = field(default_factory=list)
    _open: set[socket.socket] = field(default_factory=set)
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    @property
    def url(self) -> str:
        """Its address."""
        return f"redis://127.0.0.1:{self._listening.getsockname()[1]}"

    def lose(self, how: How, count: int = 1) -> None:
        """Let the next `count` requests of scripts go wrong, those apart that the server answers with NOSCRIPT."""
        self._fates.extend([how] * count)

    def skip(self, count: int = 1) -> None:
        """Let the next `count` requests pass, before what `lose` says behind this."""
        self._fates.extend([b""] * count)

    def say(self, *answers: bytes) -> None:
        """Answer the next requests of scripts with these words (`-LOADING ...`), and never ask the server."""
        self._fates.extend(answers)

    def deliver(self) -> list[bytes]:
        """Let the server have what was held; its answers, which nobody waits for any more."""
        answers = []
        while self._held:
            upstream, request = self._held.pop(0)
            upstream.sendall(request)
            answers.append(upstream.recv(65536))
            self._drop(upstream)
        return answers

    def end(self) -> None:
        """Cut everything."""
        _close(self._listening)
        for one in list(self._open):
            self._drop(one)
        for thread in self._threads:
            thread.join(5)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            upstream = socket.socket(socket.AF_UNIX)
            upstream.connect(str(self.server.socket))
            self._open |= {client, upstream}
            thread = threading.Thread(target=self._serve, args=(client, upstream), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, client: socket.socket, upstream: socket.socket) -> None:
        with suppress(OSError, ValueError):  # a socket that `end` has closed is no number for `select`
            while self._pass(client, upstream):
                pass
        if all(upstream is not held for held, _ in self._held):
            self._drop(upstream)
        self._drop(client)

    def _pass(self, client: socket.socket, upstream: socket.socket) -> bool:
        """Pass one request on, and its answer; False where the connection is cut."""
        request = _whole(client, upstream)
        if request is None:
            return False
        fate = self._fate(request)
        if fate in ("request", "torn request", "held request"):
            self.lost += 1
            if fate == "torn request":
                upstream.sendall(request[: len(request) // 2])
            if fate == "held request":
                self._held.append((upstream, request))
            return False
        if isinstance(fate, bytes) and fate:
            client.sendall(fate + b"\r\n")
            return True
        upstream.sendall(request)
        if fate in ("answer", "torn answer"):
            answer = upstream.recv(1 << 20)
            if not answer.startswith(b"-NOSCRIPT"):
                self.lost += 1
                client.sendall(answer[: len(answer) // 2] if fate == "torn answer" else b"")
                return False
            self._fates.appendleft(fate)
            client.sendall(answer)
        return True

    def _fate(self, request: bytes) -> How | bytes | None:
        words = request[:100].upper().split(b"\r\n")
        with self._guard:
            self.seen.append(words[2].decode())
            script = words[2] in (b"EVALSHA", b"EVAL")
            return self._fates.popleft() if script and self._fates else None

    def _drop(self, one: socket.socket) -> None:
        _close(one)
        self._open.discard(one)


@contextmanager
def proxied(server: Any) -> Iterator[Proxy]:
    """A proxy before a server (not a fake one)."""
    proxy = Proxy(server)
    try:
        yield proxy
    finally:
        proxy.end()


def _whole(client: socket.socket, upstream: socket.socket) -> bytes | None:
    """The next request, while answers go the other way; None at the end of either side."""
    got = b""
    while True:
        ready, _, _ = select.select([client, upstream], [], [])
        if upstream in ready:
            answer = upstream.recv(1 << 20)
            if not answer:
                return None
            client.sendall(answer)
        if client in ready:
            part = client.recv(1 << 20)
            if not part:
                return None
            got += part
            if _complete(got):
                return got


def _complete(got: bytes) -> bool:
    """Does it end where a command ends?"""
    at = 0
    while at < len(got):
        count, at = _number(got, at)
        for _ in range(count):
            size, at = _number(got, at)
            at += size + 2
            if at < 0:
                return False
    return at == len(got)


def _number(got: bytes, at: int) -> tuple[int, int]:
    end = got.find(b"\r\n", at)
    return (int(got[at + 1 : end]), end + 2) if 0 <= at < end else (1, -(1 << 60))


def _close(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)  # a forked child may hold a copy, which `close` alone would leave open
    one.close()
