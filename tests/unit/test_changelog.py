"""The changelog as users read it: rows, pages, filters, and whose name stands in it."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from rqlite_jobs import App, BadOption, until_executed
from rqlite_jobs.identity import BY_MAX, named, who
from rqlite_jobs.inspector import ChangeRow, to_json
from rqlite_jobs.inspector.questions import SCAN_MAX
from rqlite_jobs.testing import FrozenClock, isolated

pytestmark = pytest.mark.lanes("fake", "valkey")


def plain(n: int = 0) -> None: ...


def test_rows(app: App) -> None:
    begin = datetime.fromtimestamp(1_900_000_000, UTC)
    clock = FrozenClock(1_900_000_000)
    with isolated(app, clock=clock):
        handler = app.job(queue="mail", lock=until_executed(key="k", on_conflict="reject"))(plain)
        held = handler.enqueue()
        rejected = handler.enqueue()
        control = app.control
        control.pause("mail", for_="10m", by="ann")
        control.pause("mail", by="bob")
        control.resume("mail", by="bob")
        control.release("plain:k", force=True, by="ann")
        clock.advance("1s")
        control.delete([held.id, rejected.id], by="ann")
        control.delete(held.id, by="ann")  # nothing was changed
        page = app.inspect.changelog()
        later = datetime.fromtimestamp(1_900_000_001, UTC)
        # The act that lies in another stream comes where its time puts it.
        assert sorted(page.items, key=lambda row: row.act) == [
            ChangeRow(later, "delete", "ann", (held.id, rejected.id), 2),
            ChangeRow(begin, "pause", "bob", queue="mail"),
            ChangeRow(begin, "pause", "ann", queue="mail", for_ms=600_000),
            ChangeRow(begin, "reject", "enqueue", (rejected.id,), 1, None, ("plain:k",), (held.id,)),
            ChangeRow(begin, "release", "ann", (held.id,), 1, None, ("plain:k",), force=True),
            ChangeRow(begin, "resume", "bob", queue="mail"),
        ]
        assert (page.now, page.count, page.next) == (later, 6, "")
        assert page.items[0].act == "delete"
        assert to_json(page.items[0])["at"] == "2030-03-17T17:46:41.000+00:00"
        assert [row.act for row in app.inspect.changelog(id=held.id)] == ["delete", "release", "reject"]


def test_recovery_and_burial(app: App) -> None:
    clock = FrozenClock(0)
    with isolated(app, clock=clock):
        job = app.job(plain).enqueue()
        app.run(app.operations.register("w1", 1000, {}))
        app.run(app.operations.turn("w1", "n" * 11, ["default"], [], 1))
        clock.advance("2s")
        app.run(app.operations.recover(1, by="ann"))
        buried, recovered = app.inspect.changelog()
        assert (recovered.act, recovered.ids, recovered.workers, recovered.crashed) == (
            "recover", (job.id,), ("w1",), 1,
        )  # fmt: skip
        assert (buried.act, buried.ids, buried.why, buried.by) == ("bury", (job.id,), "crashed", "ann")


def test_every_act_takes_a_name(app: App) -> None:
    handler = app.job(queue="mail")(plain)
    dead, waits, _ = (handler.enqueue().id for _ in range(3))
    app.run(app.operations.bury([dead], "why", by="x bury"))
    control = app.control
    control.revive(dead, by="x revive")
    control.cancel(dead, by="x cancel")
    control.delete(waits, by="x delete")
    control.pause("mail", by="x pause")
    control.resume("mail", by="x resume")
    control.purge("mail", by="x purge")
    app.run(app.operations.register("w1", 1, {}))
    app.run(app.operations.recover(3, ["w1"], by="x recover"))
    acts = [(row.act, row.by) for row in app.inspect.changelog()]
    assert acts == [
        (act, f"x {act}")
        for act in ("recover", "purge", "resume", "pause", "delete", "cancel", "revive", "bury")
    ]


def test_without_a_name_it_is_this_process(app: App) -> None:
    handler = app.job(plain)
    handler.enqueue().cancel()
    app.cancel_job(handler.enqueue().id)
    app.control.cancel(handler.enqueue().id)
    assert [row.by for row in app.inspect.changelog()] == [who()] * 3


def test_a_name_is_text_and_bounded(app: App) -> None:
    assert named(" ann ") == "ann"
    assert named("  ") == named(None) == who()
    assert named("x" * 1000) == "x" * BY_MAX
    with pytest.raises(BadOption, match="by=7 is an int, not text") as caught:
        app.control.pause("mail", by=7)  # type: ignore[arg-type]
    assert caught.value.option == "by"


def all_pages(app: App, limit: int, **wanted: Any) -> list[ChangeRow]:
    seen: list[ChangeRow] = []
    cursor = ""
    while True:
        page = app.inspect.changelog(limit=limit, cursor=cursor, **wanted)
        assert len(page) <= limit
        seen += page
        if not page.next:
            return seen
        cursor = page.next


@pytest.mark.parametrize("limit", [1, 4, 1000])
def test_pages(app: App, limit: int) -> None:
    handler = app.job(queue="mail")(plain)
    ids = [handler.enqueue().id for _ in range(9)]
    for n, id in enumerate(ids):
        app.control.cancel(id, by=f"ann {n}")
        app.control.pause("mail", by=f"bob {n}")
    assert [row.ids[0] for row in all_pages(app, limit, act="cancel")] == ids[::-1]
    assert [row.by for row in all_pages(app, limit, id=ids[3])] == ["ann 3"]
    assert all_pages(app, limit, act="pause", id=ids[3]) == []
    assert [row.by.partition(" ")[0] for row in all_pages(app, limit)] == ["bob", "ann"] * 9
    assert len(asyncio.run(app.inspect.achangelog(act="cancel", limit=3))) == 3


def test_a_filter_looks_at_ten_thousand_lines(real_app: App) -> None:
    app = real_app
    app.set_flags(changelog_max=20_000)
    app.job(queue="mail")(plain).enqueue().cancel()
    for _ in range(SCAN_MAX):
        app.run(app.operations.pause("mail", 0, "ann"))
    page = app.inspect.changelog(act="cancel")
    assert (page.items, page.count) == ((), None)
    page = app.inspect.changelog(act="cancel", cursor=page.next)
    assert (len(page), page.next) == (1, "")


def test_what_is_refused(app: App) -> None:
    with pytest.raises(BadOption, match="id='' is no id"):
        app.inspect.changelog(id="")
    with pytest.raises(BadOption, match="the changelog tells of no 'cancle'") as caught:
        app.inspect.changelog(act="cancle")
    assert caught.value.hint == "Did you mean 'cancel'?"
    for cursor in ("x", "1-1", "1-1x", "1-1c\n", "c", "-c"):
        with pytest.raises(BadOption, match="is not the cursor"):
            app.inspect.changelog(cursor=cursor)
    for limit in (0, 1001):
        with pytest.raises(BadOption, match=f"limit={limit}"):
            app.inspect.changelog(limit=limit)


def test_lines_that_are_not_ours(app: App) -> None:
    app.caller.command("XADD", app.keys.fixed("events"), "*", "act", "x", "at", "9" * 30, "count", "many")
    assert app.inspect.changelog().items == (ChangeRow(None, "x", ""),)
