"""`rqj jobs wait`, and what `rqj jobs show` tells of results and progress."""

import io
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rqlite_jobs import current_job
from rqlite_jobs.cli.awaited import await_job
from rqlite_jobs.cli.chosen import Chosen
from rqlite_jobs.cli.target import resolve
from rqlite_jobs.errors import Unreachable
from rqlite_jobs.inspector import Inspector
from rqlite_jobs.testing import drain
from tests.cli.conftest import Shop
from tests.worker.site import until

pytestmark = pytest.mark.lanes("fake", "valkey")


class Terminal(io.StringIO):
    """A stderr that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def later() -> Iterator[Callable[[Callable[[], bool], Callable[[], object]], None]]:
    """Does something in a thread once something is so."""
    threads: list[threading.Thread] = []
    failed: list[BaseException] = []

    def start(met: Callable[[], bool], act: Callable[[], object]) -> None:
        def run() -> None:
            try:
                until(met, "it is so")
                act()
            except BaseException as error:
                failed.append(error)

        threads.append(threading.Thread(target=run))
        threads[-1].start()

    yield start
    for thread in threads:
        thread.join(20)
    assert not failed


def waits(shop: Shop, id: str) -> bool:
    """Is the server asked to tell somebody of the end of this job?"""
    return shop.app.caller.command("HEXISTS", "rqj:{bookstore}:waiters", id) == 1


def test_one_that_is_done(shop: Shop) -> None:
    id, none = shop.enqueue("crunch_sales", 42), shop.enqueue("anything")
    drain(shop.app)
    result = shop.rqj("jobs", "wait", id)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "42.0\n", "")
    assert shop.json("jobs", "wait", id, "-a", shop.module) == {
        "namespace": "bookstore", "id": id, "state": "done", "kept": True, "result": 42.0
    }  # fmt: skip
    assert shop.ok("jobs", "wait", none) == "null\n"


def test_it_is_woken_when_the_job_ends(shop: Shop, later: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    id = shop.enqueue("crunch_sales", 7)
    later(lambda: waits(shop, id), lambda: drain(shop.app))
    asked: list[str] = []
    read = Inspector.job
    monkeypatch.setattr(Inspector, "job", lambda self, id: asked.append(id) or read(self, id))
    assert shop.ok("jobs", "wait", id, "--timeout", "20s") == "7.0\n"
    assert asked == [id]  # once, before it waits: nothing is polled where no bar is drawn


@pytest.mark.parametrize("said", ["it was cancelled", "it was deleted", "is dead: why not"])
def test_one_that_ends_otherwise(shop: Shop, later: Any, said: str) -> None:
    id = shop.enqueue("crunch_sales", 7)
    ops = shop.app.operations
    acts = {"cancelled": ops.cancel([id]), "deleted": ops.delete([id]), "dead": ops.bury([id], "why not")}
    (call,) = (call for word, call in acts.items() if word in said)
    later(lambda: waits(shop, id), lambda: shop.app.run(call))
    result = shop.rqj("jobs", "wait", id)
    assert (result.exit_code, result.stdout) == (1, "")
    assert said in result.stderr


def test_one_that_is_dead_and_one_that_was_cancelled(shop: Shop) -> None:
    (dead,) = shop.dead()
    result = shop.rqj("jobs", "wait", dead)
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"rqj: job {dead} (broken) is dead: ValueError('bad data 0')" in result.stderr
    told = json.loads(shop.rqj("jobs", "wait", dead, "--json").stderr)["error"]
    assert (told["type"], told["job_id"], told["exit_code"]) == ("JobFailed", dead, 1)
    cancelled = shop.enqueue("anything")
    shop.app.cancel_job(cancelled)
    assert shop.rqj("jobs", "wait", cancelled).exit_code == 1


def test_g31_e_an_id_that_never_was(shop: Shop) -> None:
    for verb in ("wait", "show"):
        result = shop.rqj("jobs", verb, "nobody")
        assert (result.exit_code, result.stdout) == (3, "")
        assert "no job has the id 'nobody'" in result.stderr
    waiting = shop.enqueue("anything")
    assert shop.json("jobs", "show", waiting)["state"] == "ready"


def test_one_that_has_not_ended_in_time(shop: Shop) -> None:
    id = shop.enqueue("anything")
    result = shop.rqj("jobs", "wait", id, "--timeout", "50ms")
    assert (result.exit_code, result.stdout) == (5, "")
    assert "has not ended within 50ms" in result.stderr
    assert shop.rqj("jobs", "wait", id, "-t", "0.05").exit_code == 5
    assert shop.rqj("jobs", "wait", id, "-t", "soon").exit_code == 2
    assert shop.rqj("jobs", "wait").exit_code == 2


def test_one_whose_result_is_not_kept(shop: Shop) -> None:
    id = shop.app.handler("crunch_sales").options(result_ttl=0).enqueue(1).id
    drain(shop.app)
    result = shop.rqj("jobs", "wait", id)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.startswith(f"Job {id} is done, and its result is not kept")
    assert shop.json("jobs", "wait", id)["kept"] is False


def test_who_waits_is_handed_what_is_not_kept(shop: Shop, later: Any) -> None:
    id = shop.app.handler("crunch_sales").options(result_ttl=0).enqueue(1).id
    later(lambda: waits(shop, id), lambda: drain(shop.app))
    assert shop.ok("jobs", "wait", id) == "1.0\n"


def test_interrupted(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*args: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("rqlite_jobs.cli.awaited.ending_of", interrupt)
    result = shop.rqj("jobs", "wait", shop.enqueue("anything"))
    assert (result.exit_code, result.stderr.strip()) == (130, "rqj: interrupted.")


def test_a_bar_on_a_terminal(shop: Shop, later: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = threading.Event()

    @shop.app.job
    def told() -> None:
        current_job().progress(0.4, "pages \x1b[31m")
        seen.wait(20)

    id, drawn = told.enqueue().id, Terminal()
    target = resolve(Chosen(app=shop.module))
    read, reads = Inspector.job, []

    def away(inspector: Inspector, id: str) -> Any:
        reads.append(id)
        if len(reads) == 3:
            raise Unreachable("away")
        found = read(inspector, id)
        if found.progress:
            seen.set()
        return found

    monkeypatch.setattr(Inspector, "job", away)
    monkeypatch.setattr("sys.stderr", drawn)
    later(lambda: waits(shop, id), lambda: drain(shop.app))
    await_job(target, Chosen(), id, "20s")
    shown = drawn.getvalue()
    assert "told" in shown
    assert "40% pages \\x1b[31m" in shown
    assert len(reads) < 20


def test_show_tells_the_result(shop: Shop) -> None:
    ids = {ttl: shop.app.handler("crunch_sales").options(result_ttl=ttl).enqueue(at).id
           for at, ttl in enumerate((None, 0, "1h", "forever"))}  # fmt: skip
    nothing = shop.enqueue("anything")
    drain(shop.app)
    told = {ttl: shop.json("jobs", "show", id) for ttl, id in ids.items()}
    assert {ttl: (one["kept"], one["result"]) for ttl, one in told.items()} == {
        None: (True, 0.0), 0: (False, None), "1h": (True, 2.0), "forever": (True, 3.0)
    }  # fmt: skip
    assert [ttl for ttl, one in told.items() if one["result_expires_at"]] == ["1h"]
    assert "result    0.0" in shop.ok("jobs", "show", ids[None])
    assert "result    (not kept)" in shop.ok("jobs", "show", ids[0])
    assert "UTC (in " in shop.ok("jobs", "show", ids["1h"]).partition("kept until")[2]
    assert "result" not in shop.ok("jobs", "show", nothing)
    assert shop.json("jobs", "show", nothing)["result"] is None
    assert "kept" not in shop.json("jobs", "show", shop.enqueue("anything"))


def test_show_tells_how_far_a_job_is(shop: Shop) -> None:
    seen: list[Any] = []

    @shop.app.job
    def told() -> None:
        current_job().progress(0.4, "pages")
        seen.append(shop.ok("jobs", "show", current_job().id))
        seen.append(shop.json("jobs", "show", current_job().id)["progress"])

    told.enqueue()
    drain(shop.app)
    assert "progress  40% pages" in seen[0]
    assert (seen[1]["value"], seen[1]["text"]) == (0.4, "pages")
    assert seen[1]["at"].endswith("+00:00")
