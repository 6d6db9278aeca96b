"""The callers: scripts the server forgot, what each refusal means, what is asked again and for how long."""

import asyncio
import os
import random
import threading
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from urllib.parse import quote

import pytest

from rqlite_jobs import App
from rqlite_jobs.address import Address
from rqlite_jobs.caller import AsyncCaller, Caller
from rqlite_jobs.connection import Connections
from rqlite_jobs.errors import RqjError, ScriptFailed, ServerFull, ServerReadOnly, Unreachable
from rqlite_jobs.job import NewJob
from rqlite_jobs.operations import Call, Settlement
from rqlite_jobs.request import CONNECT_PATIENCE_S, PAUSE_S, REPEAT_PATIENCE_S
from tests.conftest import Spawn
from tests.lua.stage import LEASE_MS, NONCE, Stage, job, locked
from tests.servers import Server, free_port
from tests.wires import Proxy, proxied

LOADING = b"-LOADING Redis is loading the dataset in memory"


class Driver:
    """A caller, blocking or async, on a clock of its own: it sleeps by moving it, and both are asked alike."""

    def __init__(self, kind: str, url: str) -> None:
        self.now_s = 0.0
        self.pauses_s: list[float] = []
        connections = Connections(Address.parse(url))
        self._runner = asyncio.Runner() if kind == "async" else None
        make: Any = AsyncCaller if kind == "async" else Caller
        rest: Any = self._arest if kind == "async" else self._rest
        self.caller = make(connections, random.Random(7), rest, lambda: self.now_s)

    def run(self, call: Call[Any], **options: Any) -> Any:
        """Send a call."""
        return self._ran(self.caller.run(call, **options))

    def command(self, *words: str | int, **options: Any) -> Any:
        """Send a plain command."""
        return self._ran(self.caller.command(*words, **options))

    def resting(self) -> int:
        """How many connections it keeps."""
        at_rest = self.caller.connections
        return len(at_rest._resting) + sum(map(len, at_rest._awaiting.values()))

    def close(self) -> None:
        """End its loop."""
        if self._runner:
            self._runner.run(self.caller.connections.aclose())
            self._runner.close()

    def _ran(self, answer: Any) -> Any:
        return self._runner.run(answer) if self._runner else answer

    def _rest(self, seconds: float) -> None:
        self.pauses_s.append(seconds)
        self.now_s += seconds

    async def _arest(self, seconds: float) -> None:
        self._rest(seconds)


@pytest.fixture(params=["blocking", "async"])
def drive(request: pytest.FixtureRequest) -> Iterator[Callable[[str], Driver]]:
    made: list[Driver] = []

    def make(url: str) -> Driver:
        made.append(Driver(request.param, url))
        return made[-1]

    yield make
    for driver in made:
        driver.close()


@pytest.fixture
def driver(drive: Callable[[str], Driver], real_server: Server) -> Driver:
    return drive(real_server.url)


@pytest.fixture
def stage(real_server: Server) -> Stage:
    """What the test looks at, by a way of its own."""
    return Stage(real_server)


@pytest.fixture
def proxy(real_server: Server) -> Iterator[Proxy]:
    with proxied(real_server) as made:
        yield made


def told(error: BaseException) -> str:
    """All that a person, a log or a tracker may see of an error."""
    shown = "".join(traceback.format_exception(error)) + repr(error)
    while error:
        shown += repr(error.args) + repr(getattr(error, "__dict__", ""))
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    return shown


# Scripts.


def test_a_script_that_the_server_does_not_know_is_sent_whole(
    real_server: Server, drive: Callable[[str], Driver], stage: Stage
) -> None:
    real_server.client().script_flush()
    with proxied(real_server) as proxy:
        driver = drive(proxy.url)
        for name in ("a", "b"):
            driver.run(stage.ops.enqueue([job(name)]))
        real_server.client().script_flush()
        driver.run(stage.ops.enqueue([job("c")]))
        scripts = [word for word in proxy.seen if word.startswith("EVAL")]
    assert scripts == ["EVALSHA", "EVAL", "EVALSHA", "EVALSHA", "EVAL"]
    assert stage.world()["ready:sales:0"] == ["c", "b", "a"]
    assert driver.pauses_s == []


def test_a_server_that_forgets_at_once_is_not_asked_for_ever(
    drive: Callable[[str], Driver], proxy: Proxy, stage: Stage
) -> None:
    proxy.say(*[b"-NOSCRIPT No matching script. Please use EVAL."] * 2)
    with pytest.raises(RqjError, match="NOSCRIPT"):
        drive(proxy.url).run(stage.ops.survey())
    assert proxy.seen.count("EVAL") == proxy.seen.count("EVALSHA") == 1


def test_every_script_runs_under_both_names(driver: Driver, stage: Stage) -> None:
    ops = stage.ops
    calls: list[Call[Any]] = [
        ops.open(), ops.enqueue([]), ops.enqueue([NewJob("a", "q", b'["f"]')]),
        ops.register("w", LEASE_MS, {}), ops.turn("w", NONCE, ["q"], [], 1),
        ops.heartbeat("w", LEASE_MS, 3, []), ops.recover(3), ops.leave("w", ["q"]), ops.cancel(["x"]),
        ops.delete(["x"]), ops.bury(["x"], "why"), ops.revive(["x"]), ops.retry(["x"]),
        ops.release(["x"]), ops.purge("q"), ops.pause("q", 0, "me"),
        ops.look(["x"]),
        ops.page("dead", "", limit=5), ops.holders(), ops.crew(), ops.survey(), ops.history("day", 7), ops.changes(),
        ops.wait("p", 1, "x"), ops.report("w", [("x", "1-0123456789abcdef", 0.5, "")]),
    ]  # fmt: skip
    stage.client.script_flush()
    first = [driver.run(call) for call in calls]
    second = [driver.run(call) for call in calls if call.verb != "push"]  # its id is there by now
    second.append(driver.run(ops.enqueue([NewJob("b", "q", b'["f"]')])))
    assert len(first) == len(second) == len({call.verb for call in calls})
    from rqlite_jobs.script import verbs

    assert {call.verb for call in calls} == set(verbs())


def test_an_error_of_a_script_names_file_and_line(driver: Driver, stage: Stage) -> None:
    stage.client.set(stage.key("dead"), "mine")
    with pytest.raises(ScriptFailed) as caught:
        driver.run(stage.ops.survey())
    error = caught.value
    assert (error.script, error.file) == ("survey", "survey.lua")
    assert "LLEN" in error.text
    assert error.message.startswith(f"lua/survey.lua failed at survey.lua:{error.line}: WRONGTYPE")
    assert error.hint.startswith(f"There it says: {error.text.strip()}")
    assert "rqj doctor" in error.hint
    assert driver.run(stage.ops.crew()).workers == []  # the connection is as good as before


def test_an_answer_with_a_word_that_nobody_knows(
    drive: Callable[[str], Driver], proxy: Proxy, stage: Stage
) -> None:
    proxy.say(b"*6\r\n$5\r\nmaybe\r\n:1\r\n:0\r\n:0\r\n*0\r\n*0")
    with pytest.raises(ValueError, match="turn answered with the word b'maybe'"):
        drive(proxy.url).run(stage.ops.turn("w", NONCE, [], [], 0))


# A full server.


def test_a_full_server_refuses_new_jobs_whole_and_lets_the_queue_drain(
    spawn: Spawn, drive: Callable[[str], Driver]
) -> None:
    server = spawn()
    stage, driver = Stage(server), drive(server.url)
    ops = stage.ops
    stage.enqueue(*(job(name, payload="x" * 3000) for name in "abcdefgh"), locked("z"))
    stage.worker()
    server.client().config_set("maxmemory", 1)
    before = stage.world()
    for new in (job("new"), locked("new"), job("new", delay_ms=5), locked("new", "k", on_conflict="reject")):
        with pytest.raises(ServerFull, match=r"over its memory limit and takes no new jobs") as caught:
            driver.run(ops.enqueue([job("other"), new]))
        assert server.url in caught.value.message
        assert "raise maxmemory" in caught.value.hint
    assert stage.world() == before
    assert driver.pauses_s == []  # not asked again: it is no outage

    claims = driver.run(ops.turn("w1", NONCE, ["sales"], [], 5)).claims
    words = ("done", "retry", "bury", "snooze", "back")
    ends = [
        Settlement(word, one.id, one.token, 5, "failed", "E", "tb")
        for word, one in zip(words, claims, strict=True)
    ]
    assert driver.run(ops.turn("w1", NONCE, [], ends, 0)).refused == {}
    assert driver.run(ops.heartbeat("w1", LEASE_MS, 3, [])).lost is False
    assert driver.run(ops.register("w2", LEASE_MS, {"host": "h"}))[0] == 1000
    assert driver.run(ops.cancel(["f"])) == ["cancelled"]
    assert driver.run(ops.bury(["g"], "why")) == ["buried"]
    assert driver.run(ops.revive(["g"])) == [("revived", "")]
    assert driver.run(ops.delete(["h"])) == ["deleted"]
    assert driver.run(ops.recover(3, ["w2"])) == (0, 0)
    assert driver.run(ops.leave("w1", ["sales"])) == (0, 0)
    survey = driver.run(ops.survey())
    assert (survey.done, survey.dead, survey.queues[0].ready, survey.queues[0].scheduled) == (1, 1, 3, 2)
    assert driver.run(ops.purge("sales")) == (3, 2, 0)

    server.client().config_set("maxmemory", 0)
    assert driver.run(ops.enqueue([job("new")]))[0].outcome == "enqueued"


def test_a_fresh_worker_opens_the_namespace_on_a_full_server(spawn: Spawn) -> None:
    server = spawn("--maxmemory", "1")
    app = App("shop", url=server.url)
    app.run(app.operations.register("w1", LEASE_MS, {}))
    with pytest.raises(ServerFull):
        app.run(app.operations.enqueue([job("a")]))
    asyncio.run(App("mall", url=server.url).arun(app.operations.heartbeat("w1", LEASE_MS, 3, [])))


# A server that takes no writes.


def not_a_primary(server: Server) -> Callable[[], None]:
    client = server.client()
    client.execute_command("REPLICAOF", "127.0.0.1", 1)
    return lambda: client.execute_command("REPLICAOF", "NO", "ONE")


def too_few_replicas(server: Server) -> Callable[[], None]:
    client = server.client()
    client.config_set("min-replicas-to-write", 1)
    return lambda: client.config_set("min-replicas-to-write", 0)


def cannot_save(server: Server) -> Callable[[], None]:
    client = server.client()
    (server.folder / "dump.rdb").mkdir()  # so that it can put no file there
    client.config_set("save", "3600 1")
    client.bgsave()
    server._until(lambda one: one.info("persistence")["rdb_last_bgsave_status"] == "err")
    return lambda: client.config_set("save", "")


@pytest.mark.parametrize(
    ("spoil", "word"),
    [(not_a_primary, "READONLY"), (too_few_replicas, "NOREPLICAS"), (cannot_save, "MISCONF")],
)
def test_a_server_that_takes_no_writes(
    spawn: Spawn, drive: Callable[[str], Driver], spoil: Callable[[Server], Callable[[], None]], word: str
) -> None:
    server = spawn()
    stage, driver = Stage(server), drive(server.url)
    stage.enqueue(job("a"))
    stage.worker()
    mend = spoil(server)
    before = stage.world()
    writers: list[Call[Any]] = [
        stage.ops.enqueue([job("b")]),
        stage.ops.turn("w1", NONCE, ["sales"], [], 1),
        stage.ops.heartbeat("w1", LEASE_MS, 3, []),
    ]
    for call in writers:
        with pytest.raises(ServerReadOnly, match=rf"takes no writes now \({word}\)") as caught:
            driver.run(call)
        assert server.url in caught.value.message
        assert driver.resting() == 0  # behind the same name there may be another server by now
    with pytest.raises(ServerReadOnly):
        driver.command("SADD", "x", "y")
    assert driver.run(stage.ops.survey()).queues[0].ready == 1
    assert stage.world() == before
    mend()
    assert driver.run(stage.ops.enqueue([job("b")]))[0].outcome == "enqueued"


# A server that will be ready soon.


@pytest.mark.parametrize(
    "words",
    [
        LOADING,
        b"-BUSY Redis is busy running a script.",
        b"-TRYAGAIN Multiple keys request during rehashing of slot",
        b"-CLUSTERDOWN The cluster is down",
        b"-MASTERDOWN Link with MASTER is down",
    ],
)
def test_a_server_that_is_not_ready_is_asked_again(
    drive: Callable[[str], Driver], proxy: Proxy, stage: Stage, words: bytes
) -> None:
    driver = drive(proxy.url)
    proxy.say(words, words, words)
    driver.run(stage.ops.enqueue([job("a")]))
    driver.run(stage.ops.enqueue([job("b")]))
    assert len(driver.pauses_s) == 3
    assert stage.world()["ready:sales:0"] == ["b", "a"]
    assert len([key for key in stage.world() if key.startswith("lane:")]) == 1  # nothing was unsure


def test_but_not_for_ever(drive: Callable[[str], Driver], proxy: Proxy, stage: Stage) -> None:
    driver = drive(proxy.url)
    proxy.say(*[LOADING] * 500)
    with pytest.raises(Unreachable, match=r"is not ready \(LOADING\)") as caught:
        driver.run(stage.ops.enqueue([job("a")]))
    assert REPEAT_PATIENCE_S <= driver.now_s < REPEAT_PATIENCE_S + 1
    assert caught.value.hint == "Try again soon."
    pauses = len(driver.pauses_s)
    with pytest.raises(Unreachable):
        driver.run(stage.ops.survey(), patient=False)
    assert len(driver.pauses_s) == pauses


def test_a_server_that_was_killed_and_is_back(spawn: Spawn, drive: Callable[[str], Driver]) -> None:
    server = spawn(appendonly=True)
    stage, driver = Stage(server), drive(server.url)
    stage.enqueue(job("a"))
    server.kill()
    with pytest.raises(Unreachable):
        driver.run(stage.ops.survey(), patient=False)
    server.start()
    assert driver.run(stage.ops.survey()).queues[0].ready == 1


# A server that cannot be reached.


def test_connection_refused(drive: Callable[[str], Driver], stage: Stage) -> None:
    port = free_port()
    driver = drive(f"redis://bob:hunter2@127.0.0.1:{port}/3")
    with pytest.raises(Unreachable) as caught:
        driver.run(stage.ops.enqueue([job("a")]))
    message = caught.value.message
    assert message.startswith(
        f"the server redis://127.0.0.1:{port}/3 cannot be reached (Error 111 connecting"
    )
    assert message.endswith("; nothing was sent.")
    assert "rqj doctor" in caught.value.hint
    assert isinstance(caught.value, ConnectionError)
    assert CONNECT_PATIENCE_S <= driver.now_s < CONNECT_PATIENCE_S + 0.5
    first_s, longest_s = PAUSE_S
    assert driver.pauses_s[0] <= first_s
    assert max(driver.pauses_s) <= longest_s
    for pause_s, tries in zip(driver.pauses_s, range(99), strict=False):
        full_s = min(longest_s, first_s * 2**tries)
        assert full_s / 2 <= pause_s <= full_s
    assert "hunter2" not in told(caught.value)


def test_without_patience_it_is_asked_once(
    drive: Callable[[str], Driver], stage: Stage, tmp_path: os.PathLike[str]
) -> None:
    driver = drive(f"unix://{tmp_path}/none")
    with pytest.raises(Unreachable, match="nothing was sent"):
        driver.run(stage.ops.enqueue([job("a")]), patient=False)
    with pytest.raises(Unreachable, match="nothing was sent"):
        driver.command("PING")
    assert driver.pauses_s == []
    with pytest.raises(Unreachable):
        driver.command("PING", again=True)
    assert driver.pauses_s != []


def test_a_server_that_comes_back(spawn: Spawn, drive: Callable[[str], Driver]) -> None:
    server = spawn(appendonly=True)
    stage, driver = Stage(server), drive(server.url)
    driver.run(stage.ops.enqueue([job("a")]))
    server.kill()
    original = driver._rest

    def rest(seconds: float) -> None:
        original(seconds)
        if len(driver.pauses_s) == 3:
            server.start()

    driver._rest = rest  # type: ignore[method-assign]
    if isinstance(driver.caller, Caller):
        driver.caller._sleep = rest
    driver.run(stage.ops.enqueue([job("b")]))
    assert len(driver.pauses_s) == 3
    assert Stage(server).world()["ready:sales:0"] == ["b", "a"]


def test_a_server_that_never_answers(
    monkeypatch: pytest.MonkeyPatch, real_server: Server, stage: Stage, drive: Callable[[str], Driver]
) -> None:
    for name in ("connection", "async_connection"):
        made = getattr(Address, name)
        monkeypatch.setattr(Address, name, lambda self, made=made: made(self, 0.05))
    driver = drive(real_server.url)
    driver.run(stage.ops.enqueue([job("a")]))
    stage.client.execute_command("CLIENT", "PAUSE", 60_000, "WRITE")
    try:
        with pytest.raises(Unreachable, match=r"(?i)time.?out.*may have been carried out"):
            driver.run(stage.ops.enqueue([job("b")]), patient=False)
    finally:
        stage.client.execute_command("CLIENT", "UNPAUSE")
    assert driver.run(stage.ops.enqueue([job("c")]))[0].outcome == "enqueued"


# Rights and passwords.


@pytest.mark.parametrize("secret", ["hunter2", "p@ss/w:rd?#%41", "geheimß 1"])
def test_a_wrong_password_is_told_and_shown_nowhere(
    spawn: Spawn, drive: Callable[[str], Driver], secret: str
) -> None:
    server = spawn(port=free_port())
    server.client().config_set("requirepass", "right")
    written = quote(secret, safe="")
    ops = App("shop", url=server.url).operations
    for url in (f"redis://:{written}@127.0.0.1:{server.port}", f"unix://default:{written}@{server.socket}"):
        driver = drive(url)
        for ask in (partial(driver.run, ops.survey()), partial(driver.command, "PING")):
            with pytest.raises(Unreachable, match=r"refuses these credentials \(WRONGPASS\)") as caught:
                ask()
            assert caught.value.hint == "Mend the user and password in the URL."
            assert secret not in told(caught.value)
            assert written not in told(caught.value)
        assert driver.pauses_s == []  # it will be as wrong the next time


def test_no_password_where_one_is_needed(spawn: Spawn, drive: Callable[[str], Driver]) -> None:
    server = spawn()
    ops = App("shop", url=server.url).operations
    driver = drive(server.url)
    driver.run(ops.survey())
    server.client().config_set("requirepass", "right")
    fresh = drive(server.url)
    # A short script: of a long one Redis 7.0 does not even read the end, and may have hung up before its answer.
    for ask in (lambda: fresh.run(ops.open()), lambda: fresh.command("PING")):
        with pytest.raises(Unreachable, match=r"refuses these credentials \(NOAUTH\)") as caught:
            ask()
        assert caught.value.hint == "Give a password in the URL."


@pytest.mark.parametrize(
    ("given", "why"), [(":right@", "refuses"), ("bob:right@", "WRONGPASS"), ("", "DB index")]
)
def test_a_url_that_does_not_fit_the_server(
    real_server: Server, drive: Callable[[str], Driver], stage: Stage, given: str, why: str
) -> None:
    driver = drive(f"unix://{given}{real_server.socket}" + ("" if given else "?db=999"))
    for ask in (lambda: driver.run(stage.ops.survey()), lambda: driver.command("PING")):
        with pytest.raises(Unreachable, match=why) as caught:
            ask()
        assert "Mend the" in caught.value.hint
        assert "right" not in told(caught.value).replace("rights", "")


def test_a_user_without_rights(spawn: Spawn, drive: Callable[[str], Driver]) -> None:
    server = spawn()
    stage = Stage(server)
    stage.client.execute_command("ACL", "SETUSER", "bob", "on", ">hunter2", "~*", "+ping")
    driver = drive(f"unix://bob:hunter2@{server.socket}")
    with pytest.raises(RqjError, match="may not do this: NOPERM") as caught:
        driver.run(stage.ops.enqueue([job("a")]))
    assert "+eval +evalsha" in caught.value.hint
    assert driver.command("PING") == b"PONG"
    with pytest.raises(RqjError, match="may not do this: NOPERM"):
        driver.command("SADD", "x", "y")
    stage.client.execute_command("ACL", "SETUSER", "bob", "+@all", "resetkeys", "~other:*")
    with pytest.raises(RqjError, match="may not do this: NOPERM"):
        driver.run(stage.ops.enqueue([job("a")]))
    assert stage.world() == {}


# Plain commands.


def test_commands(driver: Driver) -> None:
    assert driver.command("SET", "k", 7) == b"OK"
    assert driver.command("GET", "k") == b"7"
    assert driver.resting() == 1
    with pytest.raises(RqjError, match="refused HGET: WRONGTYPE"):
        driver.command("HGET", "k", "f")
    assert driver.command("GET", "k") == b"7"


def test_a_command_is_sent_again_only_where_that_is_the_same(
    drive: Callable[[str], Driver], proxy: Proxy
) -> None:
    driver = drive(proxy.url)
    proxy.lose("answer")
    with pytest.raises(Unreachable, match="may have been carried out"):
        driver.command("EVAL", "return redis.call('INCR', KEYS[1])", 1, "k")
    proxy.lose("answer", 2)
    assert driver.command("EVAL", "return redis.call('INCR', KEYS[1])", 1, "k", again=True) == 4
    proxy.say(LOADING)
    assert driver.command("EVAL", "return 1", 0, again=True) == 1
    proxy.say(LOADING)
    with pytest.raises(Unreachable, match="not ready"):
        driver.command("EVAL", "return 1", 0)


# Interrupted.


def test_a_task_that_is_cancelled_leaves_no_half_read_connection(spawn: Spawn) -> None:
    server = spawn()  # one on which nobody else is blocked
    stage = Stage(server)
    caller = AsyncCaller(Connections(Address.parse(server.url)))

    def blocked() -> int:
        return int(stage.client.info("clients")["blocked_clients"])

    async def cancelled(task: "asyncio.Future[Any]") -> None:
        while not blocked():  # the server may know before the task has come back from sending
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    async def use() -> None:
        await caller.run(stage.ops.survey())
        await cancelled(asyncio.ensure_future(caller.command("BLPOP", "k", 0)))
        while blocked():  # nobody is left who could pop a token
            await asyncio.sleep(0)

        stage.client.execute_command("CLIENT", "PAUSE", 60_000, "WRITE")
        try:
            await cancelled(asyncio.ensure_future(caller.run(stage.ops.enqueue([job("a")]))))
        finally:
            stage.client.execute_command("CLIENT", "UNPAUSE")
        assert (await caller.run(stage.ops.survey())).now_ms == 1000
        await caller.connections.aclose()

    asyncio.run(use())


def test_a_thread_that_is_interrupted_drops_its_connection(real_server: Server, stage: Stage) -> None:
    class Interrupted(BaseException):
        pass

    def read(connection: Any) -> Any:
        def read_response(**_: Any) -> Any:
            raise Interrupted

        connection.read_response = read_response
        return connection

    caller = Caller(Connections(Address.parse(real_server.url)))
    for ask in (lambda: caller.run(stage.ops.enqueue([job("a")])), lambda: caller.command("PING")):
        caller.command("PING")
        caller.connections.give(read(caller.connections.resting()))
        with pytest.raises(Interrupted):
            ask()
        assert len(caller.connections._resting) == 0


# Many at once.


def test_threads_get_their_own_answers(real_server: Server, stage: Stage) -> None:
    caller = Caller(Connections(Address.parse(real_server.url)))
    stage.enqueue(*(job(f"{n}-{m}") for n in range(8) for m in range(30)))
    wrong: list[str] = []

    def look(thread: int) -> None:
        for number in range(30):
            wanted = f"{thread}-{number}"
            wrong.extend({one.id for one in caller.run(stage.ops.look([wanted]))} - {wanted})

    threads = [threading.Thread(target=look, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(caller.connections._resting) <= 8


def test_tasks_and_loops_get_their_own_answers(real_server: Server, stage: Stage) -> None:
    caller = AsyncCaller(Connections(Address.parse(real_server.url)))
    ids = [f"{n:03}" for n in range(100)]
    stage.enqueue(*map(job, ids))

    async def look() -> list[str]:
        found = await asyncio.gather(*(caller.run(stage.ops.look([one])) for one in ids))
        await caller.connections.aclose()
        return [one.id for (one,) in found]

    assert asyncio.run(look()) == asyncio.run(look()) == ids


def test_nonces_and_lanes_are_random_and_those_of_a_child_are_new() -> None:
    caller = Caller(Connections(Address.parse("redis://h")), random.Random(7))
    assert len({caller.nonce() for _ in range(1000)}) == 1000
    assert {len(caller.nonce()) for _ in range(100)} == {16}
    twin = Caller(Connections(Address.parse("redis://h")), random.Random(7))
    caller.rng.setstate(twin.rng.getstate())
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.write(writing, caller.nonce().encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        assert pipe.read() != caller.nonce() == twin.nonce()
