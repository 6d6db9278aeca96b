"""G27 G29, and what else an App promises: any client's address, threads and forks, a server that was emptied."""

import asyncio
import importlib
import itertools
import json
import logging
import os
import subprocess
import sys
import threading
import traceback
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import pytest
import redis
import redis.asyncio
import redis.sentinel
from click.testing import CliRunner

import rqlite_jobs.link
from rqlite_jobs import App
from rqlite_jobs.cli.main import rqj
from rqlite_jobs.errors import BadUrl, Unreachable
from rqlite_jobs.keys import NAMESPACES
from rqlite_jobs.testing import drain
from tests.cases.processes import CHECKOUT, told
from tests.conftest import Spawn
from tests.servers import FakeServer, Server, free_port, program_of
from tests.worker.inside import burst, working
from tests.worker.site import until

PASSWORD = "p@ss/w%rd#1"
ENCODED = quote(PASSWORD, safe="")
SOURCE = """
from rqlite_jobs import App
app = App("shop")
@app.job
def crunch(book_id: int) -> None: ...
"""
_names = itertools.count(1)


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No settings but those of the test."""
    for variable in list(os.environ):
        if variable.startswith("RQJ_") or variable == "REDIS_URL":
            monkeypatch.delenv(variable)
    monkeypatch.setenv("RQJ_EMBEDDED", "0")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)


# G29: address forms and secrecy of the password.


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A self-signed certificate of localhost, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    made, key = folder / "cert.pem", folder / "key.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
    ]
    command += ["-keyout", str(key), "-out", str(made), "-days", "2", "-subj", "/CN=localhost"]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("openssl is not on the PATH")
    return made, key


@pytest.fixture
def guarded(spawn: Spawn) -> Server:
    """A server with a password, on a port and a socket."""
    return close(spawn(port=free_port()))


def close(server: Server) -> Server:
    with server.client() as client:
        client.config_set("requirepass", PASSWORD)
    return server


def address(server: Server, form: str, password: str = ENCODED) -> str:
    return form.format(password=password, port=server.port, path=server.socket)


FORMS = [
    "redis://:{password}@127.0.0.1:{port}/3",
    "redis://default:{password}@127.0.0.1:{port}/3",
    "unix://:{password}@{path}?db=3",
    "unix://{path}?db=3&password={password}",
    "valkey://:{password}@localhost:{port}/3",
]


def all_works_and_nothing_tells(
    url: str, shown: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capfd: Any
) -> None:
    """Enqueue, run, list, look, in Python and by commands; then search everything that was said."""
    caplog.set_level(logging.DEBUG)
    app = App("shop", url=url)
    crunch = app.job(name="crunch")(lambda book_id: None)
    job = crunch.enqueue(1)
    assert asyncio.run(crunch.aenqueue(2)).state == "ready"
    worker = burst(app, concurrency=1, lease="10s")
    assert (job.refresh().state, app.address.shown) == ("done", shown)
    connection = app.link.connections.resting()
    things = [
        app,
        worker,
        app.link,
        app.settings,
        app.address,
        app.caller,
        app.async_caller,
        app.link.connections,
    ]
    said = [
        repr(thing) for thing in [*things, connection, app.inspect, crunch, job, app.operations, app.keys]
    ]
    said += [repr(app.settings._layers), str(app.inspect.jobs().items)]
    app.link.connections.give(connection)

    module = f"shop_of_case_{os.getpid()}_{next(_names)}"
    Path(f"{module}.py").write_text(SOURCE, "utf-8")
    monkeypatch.setenv("RQJ_URL", url)
    for words in (
        ["enqueue", "-a", module, "crunch", "book_id:=3"],
        ["worker", module, "--burst", "--debug"],
        ["jobs", "-a", module, "-u", url],
        ["jobs", "--json"],
        ["stats"],
        ["config"],
        ["config", "--json", "-u", url],
        ["doctor"],
        ["workers", "--debug"],
        ["queues", "-n", "nowhere"],
        ["stats", url],
    ):
        result = CliRunner().invoke(rqj, words, prog_name="rqj")
        wanted = 2 if url in words[1:2] else 0
        assert result.exit_code == wanted, (words, result.output)
        said.append(result.output + result.stderr)
    assert importlib.import_module(module).app.job_by_id(job.id).state == "done"

    # A process of its own: what it logs reaches its own stderr.
    importlib.import_module(module).crunch.enqueue(4)
    done = subprocess.run(
        [sys.executable, "-m", "rqlite_jobs.cli", "worker", module, "--burst", "--debug"],
        env={**os.environ, "PYTHONPATH": f"{CHECKOUT}{os.pathsep}{Path.cwd()}"},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "serves default" in done.stderr
    said += [done.stdout, done.stderr, caplog.text, *capfd.readouterr()]
    tells_nothing("\n".join(said))


def tells_nothing(text: str) -> None:
    for secret in (PASSWORD, ENCODED, "w%rd", "w%25rd"):
        assert secret not in text


@pytest.mark.real
@pytest.mark.parametrize("form", FORMS)
def test_g29_every_form_works_and_no_word_tells_the_password(
    guarded: Server, form: str, monkeypatch: pytest.MonkeyPatch, caplog: Any, capfd: Any
) -> None:
    url = address(guarded, form)
    shown = (
        f"unix://{guarded.socket}?db=3"
        if "{path}" in form
        else address(guarded, form.replace("{password}", ""))
    )
    all_works_and_nothing_tells(
        url, shown.replace("default", "").replace(":@", ""), monkeypatch, caplog, capfd
    )


@pytest.mark.real
def test_g29_tls_with_a_certificate_that_nobody_signed(
    spawn: Spawn, certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, caplog: Any, capfd: Any
) -> None:
    if program_of("redis") is None:
        pytest.skip("redis-server (7.0 or newer) is not on the PATH")
    made, key = map(str, certificate)
    port = free_port()
    options = [
        "--tls-port",
        str(port),
        "--tls-cert-file",
        made,
        "--tls-key-file",
        key,
        "--tls-auth-clients",
        "no",
    ]
    try:
        close(spawn(*options, "--tls-ca-cert-file", made, lane="redis"))
    except AssertionError as error:
        if "TLS" not in str(error):
            raise
        pytest.skip("this redis-server was built without TLS")
    url = f"rediss://:{ENCODED}@127.0.0.1:{port}/3"
    with pytest.raises(Unreachable, match=r"certificate verify failed.*nothing was sent"):
        App("shop", url=url).job(name="crunch")(lambda: None).enqueue()
    all_works_and_nothing_tells(
        f"{url}?ssl_cert_reqs=none", f"rediss://127.0.0.1:{port}/3", monkeypatch, caplog, capfd
    )
    # With its certificate at hand it is checked.
    checked = App("shop", url=f"{url.replace('127.0.0.1', 'localhost')}?ssl_ca_certs={made}")
    assert checked.inspect.stats().done >= 2
    client = redis.Redis(
        port=port, db=3, password=PASSWORD, ssl=True, ssl_cert_reqs="none", ssl_check_hostname=False
    )
    assert App("shop", redis=client).inspect.stats().done == checked.inspect.stats().done


@pytest.mark.real
@pytest.mark.parametrize(
    "form", ["redis://:{password}@127.0.0.1:{port}/3", "redis://ann:{password}@127.0.0.1:{port}"]
)
@pytest.mark.parametrize("password", ["wr%40ng%2Fw%25rd%232", "wr@ng/w%rd#2"], ids=["encoded", "raw"])
def test_g29_a_wrong_password_is_one_line_and_not_told(
    guarded: Server, form: str, password: str, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    caplog.set_level(logging.DEBUG)
    url = address(guarded, form, password)
    app = App("shop", url=url)
    crunch = app.job(name="crunch")(lambda book_id: None)
    said = []
    with pytest.raises((Unreachable, BadUrl)) as caught:
        crunch.enqueue(1)
    said += ["".join(traceback.format_exception(caught.value)), repr(caught.value), repr(vars(caught.value))]
    with pytest.raises((Unreachable, BadUrl)) as caught:
        asyncio.run(crunch.aenqueue(1))
    said += ["".join(traceback.format_exception(caught.value))]
    module = f"shop_of_case_{os.getpid()}_{next(_names)}"
    Path(f"{module}.py").write_text(SOURCE, "utf-8")
    monkeypatch.setenv("RQJ_URL", url)
    for words in (
        ["enqueue", "-a", module, "crunch", "book_id:=1"],
        ["worker", module],
        ["jobs"],
        ["stats", "--json"],
    ):
        result = CliRunner().invoke(rqj, words, prog_name="rqj")
        assert result.exit_code == (69 if "%40" in password else 2), (words, result.output)
        assert result.stdout == ""
        if "--json" in words:
            assert json.loads(result.stderr)["error"]["type"] in ("Unreachable", "BadUrl")
        else:
            error, hint = result.stderr.splitlines()
            assert error.startswith("rqj: the server")
            assert hint.startswith("hint: ")
        said.append(result.output)
        said.append(CliRunner().invoke(rqj, [*words, "--debug"], prog_name="rqj").output)
    text = "\n".join(
        line for line in [*said, caplog.text] for line in line.splitlines() if "test_app_cases" not in line
    )
    for secret in ("wr%40ng", "w%25rd", "wr@ng", "w%rd", "ng/w"):
        assert secret not in text


@pytest.mark.parametrize("where", ["code", "variable", "file"])
def test_a_password_in_an_address_that_cannot_be_read_is_not_told(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"redis://:{PASSWORD}@localhost:6379/0"
    if where == "variable":
        monkeypatch.setenv("RQJ_URL", url)
    if where == "file":
        Path("rqj.toml").write_text(f'url = "{url}"\n')
    app = App("shop", url=url if where == "code" else None)
    with pytest.raises(BadUrl) as caught:
        app.job(name="crunch")(lambda: None).enqueue()
    told = "".join(traceback.format_exception(caught.value))
    tells_nothing("\n".join(line for line in told.splitlines() if "test_app_cases" not in line))
    assert "%xx" in caught.value.hint
    assert caught.value.__cause__ is caught.value.__context__ is None


# The address of a client.


@pytest.mark.real
def test_any_client_of_a_server_lends_its_address(guarded: Server) -> None:
    where: dict[str, Any] = {"port": guarded.port, "db": 5, "password": PASSWORD}
    pool = redis.BlockingConnectionPool.from_url(f"redis://:{ENCODED}@127.0.0.1:{guarded.port}/5")
    provider = redis.UsernamePasswordCredentialProvider(password=PASSWORD)
    clients: list[Any] = [
        redis.Redis(**where),
        redis.Redis(**where, decode_responses=True, protocol=3, socket_timeout=0.001),
        redis.asyncio.Redis(**where),
        redis.asyncio.Redis(**where, decode_responses=True),
        redis.Redis(unix_socket_path=str(guarded.socket), db=5, password=PASSWORD),
        redis.Redis(connection_pool=pool),
        redis.Redis(**{**where, "password": None}, credential_provider=provider),
    ]  # fmt: skip
    for number, client in enumerate(clients, 1):
        app = App("shop", redis=client)
        crunch = app.job(name="crunch")(lambda book_id: None)
        crunch.enqueue(number)
        asyncio.run(crunch.aenqueue(number))
        assert app.inspect.stats().enqueued == 2 * number
        assert burst(app, concurrency=1).abandoned is False
        assert app.inspect.stats().done == 2 * number
        tells_nothing(repr(app) + repr(app.link) + repr(app.address))


def test_clients_that_know_no_address_are_refused_in_one_line() -> None:
    sentinel: Any = cast(Any, redis.sentinel.Sentinel)([("localhost", 1)])
    for client in (sentinel.master_for("main"), sentinel.slave_for("main"), sentinel):
        with pytest.raises(BadUrl) as caught:
            App("shop", redis=client)
        assert "\n" not in caught.value.message
        assert "Sentinel" in caught.value.message


# G27, and threads.

FORKS = """
import json, os, sys, threading
from rqlite_jobs import App
app = App("test", url=sys.argv[1])
@app.job
def work(n): ...

ids, stop, begun = [], threading.Event(), threading.Barrier(5)
def busy():
    mine = [work.enqueue(0).id]
    begun.wait()
    while not stop.is_set():
        mine.append(work.enqueue(0).id)
    ids.extend(mine)
threads = [threading.Thread(target=busy) for _ in range(4)]
for thread in threads:
    thread.start()
begun.wait()
children = []
for _ in range(8):
    reader, writer = os.pipe()
    if not (pid := os.fork()):
        os.close(reader)
        found = [work.enqueue(n).id for n in range(25)]
        assert app.inspect.stats().ready >= 25
        with os.fdopen(writer, "w") as pipe:
            json.dump(found, pipe)
        os._exit(0)
    os.close(writer)
    children.append((pid, reader))
for pid, reader in children:
    with os.fdopen(reader) as pipe:
        ids += json.load(pipe)
    assert os.waitpid(pid, 0)[1] == 0
stop.set()
for thread in threads:
    thread.join()
print(json.dumps([len(ids), len(set(ids)), app.inspect.stats().ready]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.real
def test_g27_forks_in_the_middle_of_the_requests_of_other_threads(real_server: Server) -> None:
    count, different, ready = told(FORKS, real_server.url)
    assert count == different == ready
    assert count >= 8 * 25 + 4


@pytest.mark.real
def test_threads_and_event_loops_share_one_app(real_app: App) -> None:
    work = real_app.job(name="work")(lambda n: None)
    ids: list[str] = []
    start = threading.Barrier(12)

    def blocking() -> None:
        start.wait()
        ids.extend([work.enqueue(n).id for n in range(50)])

    def awaiting() -> None:
        async def some() -> None:
            ids.extend([job.id for job in await asyncio.gather(*(work.aenqueue(n) for n in range(50)))])

        start.wait()
        asyncio.run(some())

    threads = [threading.Thread(target=act) for act in [blocking, awaiting] * 6]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ids) == len(set(ids)) == real_app.inspect.stats().ready == 600


# Nothing at construction; modules of jobs.


def test_a_producer_makes_no_connection_and_reads_no_file_before_it_enqueues() -> None:
    code = (
        "import socket, sys, json\n"
        "def never(*args): raise AssertionError(args)\n"
        "socket.socket.connect = never\n"
        "from rqlite_jobs import App\n"
        "opened = []\n"
        "sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == 'open' else None)\n"
        "app = App('shop', url='redis://127.0.0.1:1', imports=['no_such_module'], lease='2s')\n"
        "opened.clear()\n"
        "app = App('shop', url='redis://127.0.0.1:1', imports=['no_such_module'], lease='2s')\n"
        "@app.job(queue='q')\n"
        "def f(x: int): ...\n"
        "f.s(1), f.options(delay='1s'), repr(app), app.handler('f')\n"
        "print(json.dumps([opened, 'redis' in sys.modules]))\n"
    )
    assert told(code) == [[], False]


def test_imports_are_for_workers_and_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    url = FakeServer().url
    name = f"shop_of_case_{os.getpid()}_{next(_names)}"
    Path(f"{name}_app.py").write_text(
        f"from rqlite_jobs import App\napp = App('shop', url={url!r}, imports=['{name}_mail'])\n"
    )
    Path(f"{name}_mail.py").write_text(f"from {name}_app import app\n@app.job\ndef mail(to: str): ...\n")
    app = importlib.import_module(f"{name}_app").app
    assert dict(app.handlers) == {}
    result = CliRunner().invoke(rqj, ["enqueue", "-a", f"{name}_app", "mail", "to=ann"], prog_name="rqj")
    assert result.exit_code == 0, result.output
    assert list(app.handlers) == ["mail"]
    del app.handlers["mail"], sys.modules[f"{name}_mail"]
    assert drain(app) == 1, "a drain stands for a worker"


# A server that was emptied.


@pytest.fixture
def minutes(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The clock that decides when a namespace is opened again; a test moves it."""
    now = [1000.0]
    monkeypatch.setattr(rqlite_jobs.link, "monotonic", lambda: now[0])
    return now


def test_a_producer_puts_its_namespace_back_within_a_minute(
    app: App, server: Any, minutes: list[float]
) -> None:
    work = app.job(name="work")(lambda: None)
    with server.client() as client:
        work.enqueue()
        assert client.smembers(NAMESPACES) == {b"test"}
        client.flushall()
        minutes[0] += 59
        work.enqueue()
        assert client.smembers(NAMESPACES) == set()
        minutes[0] += 1
        asyncio.run(work.aenqueue())
        assert client.smembers(NAMESPACES) == {b"test"}
        assert client.hget(app.keys.fixed("meta"), "format") == b"1"


@pytest.mark.real
def test_a_worker_puts_its_namespace_back_with_its_next_lease(
    real_app: App, real_server: Server, minutes: list[float]
) -> None:
    work = real_app.job(name="work")(lambda: None)
    with working(real_app, lease="2s", beat="50ms"), real_server.client() as client:
        assert client.smembers(NAMESPACES) == {b"test"}
        client.flushall()
        until(lambda: client.smembers(NAMESPACES) == {b"test"}, "the namespace is back")
        job = work.enqueue()
        until(lambda: job.refresh().state == "done", "the job is done")
    result = CliRunner().invoke(rqj, ["stats", "-u", real_server.url, "--json"], prog_name="rqj")
    assert json.loads(result.stdout)["namespace"] == "test"
