"""The App: it does nothing at construction, takes its settings from everywhere, and knows its jobs."""

import asyncio
import functools
import importlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fakeredis
import pytest

import rqlite_jobs.link
from rqlite_jobs import App, Retry, until_executed
from rqlite_jobs.clock import ServerClock
from rqlite_jobs.config import Settings
from rqlite_jobs.errors import (
    BadDuration,
    BadName,
    BadOption,
    BadUrl,
    FormatMismatch,
    JobNotFound,
    RqjError,
    ServerMissing,
    UnknownJob,
    UnknownOption,
    WrongArguments,
)
from rqlite_jobs.foreign import APP_VERBS
from rqlite_jobs.keys import NAMESPACES


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No settings but those of the test."""
    for variable in list(os.environ):
        if variable.startswith("RQJ_") or variable == "REDIS_URL":
            monkeypatch.delenv(variable)
    monkeypatch.chdir(tmp_path)


def crunch_sales(book_id: int) -> float:
    return float(book_id)


# Construction.


def test_making_an_app_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("settings were read")

    monkeypatch.setattr(Settings, "load", never)
    app = App("bookstore", url="redis://nowhere.invalid:1", lease="2s")

    @app.job(queue="sales", retry=Retry(5), lock=until_executed())
    def crunch(book_id: int) -> None: ...

    assert crunch.s(1).args == (1,)
    assert crunch.options(delay="1s").s(1).args == (1,)
    assert repr(app) == "App('bookstore')"


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"namespace": "a b"}, BadName, "cannot be the name of a namespace"),
        ({"namespace": 3}, BadName, "is 3"),
        ({"leese": "2s"}, UnknownOption, "Did you mean 'lease'?"),
        ({"lease": "soon"}, BadDuration, "lease 'soon' is not a duration"),
        ({"concurrency": 0}, BadOption, "concurrency=0 is not possible"),
        ({"default_queue": "a b"}, BadName, "name of a queue"),
        ({"imports": "shop.mail"}, BadOption, "imports=('shop.mail',)"),
        ({"redis": "redis://"}, BadUrl, "was given a str"),
        ({"redis": fakeredis.FakeRedis(), "url": "redis://x"}, BadOption, "Give one of them"),
        ({"url": 3}, BadOption, "url is an int, not text"),
    ],
)
def test_bad_arguments_are_refused_at_once(
    arguments: dict[str, Any], error: type[RqjError], said: str
) -> None:
    with pytest.raises(error) as caught:
        App(**arguments)
    assert said in str(caught.value)


def test_settings_come_from_the_first_place_that_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RQJ_NAMESPACE", "from-env")
    monkeypatch.setenv("RQJ_CONCURRENCY", "3")
    assert App().namespace == "from-env"
    assert App("from-code").namespace == "from-code"
    app = App("from-code", concurrency=4, lease=None)
    assert (app.settings.concurrency, app.settings.lease_ms) == (4, 15_000)
    app = App("from-code", concurrency=4)
    app.set_flags(namespace="from-flag", concurrency=None)
    assert (app.namespace, app.settings.concurrency) == ("from-flag", 4)
    assert app.settings.origin("namespace") == "flag"


def test_without_settings_there_are_defaults() -> None:
    app = App()
    assert app.namespace == "default"
    assert isinstance(app.clock, ServerClock)
    assert app.keys.namespace == "default"
    assert app.retry_of(app.job(crunch_sales)) == Retry()
    assert App(retry=Retry(7)).settings.retry == Retry(7)


def test_a_handler_knows_better_than_the_app(fake_app: App) -> None:
    assert fake_app.retry_of(fake_app.job(retry=Retry(5))(crunch_sales)) == Retry(5)


# Where the server is.


@pytest.mark.parametrize("client", [fakeredis.FakeRedis, fakeredis.FakeAsyncRedis])
@pytest.mark.parametrize("decode", [True, False])
def test_the_server_of_a_client_is_taken(client: Any, decode: bool) -> None:
    server = fakeredis.FakeServer()
    app = App("t", redis=client(server=server, decode_responses=decode))
    job = app.job(crunch_sales).enqueue(42)
    assert fakeredis.FakeRedis(server=server).hexists(app.keys.fixed("jobs"), job.id)
    assert job.refresh().args == (42,)


def test_a_flag_goes_before_a_client() -> None:
    app = App("t", redis=fakeredis.FakeRedis())
    app.set_flags(url="fake://elsewhere")
    assert app.address.shown == "fake://elsewhere"


class Started:
    """Stands in for the embedded server and notes what it was asked."""

    folders: list[tuple[Path, bool]]

    def __init__(self, folder: Path, *, allowed: bool = True) -> None:
        self.folders.append((folder, allowed))

    def url(self) -> str:
        return "unix:///nowhere"


@pytest.mark.parametrize(
    ("url", "environ", "wanted"),
    [
        (None, {"RQJ_DATA_DIR": "/data"}, ("/data", True)),
        (None, {"RQJ_DATA_DIR": "/data", "RQJ_EMBEDDED": "0"}, ("/data", False)),
        ("embedded:///here", {"RQJ_DATA_DIR": "/data"}, ("/here", True)),
        ("embedded://", {"RQJ_DATA_DIR": "/data"}, ("/data", True)),
    ],
)
def test_without_an_address_there_is_the_embedded_server(
    monkeypatch: pytest.MonkeyPatch, url: str | None, environ: dict[str, str], wanted: tuple[str, bool]
) -> None:
    Started.folders = []
    monkeypatch.setattr(rqlite_jobs.link, "Embedded", Started)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert App("t", url=url).address.shown == "unix:///nowhere"
    assert Started.folders == [(Path(wanted[0]), wanted[1])]


def test_no_address_and_no_embedded_server_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RQJ_EMBEDDED", "0")
    with pytest.raises(ServerMissing, match="set RQJ_URL"):
        App("t").job(crunch_sales).enqueue(1)


def test_many_threads_make_one_of_everything(fake_app: App) -> None:
    found: list[Any] = []
    start = threading.Barrier(8)

    def ask() -> None:
        start.wait()
        found.append((fake_app.settings, fake_app.operations, fake_app.caller, fake_app.async_caller))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {tuple(map(id, one)) for one in found} == {tuple(map(id, found[0]))}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_while_another_thread_makes_the_connection(fake_app: App) -> None:
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with fake_app.link.guard:
            inside.set()
            leave.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait()
    child = os.fork()
    if not child:
        # Without a new guard this would wait for a thread that the child does not have.
        os._exit(0 if fake_app.settings.concurrency == 10 else 1)
    _, status = os.waitpid(child, 0)
    leave.set()
    thread.join()
    assert status == 0


# The namespace is opened by the first call that writes.


def test_the_first_write_opens_the_namespace(fake_app: App) -> None:
    raw = fake_app.caller.command
    fake_app.run(fake_app.operations.survey())
    assert raw("KEYS", "*") == []
    job = fake_app.job(crunch_sales)
    job.enqueue(1)
    assert raw("SMEMBERS", NAMESPACES) == [b"test"]
    assert raw("HGET", fake_app.keys.fixed("meta"), "format") == b"1"
    raw("DEL", NAMESPACES)
    job.enqueue(2)
    assert raw("EXISTS", NAMESPACES) == 0, "it is opened once, not at every call"


def test_the_first_async_write_opens_the_namespace(fake_app: App) -> None:
    async def go() -> Any:
        await fake_app.arun(fake_app.operations.survey())
        assert await fake_app.async_caller.command("KEYS", "*") == []
        await fake_app.job(crunch_sales).aenqueue(1)
        return await fake_app.async_caller.command("SMEMBERS", NAMESPACES)

    assert asyncio.run(go()) == [b"test"]


def test_another_format_is_not_touched(fake_app: App) -> None:
    fake_app.caller.command("HSET", fake_app.keys.fixed("meta"), "format", "2")
    for _ in range(2):
        with pytest.raises(
            FormatMismatch, match="has format 2, and this version of rqlite-jobs knows format 1"
        ):
            fake_app.run(fake_app.operations.cancel(["x"]))
    with pytest.raises(FormatMismatch):
        asyncio.run(fake_app.arun(fake_app.operations.cancel(["x"])))
    assert fake_app.caller.command("EXISTS", fake_app.keys.fixed("jobs")) == 0


# Declaring.


def test_a_job_has_the_name_of_its_function_or_its_own(fake_app: App) -> None:
    fake_app.job(crunch_sales)
    fake_app.job(name="größe.neu-2")(crunch_sales)
    fake_app.job(name="_private")(lambda: None)
    assert list(fake_app.handlers) == ["crunch_sales", "größe.neu-2", "_private"]
    assert fake_app.handler("größe.neu-2").enqueue(1).name == "größe.neu-2"


def test_all_forms_of_the_decorator(fake_app: App) -> None:
    @fake_app.job
    def one() -> None: ...

    @fake_app.job()
    def two() -> None: ...

    @fake_app.job(queue="sales", retry=Retry(5), lock=until_executed(), remote=True)
    def three() -> None: ...

    assert (one.queue, two.queue, three.queue) == ("default", "default", "sales")
    assert (three.retry, three.lock, three.remote) == (Retry(5), until_executed(), True)
    assert (one.retry, one.lock, one.remote) == (None, None, False)
    assert repr(three) == "<job 'three' of another service>"


def test_a_job_of_another_service_is_enqueued_like_any(fake_app: App) -> None:
    @fake_app.job(remote=True, queue="numbers")
    def remote_crunch(book_id: int) -> float: ...  # type: ignore[empty-body]

    assert remote_crunch.enqueue(42).state == "ready"


@pytest.mark.parametrize("name", ["", "a b", "a:b", ".a", "-a", "a\n", "a\0", "a{b}", "x" * 101, 3])
def test_names_that_no_job_may_have(fake_app: App, name: Any) -> None:
    with pytest.raises(BadName, match="cannot be the name of a job"):
        fake_app.job(name=name)(crunch_sales)
    assert fake_app.handlers == {}


def test_a_lambda_needs_a_name(fake_app: App) -> None:
    with pytest.raises(BadName, match=r"@app\.job\(name="):
        fake_app.job(lambda: None)


def test_a_second_job_of_a_name_is_refused(fake_app: App) -> None:
    first = fake_app.job(crunch_sales)
    with pytest.raises(BadName, match="has a job 'crunch_sales' already"):
        fake_app.job(crunch_sales)
    assert fake_app.handler("crunch_sales") is first


class Shop:
    def method(self) -> None: ...

    @staticmethod
    def static() -> None: ...

    @classmethod
    def of_class(cls) -> None: ...

    def __call__(self) -> None: ...


def generator() -> Iterator[int]:
    yield 1


async def async_generator() -> Any:
    yield 1


@functools.wraps(generator)
def wrapped_generator() -> Any:
    return generator()


@pytest.mark.parametrize(
    ("fn", "what"),
    [
        (Shop().method, "is a method"),
        (Shop.of_class, "is a method"),
        (Shop.method, "is defined in the body of the class 'Shop'"),
        (Shop.static, "is defined in the body of the class 'Shop'"),
        (staticmethod(crunch_sales), "is a method"),
        (classmethod(lambda cls: None), "is a method"),
        (Shop, "is a class"),
        (Shop(), "is no function"),
        (generator, "is a generator"),
        (async_generator, "is a generator"),
        (wrapped_generator, "is a generator"),
        (print, "is a builtin"),
        (len, "is a builtin"),
        ([].append, "is a builtin"),
        (functools.partial(crunch_sales, 1), "is a partial call"),
        (42, "is no function"),
    ],
)
def test_what_a_worker_could_not_call_again(fake_app: App, fn: Any, what: str) -> None:
    with pytest.raises(BadOption) as caught:
        fake_app.job(fn)
    assert what in str(caught.value)
    with pytest.raises(BadOption):
        fake_app.job(name="job")(fn)
    assert fake_app.handlers == {}


def test_a_job_is_not_declared_twice(fake_app: App) -> None:
    handler = fake_app.job(crunch_sales)
    with pytest.raises(BadOption, match="is a job already"):
        App("other").job(handler)


@pytest.mark.parametrize(
    ("declared", "error", "said"),
    [
        ({"quue": "a"}, UnknownOption, "Did you mean 'queue'?"),
        ({"delay": 5}, UnknownOption, "It is an option of a call: handler.options(delay=...)"),
        ({"timeout": 5}, UnknownOption, "no option 'timeout'"),
        ({"queue": "a b"}, BadName, "name of a queue"),
        ({"retry": 3}, BadOption, "Write retry=Retry(max_attempts=3)"),
        ({"retry": "x"}, BadOption, "Write retry=Retry(max_attempts=5)"),
        ({"lock": until_executed}, BadOption, "Write lock=until_executed()"),
        ({"lock": until_executed(key="{nope}")}, BadOption, "no parameter of it"),
        ({"remote": 1}, BadOption, "neither True nor False"),
    ],
)
def test_bad_declarations(fake_app: App, declared: Any, error: type[RqjError], said: str) -> None:
    with pytest.raises(error) as caught:
        fake_app.job(**declared)(crunch_sales)
    assert said in str(caught.value)
    assert fake_app.handlers == {}


def test_text_is_no_function(fake_app: App) -> None:
    with pytest.raises(BadOption, match=r"Write @app\.job\(name='sales'\)"):
        fake_app.job("sales")  # type: ignore[call-overload]


def test_a_handler_is_found_by_name(fake_app: App) -> None:
    with pytest.raises(UnknownJob, match="It has none: is the module"):
        fake_app.handler("crunch_sales")
    handler = fake_app.job(crunch_sales)
    assert fake_app.handler("crunch_sales") is handler
    with pytest.raises(UnknownJob, match="Did you mean 'crunch_sales'") as caught:
        fake_app.handler("crunch_sale")
    assert caught.value.job_name == "crunch_sale"
    assert isinstance(caught.value, LookupError)


@pytest.mark.parametrize("verb", APP_VERBS)
def test_verbs_of_other_libraries_get_a_hint(fake_app: App, verb: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(fake_app, verb)
    assert f"here it is app.{APP_VERBS[verb]}" in str(caught.value)


def test_imports_are_imported_when_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shop_mail_for_test.py").write_text("loaded = True\n")
    monkeypatch.syspath_prepend(tmp_path)
    app = App("t", imports=["shop_mail_for_test"])
    assert app.imports == ("shop_mail_for_test",)
    assert "shop_mail_for_test" not in sys.modules
    app.load_imports()
    assert sys.modules.pop("shop_mail_for_test").loaded
    importlib.invalidate_caches()


# Many calls, and jobs by id.


def both(app: App, what: str) -> list[Callable[..., Any]]:
    """A method, and its async twin made blocking."""
    twin = getattr(app, f"a{what}")
    return [getattr(app, what), lambda *args: asyncio.run(twin(*args))]


@pytest.mark.parametrize("way", [0, 1])
def test_calls_of_several_jobs_go_in_order(fake_app: App, way: int) -> None:
    crunch = fake_app.job(crunch_sales)
    mail = fake_app.job(name="mail", queue="mail")(lambda to: None)
    jobs = both(fake_app, "enqueue_many")[way]([crunch.s(1), mail.s("a"), crunch.options(delay=5).s(2)])
    assert [(job.name, job.args, job.state) for job in jobs] == [
        ("crunch_sales", (1,), "ready"),
        ("mail", ("a",), "ready"),
        ("crunch_sales", (2,), "scheduled"),
    ]
    assert fake_app.run(fake_app.operations.survey()).records == 3


def test_only_signatures_of_this_app_are_taken(fake_app: App) -> None:
    crunch = fake_app.job(crunch_sales)
    bad: Any
    for bad in [(1,), 1, crunch, "x"]:
        with pytest.raises(WrongArguments, match="no call of a job") as caught:
            fake_app.enqueue_many([crunch.s(1), bad])
        assert caught.value.__notes__ == ["This is item 1 of enqueue_many; nothing was sent."]
    with pytest.raises(WrongArguments, match="is a job of another app"):
        fake_app.enqueue_many([App("other").job(crunch_sales).s(1)])
    assert fake_app.run(fake_app.operations.survey()).records == 0


@pytest.mark.parametrize("way", [0, 1])
def test_a_job_is_read_by_id(fake_app: App, way: int) -> None:
    job = fake_app.job(crunch_sales).enqueue(42)
    read = both(fake_app, "job_by_id")[way]
    found = read(job.id)
    assert (found.id, found.name, found.args, found.state, found.outcome) == (
        job.id,
        "crunch_sales",
        (42,),
        "ready",
        None,
    )
    with pytest.raises(JobNotFound, match="'nope'") as caught:
        read("nope")
    assert caught.value.job_id == "nope"


@pytest.mark.parametrize("way", [0, 1])
def test_a_job_is_cancelled_by_id(fake_app: App, way: int) -> None:
    job = fake_app.job(crunch_sales).enqueue(42)
    cancel = both(fake_app, "cancel_job")[way]
    assert [cancel(job.id), cancel(job.id), cancel("nope")] == [True, False, False]
    assert job.refresh().state == "cancelled"


def test_handles_ask_for_themselves(fake_app: App) -> None:
    async def go() -> list[Any]:
        job = await fake_app.job(crunch_sales).aenqueue(1)
        return [
            (await job.arefresh()).state,
            await job.acancel(),
            await job.acancel(),
            (await job.arefresh()).state,
        ]

    assert asyncio.run(go()) == ["ready", True, False, "cancelled"]
    job = fake_app.handler("crunch_sales").enqueue(2)
    assert [job.cancel(), job.cancel()] == [True, False]
