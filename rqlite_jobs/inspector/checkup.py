"""A checkup of the server: is it one that jobs can be trusted to? Each finding says what to do about it."""

import re
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from rqlite_jobs.address import Address
from rqlite_jobs.caller import Caller
from rqlite_jobs.config import Settings
from rqlite_jobs.errors import RqjError, Unreachable
from rqlite_jobs.keys import NAMESPACES, Keys
from rqlite_jobs.operations import FORMAT
from rqlite_jobs.script import key_types, queue_key_types, script, verbs

Level = Literal["ok", "warning", "error"]

OLDEST = {"redis": (7, 0), "valkey": (7, 2)}
SLOW_TRIP_MS = 10.0
_TRIPS = 7
_FULL = 0.9
_QUEUES_MAX = 100
_COMMAND = re.compile(r"\w\(\s*'([A-Z]+)'")
# What is called beside the scripts: by a waiter of a worker, by readers, and when a namespace is opened.
_PLAIN = ("BLPOP", "LPUSH", "SMEMBERS")
# Not one of the scripts in lua/: it reads and writes nothing, and is sent when somebody asks for a checkup.
_DENIED = """#!lua flags=no-writes
local denied = {}
for i = 2, #ARGV do
  if not redis.acl_check_cmd(ARGV[i], KEYS[1]) then denied[#denied + 1] = ARGV[i] end
end
if not redis.acl_check_cmd('SADD', ARGV[1], 'x') then denied[#denied + 1] = 'SADD ' .. ARGV[1] end
return denied
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found.

    Attributes:
        check: which: `version role eviction memory persistence trip scripts rights format keys`.
        level: `ok`; `warning`, jobs may be slow or lost when the server fails; `error`, they will not work, or be
            dropped in normal use.
        found: what was found.
        remedy: what to do about it; empty where nothing need be done.
    """

    check: str
    level: Level
    found: str
    remedy: str = ""


class Patient(Protocol):
    """Whose server is looked at: an App."""

    @property
    def address(self) -> Address: ...  # noqa: D102
    @property
    def caller(self) -> Caller: ...  # noqa: D102
    @property
    def keys(self) -> Keys: ...  # noqa: D102
    @property
    def settings(self) -> Settings: ...  # noqa: D102


def examine(
    app: Patient, clock: Callable[[], float] = time.perf_counter, *, allow_eviction: bool | None = None
) -> tuple[Finding, ...]:
    """Look at the server of an app.

    Args:
        app: whose server.
        clock: seconds, for the round trip.
        allow_eviction: a server that may drop keys is taken; None: as the app's settings say.

    Raises:
        Unreachable: it does not answer at all.

    Cost: some sixty trips, and four for each queue, of the first 100. Nothing is written, but that the server knows
    the scripts afterwards.
    """
    evictable = app.settings.allow_eviction if allow_eviction is None else allow_eviction
    return tuple(_findings(app, clock, evictable))


def _findings(app: Patient, clock: Callable[[], float], evictable: bool) -> Iterator[Finding]:
    app.caller.command("PING", again=True)  # before all else: an unreachable server is one error and not nine
    if app.address.fake:
        yield Finding("version", "ok", "a fake server inside this process, for tests")
    else:
        info = _info(app.caller)
        if info:
            yield from (
                _version(info),
                _role(info),
                _eviction(info, evictable),
                _memory(info),
            )
            yield _persistence(info)
        else:
            yield Finding(
                "version", "warning", "the server does not tell (INFO is not allowed)", "Allow it: +info."
            )
    yield _trip(app.caller, clock)
    yield _scripts(app)
    if not app.address.fake:
        yield _rights(app)
    yield _format(app)
    yield _keys(app)


def _version(info: Mapping[str, str]) -> Finding:
    name = "valkey" if "valkey_version" in info else "redis"
    version = info.get(f"{name}_version", "?")
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if numbers and numbers < OLDEST[name]:
        return Finding("version", "error", f"{name} {version}", "Upgrade to Redis 7.0, Valkey 7.2, or newer.")
    mode = ", a cluster" if info.get("cluster_enabled") == "1" else ""
    return Finding("version", "ok", f"{name} {version}{mode}")


def _role(info: Mapping[str, str]) -> Finding:
    if info.get("role", "master") == "master":
        return Finding("role", "ok", "a primary")
    primary = f"{info.get('master_host', '?')}:{info.get('master_port', '?')}"
    return Finding("role", "error", "a replica, which takes no writes", f"Use its primary, {primary}.")


def _eviction(info: Mapping[str, str], allowed: bool) -> Finding:
    policy = info.get("maxmemory_policy", "noeviction")
    if policy == "noeviction":
        return Finding("eviction", "ok", "noeviction: a full server refuses new jobs and drops none")
    return Finding(
        "eviction",
        "warning" if allowed else "error",
        f"{policy}: a full server drops locks and jobs",
        "Type: CONFIG SET maxmemory-policy noeviction, and put it into the server's configuration.",
    )


def _memory(info: Mapping[str, str]) -> Finding:
    used, limit = int(info.get("used_memory", 0)), int(info.get("maxmemory", 0))
    if not limit:
        return Finding("memory", "ok", f"{used / 2**20:,.1f} MiB used, no limit set")
    found = f"{used / 2**20:,.1f} of {limit / 2**20:,.1f} MiB used"
    if used > limit * _FULL:
        return Finding(
            "memory", "warning", found, "New jobs are refused soon: raise maxmemory, or see `rqj queues`."
        )
    return Finding("memory", "ok", found)


def _persistence(info: Mapping[str, str]) -> Finding:
    for field, what in (
        ("aof_last_write_status", "append-only file"),
        ("rdb_last_bgsave_status", "snapshot"),
    ):
        if info.get(field, "ok") != "ok":
            return Finding(
                "persistence", "error", f"its last {what} failed", "Look at its log: the disk may be full."
            )
    if info.get("aof_enabled") == "1":
        return Finding("persistence", "ok", "an append-only file")
    return Finding(
        "persistence",
        "warning",
        "no append-only file: a crash of the server loses the jobs since its last snapshot",
        "Type: CONFIG SET appendonly yes, and put it into the server's configuration.",
    )


def _trip(caller: Caller, clock: Callable[[], float]) -> Finding:
    took_ms = []
    for _ in range(_TRIPS):
        began_s = clock()
        caller.command("PING", again=True)
        took_ms.append((clock() - began_s) * 1000)
    middle = statistics.median(took_ms)
    found = f"{middle:.2f} ms there and back"
    if middle > SLOW_TRIP_MS:
        return Finding(
            "trip", "warning", found, "Each slot takes a trip for each job: move the workers nearer."
        )
    return Finding("trip", "ok", found)


def _scripts(app: Patient) -> Finding:
    for verb in verbs():
        source = script(verb)
        try:
            text = source.plain_text if app.address.fake else source.text
            app.caller.command("SCRIPT", "LOAD", text, again=True)
        except Unreachable:
            raise
        except RqjError as error:
            return Finding(
                "scripts",
                "error",
                f"{verb} is not taken: {error.message}",
                "Allow SCRIPT LOAD, EVAL and EVALSHA.",
            )
    return Finding("scripts", "ok", f"all {len(verbs())} are taken")


def _rights(app: Patient) -> Finding:
    commands = called_by_scripts() | set(_PLAIN)
    try:
        denied = app.caller.command(
            "EVAL", _DENIED, 1, app.keys.fixed("jobs"), NAMESPACES, *sorted(commands), again=True
        )
    except Unreachable:
        raise
    except RqjError as error:
        return Finding("rights", "error", error.message, "Allow EVAL and EVALSHA on the keys rqj:*.")
    if denied:
        names = ", ".join(raw.decode("utf-8", "replace") for raw in denied)
        # Not left to the first use: a script that is stopped half-way leaves half of its work done.
        return Finding("rights", "error", f"this user may not call: {names}", "Allow it, on the keys rqj:*.")
    return Finding("rights", "ok", f"all {len(commands)} commands are allowed on the namespace's keys")


def called_by_scripts() -> set[str]:
    """The commands that the scripts call, read from their text."""
    code = (line.text.partition("--")[0] for verb in verbs() for line in script(verb).lines)
    return {name for text in code for name in _COMMAND.findall(text)}


def _format(app: Patient) -> Finding:
    try:
        found: bytes | None = app.caller.command("HGET", app.keys.fixed("meta"), "format", again=True)
    except Unreachable:
        raise
    except RqjError as error:
        return Finding(
            "format", "error", error.message, "Allow HGET, or see what stands in the way of that key."
        )
    if found is None:
        return Finding("format", "ok", f"nothing was enqueued in namespace {app.keys.namespace!r} so far")
    version = found.decode("utf-8", "replace")
    if version != str(FORMAT):
        return Finding(
            "format",
            "error",
            f"namespace {app.keys.namespace!r} has format {version}, and this version knows {FORMAT}",
            "Upgrade rqlite-jobs here, or use another namespace.",
        )
    return Finding("format", "ok", f"namespace {app.keys.namespace!r} has format {version}")


def _keys(app: Patient) -> Finding:
    """Are the namespace's keys of the types that scripts expect? One that is not stops them, or its queue."""
    foreign = []
    for key, wanted in _wanted(app):
        try:
            found: bytes = app.caller.command("TYPE", key, again=True)
        except Unreachable:
            raise
        except RqjError:
            return Finding("keys", "warning", "the types of keys cannot be asked for", "Allow it: +type.")
        if found not in (b"none", wanted.encode()):
            foreign.append(f"{key} is a {found.decode('utf-8', 'replace')} and should be a {wanted}")
    if foreign:
        return Finding(
            "keys", "error", "; ".join(foreign), "Somebody else wrote it. Look at it, then RENAME or DEL it."
        )
    return Finding("keys", "ok", "all of the types that the scripts expect")


def _wanted(app: Patient) -> Iterator[tuple[str, str]]:
    for binding, wanted in sorted(key_types().items()):
        if binding != "running_key":  # one for each worker
            yield app.keys.fixed(binding.removesuffix("_key")), wanted
    try:
        queues: list[bytes] = app.caller.command("HKEYS", app.keys.fixed("queues"), again=True)
    except Unreachable:
        raise
    except RqjError:
        return  # not allowed, or of a foreign type, which is told above
    for raw in sorted(queues)[:_QUEUES_MAX]:
        queue = raw.decode("utf-8", "replace")
        for family, wanted in sorted(queue_key_types().items()):
            level = ":0" if family == "ready" else ""
            yield f"{app.keys.prefix(family)}{queue}{level}", wanted


def _info(caller: Caller) -> dict[str, str]:
    text = b""
    for section in ("server", "memory", "persistence", "replication", "cluster"):
        try:
            text += caller.command("INFO", section, again=True)
        except Unreachable:
            raise
        except RqjError:
            return {}
    pairs = (line.partition(":") for line in text.decode("utf-8", "replace").splitlines())
    return {name: value.strip() for name, mark, value in pairs if mark}
