"""The inspector: rows from what scripts answer, pages and filters, and twins that cannot drift."""

import inspect
import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest

from rqlite_jobs import (
    App,
    BadOption,
    JobNotFound,
    LockNotFound,
    QueueNotFound,
    Retry,
    until_executed,
    until_expired,
)
from rqlite_jobs.answers import WorkerEntry
from rqlite_jobs.counters import COUNTERS
from rqlite_jobs.inspector import Inspector, Page, WorkerRow, call_text, to_json
from rqlite_jobs.inspector.cursor import Cursor
from rqlite_jobs.inspector.filter import AsText
from rqlite_jobs.job import Job
from rqlite_jobs.testing import FrozenClock, drain, isolated

pytestmark = pytest.mark.lanes("fake", "valkey")


@pytest.fixture
def ids(app: App) -> list[str]:
    """25 jobs `even` and `odd` in turn, in the queues a and b."""

    @app.job(queue="a")
    def even(n: int) -> None: ...

    @app.job(queue="b")
    def odd(n: int) -> None: ...

    return [job.id for job in app.enqueue_many((odd if n % 2 else even).s(n) for n in range(25))]


def all_pages(app: App, limit: int, **wanted: Any) -> list[str]:
    """The ids of all pages, one after the other; each but the last is full."""
    seen: list[str] = []
    cursor = ""
    while True:
        page = app.inspect.jobs(limit=limit, cursor=cursor, **wanted)
        seen += [job.id for job in page]
        assert len(page) <= limit
        if not page.next:
            return seen
        cursor = page.next


@pytest.mark.parametrize("limit", [1, 3, 7, 25, 1000])
def test_pages_hold_each_job_once(app: App, ids: list[str], limit: int) -> None:
    expected = ids[::2] + ids[1::2]
    assert all_pages(app, limit) == expected
    assert all_pages(app, limit, state="ready") == expected
    assert all_pages(app, limit, queue="a") == ids[::2]
    assert all_pages(app, limit, name="odd") == ids[1::2]
    assert all_pages(app, limit, name="odd", queue="a") == []


def test_tags_are_read_back_and_what_is_none_is_no_tag(app: App) -> None:
    @app.job(tags=["night"])
    def f(n: int) -> None: ...

    job = f.enqueue(1)
    assert (job.tags, job.refresh().tags, app.inspect.jobs().items[0].tags) == (("night",),) * 3
    assert to_json(job)["tags"] == ["night"]
    for options in ('{"g":7}', '{"g":[7,"x"]}'):
        key = app.keys.tag + "jobs"
        app.caller.command("HSET", key, job.id, f'1\0default\x000\x005\0\0["f",[],{{}},{options}]')
        assert app.job_by_id(job.id).tags == (("x",) if "x" in options else ())


def test_a_full_last_page_has_no_next(app: App, ids: list[str]) -> None:
    page = app.inspect.jobs(limit=25)
    assert (len(page), page.next, page.count) == (25, "", 25)


@pytest.mark.parametrize("limit", [1, 4])
def test_cancelled_jobs_that_still_lie_in_the_list_are_passed_over(
    app: App, ids: list[str], limit: int
) -> None:
    for id_ in ids[:10]:
        app.cancel_job(id_)
    assert all_pages(app, limit) == ids[10::2] + ids[11::2]


def test_filters_over_many_dead(app: App) -> None:
    @app.job
    def f(n: int) -> None: ...

    jobs = f.enqueue_many([(n,) for n in range(450)])
    for at in (0, 1):
        some = [job.id for job in jobs if job.args[0] % 9 == at]
        app.run(app.operations.bury(some, f"reason {at} \u00c4"))
    last_first = [job.id for job in jobs if job.args[0] % 9 == 1][::-1]
    assert all_pages(app, 7, state="dead", error="REASON 1 \u00e4") == last_first
    page = app.inspect.jobs("dead", error="reason 1", limit=7)
    assert page.count is None


def test_a_filtered_page_looks_at_a_bounded_number(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rqlite_jobs.inspector.questions.SCAN_MAX", 10)

    @app.job
    def f(n: int) -> None: ...

    ids = [job.id for job in f.enqueue_many([(n,) for n in range(30)])]
    page = app.inspect.jobs(name="nobody")
    assert (page.items, page.looked, page.among) == ((), 10, 30)
    page = app.inspect.jobs(name="nobody", cursor=page.next)
    assert (page.items, page.looked, page.among, bool(page.next)) == ((), 20, 30, True)
    page = app.inspect.jobs(name="nobody", cursor=page.next)
    assert (page.items, page.looked, page.next) == ((), 30, "")
    assert all_pages(app, 100, name="f") == ids


@pytest.fixture
def called(app: App) -> dict[str, str]:
    """Jobs of one handler, called in several ways, and one of a job that nobody declares: word -> id."""

    @app.job(tags=["night"])
    def ship(book_id: int, to: str = "ada", *rest: object, express: bool = False, **more: object) -> None: ...

    @app.job
    def other(book_id: Any) -> None: ...

    jobs = {
        "position": ship.enqueue(1, "bob"),
        "name": ship.options(tags=["Day"]).enqueue(book_id=1),
        "express": ship.enqueue(2, express=True, where="Straße"),
        "large": ship.enqueue(2, "x" * 5000 + "needle"),
        "other": other.enqueue(1),
        "text": other.enqueue("1"),
        "truth": other.enqueue(True),
        "undeclared": other.enqueue([1, {"a": None}]),
    }
    raw = '1\0default\x000\x005\0\0["gone",[7],{"book_id":1}]'
    app.caller.command("HSET", app.keys.tag + "jobs", jobs["undeclared"].id, raw)
    return {word: job.id for word, job in jobs.items()}


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"arg": {"book_id": 1}}, "position name other undeclared"),
        ({"arg": {"book_id": "1"}}, "text"),
        ({"arg": {"book_id": True}}, "truth"),
        ({"arg": {"book_id": AsText("1")}}, "position name other text undeclared"),
        ({"arg": {"book_id": AsText("true")}}, "truth"),
        ({"arg": {"book_id": 1, "to": "ada"}}, "name"),
        ({"arg": {"express": False}}, "position name large"),
        ({"arg": {"where": "Straße"}}, "express"),
        ({"arg": {"0": 7}}, "undeclared"),
        ({"arg": {"book_id": 2}, "name": "ship"}, "express large"),
        ({"arg": {"nobody": 1}}, ""),
        ({"arg": {}}, "position name express large other text truth undeclared"),
        ({"tag": "night"}, "position express large"),
        ({"tag": "day"}, ""),
        ({"text": "NEEDLE"}, "large"),
        ({"text": "strasse"}, "express"),
        ({"text": '"day"'}, "name"),
        ({"text": "gone", "arg": {"book_id": 1}}, "undeclared"),
    ],
)
def test_filters_on_payloads(app: App, called: dict[str, str], wanted: dict[str, Any], expected: str) -> None:
    assert all_pages(app, 3, **wanted) == [called[word] for word in expected.split()]


@pytest.mark.parametrize("arg", ["book_id", {1: 2}, [("a", 1)]])
def test_arguments_to_look_for_that_are_none(app: App, arg: Any) -> None:
    with pytest.raises(BadOption, match="arguments by name"):
        app.inspect.jobs(arg=arg)


def test_arguments_of_classes_that_cannot_be_compared(app: App) -> None:
    class Odd:
        def __eq__(self, other: object) -> bool:
            raise ValueError

        __hash__ = None  # type: ignore[assignment]

    @app.job
    def f(n: int) -> None: ...

    f.enqueue(1)
    assert all_pages(app, 3, arg={"n": Odd()}) == []


def test_payloads_apart_are_read_only_where_they_may_matter(app: App) -> None:
    @app.job(queue="a")
    def f(text: str) -> None: ...

    small, large = f.enqueue("x"), f.enqueue("x" * 5000)
    app.run(app.operations.bury([small.id, large.id], "why"))
    asked: list[str] = []
    run = app.run

    def noted(call: Any) -> Any:
        asked.append(call.verb)
        return run(call)

    app.run = noted  # type: ignore[method-assign]
    assert len(app.inspect.jobs("dead", error="another")) == 0
    assert "look" not in asked
    assert len(app.inspect.jobs("dead", error="why")) == 2
    assert "look" in asked


@pytest.mark.parametrize(
    "cursor",
    [
        "x", "!", "\u00e4", "0", Cursor("dead").text()[:-2], Cursor("nowhere").text(), Cursor("ready", "c").text(),
        Cursor("ready", "a", 0, b"1 x").text(), Cursor("scheduled", "a", 0, b"1 nan x").text(),
        Cursor("dead", "", 0, b"x").text(), Cursor("dead", "", -1, b"1 ").text(), Cursor("locks").text(),
        Cursor("scheduled", "a", 0, b"1 inf x").text(),
    ],
)  # fmt: skip
def test_cursors_that_are_none(app: App, ids: list[str], cursor: str) -> None:
    with pytest.raises(BadOption, match="not the cursor"):
        app.inspect.jobs(cursor=cursor)
    if cursor != Cursor("locks").text():
        with pytest.raises(BadOption, match="not the cursor"):
            app.inspect.locks(cursor=cursor)


def test_how_far_pages_came(app: App, ids: list[str]) -> None:
    pages = [app.inspect.jobs(limit=10)]
    while pages[-1].next:
        pages.append(app.inspect.jobs(limit=10, cursor=pages[-1].next))
    assert [(page.looked, page.among, page.count) for page in pages] == [
        (10, 25, 25),
        (20, 25, 25),
        (25, 25, 25),
    ]


def test_pages_of_locks(app: App) -> None:
    @app.job(lock=until_executed())
    def f(n: int) -> None: ...

    f.enqueue_many([(n,) for n in range(25)])
    keys, cursor = list[str](), ""
    while True:
        page = app.inspect.locks(limit=10, cursor=cursor)
        keys += [row.key for row in page]
        assert (page.looked, page.among, page.count) == (len(keys), 25, 25)
        cursor = page.next
        if not cursor:
            break
    assert len(keys) == len(set(keys)) == 25


def test_large_payloads_have_their_name_in_a_list(app: App) -> None:
    @app.job
    def f(text: str) -> None: ...

    f.enqueue_many([("x" * 5000,) for _ in range(45)])
    page = app.inspect.jobs(limit=45)
    assert {job.name for job in page} == {"f"}
    assert {len(job.args[0]) for job in page} == {5000}
    assert len(app.inspect.jobs(name="f", limit=100)) == 45


def test_what_is_not_there(app: App) -> None:
    with pytest.raises(JobNotFound) as missing:
        app.inspect.job("nope")
    assert missing.value.job_id == "nope"
    with pytest.raises(QueueNotFound):
        app.inspect.jobs(queue="nope")
    with pytest.raises(LockNotFound):
        app.inspect.lock("nope")
    assert [job.state for job in app.inspect.look(["nope", "nada"])] == ["unknown", "unknown"]


@pytest.mark.parametrize("wrong", [{"state": "redy"}, {"limit": 0}, {"limit": 1001}, {"cursor": "x"}])
def test_what_makes_no_sense(app: App, wrong: dict[str, Any]) -> None:
    with pytest.raises(BadOption):
        app.inspect.jobs(**wrong)
    if "state" not in wrong:
        with pytest.raises(BadOption):
            app.inspect.locks(**wrong)


def test_rows_of_the_whole(app: App) -> None:
    @app.job(lock=until_expired("1h"))
    def f() -> None: ...

    id_ = f.enqueue().id
    stats = app.inspect.stats()
    assert (stats.ready, stats.locks, stats.enqueued, stats.attempts) == (1, 1, 1, 0)
    (lock,) = app.inspect.locks()
    assert (lock.key, lock.holder_id, app.inspect.lock("f:").mode) == ("f:", id_, "until_expired")
    (queue,) = app.inspect.queues()
    assert (queue.name, queue.ready) == ("default", 1)
    assert queue.waiting_since == app.inspect.job(id_).enqueued_at
    assert abs((app.inspect.now() - stats.now).total_seconds()) < 60


@pytest.mark.parametrize("step", [1, 2, 120])
def test_history_adds_up_to_the_totals(app: App, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    monkeypatch.setattr("rqlite_jobs.inspector.questions._COPIES", step)

    @app.job(retry=Retry(max_attempts=1))
    def f(n: int) -> None:
        if n % 3 == 0:
            raise ValueError

    clock = FrozenClock(86_400 * 400 - 90)
    with isolated(app, clock=clock):
        counts: list[int] = []
        for minutes in (0, 1, 1, 5, 2):
            clock.advance(f"{minutes}m" if minutes else 0)
            f.enqueue_many([(n,) for n in range(10 + minutes)])
            f.options(delay="1h").enqueue(1).cancel()
            drain(app)
            counts.append(11 + minutes)
        stats = app.inspect.stats()
        for by, last in (("minute", 10), ("day", 2)):
            page = app.inspect.history(by, last=last)
            assert len(page) == last == page.count
            for name in (*COUNTERS, "attempts"):
                assert sum(getattr(row, name) for row in page) == getattr(stats, name), name
            starts = [row.start for row in page]
            assert starts == sorted(starts)
            assert starts[-1] <= page.now == app.inspect.now() < starts[-1] + (starts[-1] - starts[-2])
        by_minute = [row.enqueued for row in app.inspect.history(last=10)]
        assert by_minute == [counts[0], counts[1], counts[2], 0, 0, 0, 0, counts[3], 0, counts[4]]
        assert [row.enqueued for row in app.inspect.history(last=2)] == [0, counts[4]]
        assert [row.enqueued for row in app.inspect.history("day")][-2:] == [sum(counts[:2]), sum(counts[2:])]


@pytest.mark.parametrize(
    ("by", "last"), [("hour", 1), ("", 1), ("minute", 0), ("minute", 1441), ("day", 367)]
)
def test_a_history_that_is_none(app: App, by: str, last: int) -> None:
    with pytest.raises(BadOption):
        app.inspect.history(by, last=last)


async def asked(app: App) -> list[Any]:
    inspector = app.inspect
    one = (await inspector.ajobs(limit=3)).items
    return [
        one, await inspector.ajob(one[0].id), await inspector.alook([one[0].id]), await inspector.aqueues(),
        await inspector.astats(), await inspector.aworkers(), await inspector.alocks(), await inspector.adead(),
        await inspector.ascheduled(), await inspector.anow(), await inspector.ahistory(),
    ]  # fmt: skip


def test_the_async_twins(app: App, ids: list[str]) -> None:
    import asyncio

    answers = asyncio.run(asked(app))
    assert [job.id for job in answers[0]] == ids[0:6:2]
    assert answers[1].id == answers[2][0].id == ids[0]
    assert answers[4].ready == 25


def test_twins_differ_by_the_word_await() -> None:
    methods = {
        name for name, _ in inspect.getmembers(Inspector, inspect.isfunction) if not name.startswith("_")
    }
    alone = {name for name in methods if f"a{name}" not in methods and name[1:] not in methods}
    assert alone == set()

    def bare(name: str) -> str:
        source = re.sub(r'""".*?"""', "", inspect.getsource(getattr(Inspector, name)), flags=re.DOTALL)
        source = re.sub(r"\basync |\bawait ", "", source).replace("_arun", "_run").replace(".ajobs", ".jobs")
        return source.replace(f"def {name}(", "def (")

    for name in methods:
        if f"a{name}" in methods:
            assert bare(name) == bare(f"a{name}")


@pytest.mark.parametrize(
    ("facts", "state"),
    [
        ({}, "alive"),
        (
            {"queues": "junk", "names": "{", "pid": "\u0663", "concurrency": "9" * 40, "started_ms": "-1"},
            "alive",
        ),
        ({"queues": "[" * 100_000, "names": '{"a":1}', "started_ms": "9" * 18}, "alive"),
    ],
)
def test_facts_of_a_worker_that_are_none(facts: dict[str, str], state: str) -> None:
    row = WorkerRow.of(WorkerEntry("w", 10, 0, False, facts), 5)
    assert (row.state, row.queues, row.names, row.pid, row.started_at) == (state, (), (), 0, None)


def test_call_text() -> None:
    assert call_text(Job("i", "f", args=(1, "two"), kwargs={"three": None})) == "f(1, 'two', three=None)"
    assert call_text(Job("i")) == "?()"
    assert len(call_text(Job("i", "f", args=("x" * 500,) * 50))) == 200


def test_to_json() -> None:
    now = datetime(2031, 7, 1, 2, tzinfo=UTC)

    class Odd:
        def __repr__(self) -> str:
            raise ValueError

    job: Job[Any] = Job("i", "f", args=(1, {1, 2}, Odd()), kwargs={"when": now}, enqueued_at=now)
    told = to_json(Page((job,), now), whole=True)
    assert told["now"] == "2031-07-01T02:00:00.000+00:00"
    assert told["items"][0]["args"] == [1, {"$": "set", "v": [1, 2]}, "<Odd>"]
    assert "args" not in to_json(job)
    json.dumps(told)


@pytest.mark.parametrize("wrong", ["5", 2.5, True, None, 0, 1001])
def test_a_limit_that_is_no_number_of_things_is_refused(app: App, wrong: Any) -> None:
    with pytest.raises(BadOption, match="is not possible"):
        app.inspect.jobs(limit=wrong)


@pytest.mark.parametrize(
    ("by", "last"), [(["minute"], 5), ("week", 5), ("minute", "5"), ("day", 2.5), ("day", True)]
)
def test_a_history_of_nothing_is_refused(app: App, by: Any, last: Any) -> None:
    with pytest.raises(BadOption):
        app.inspect.history(by, last=last)


@pytest.mark.parametrize("option", ["name", "error", "tag", "text"])
@pytest.mark.parametrize("wrong", ["", 5, b"x"])
def test_a_filter_of_nothing_is_refused_and_does_not_take_everything(
    app: App, option: str, wrong: Any
) -> None:
    with pytest.raises(BadOption, match=f"{option}="):
        app.inspect.jobs(**{option: wrong})
