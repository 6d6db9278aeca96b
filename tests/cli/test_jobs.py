"""`rqj jobs` and `rqj dead`: looking at jobs, and doing something to them."""

import io
import json
from typing import Any

import pytest

from rqlite_jobs.cli.chosen import Chosen
from rqlite_jobs.cli.consent import Consent
from rqlite_jobs.cli.deeds import do
from rqlite_jobs.cli.jobs import CANCEL
from rqlite_jobs.cli.target import resolve
from rqlite_jobs.operations import Settlement
from rqlite_jobs.testing import drain
from tests.cli.conftest import Shop

pytestmark = pytest.mark.lanes("fake", "valkey")


def states(shop: Shop) -> dict[str, str]:
    return {job["id"]: job["state"] for job in shop.json("jobs", "--limit", "1000")["jobs"]}


def test_all_states_in_one_list(shop: Shop) -> None:
    done = shop.enqueue("crunch_sales", 1)
    (dead,) = shop.dead()
    later = shop.app.handler("anything").options(delay="10m").enqueue("x").id
    ready = shop.enqueue("crunch_sales", 2)
    page = shop.json("jobs")
    assert [(job["id"], job["state"]) for job in page["jobs"]] == [
        (ready, "ready"), (later, "scheduled"), (dead, "dead"), (done, "done"),
    ]  # fmt: skip
    assert (page["count"], page["next"]) == (4, None)
    assert [job["id"] for job in shop.json("jobs", "ls", "--state", "done")["jobs"]] == [done]
    assert [job["id"] for job in shop.json("jobs", "--queue", "sales")["jobs"]] == [ready, done]
    assert [job["id"] for job in shop.json("jobs", "--name", "broken")["jobs"]] == [dead]


def test_the_table(shop: Shop) -> None:
    first = shop.enqueue("crunch_sales", 1)
    head, line, row = shop.ok("jobs").splitlines()
    assert head.split() == ["ID", "STATE", "QUEUE", "CALL", "TRIES", "WHEN"]
    assert set(line) == {"\u2500", " "}
    assert row.split()[:5] == [first, "ready", "sales", "crunch_sales(1)", "0"]
    assert row.endswith("s ago")
    assert row == row.rstrip()


def test_filters_on_payloads(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = shop.enqueue("crunch_sales", 1), shop.enqueue("crunch_sales", book_id=2)
    red = shop.app.handler("flaky").options(tags=["night"]).enqueue("ada").id

    def found(*words: str) -> list[str]:
        return [job["id"] for job in shop.json("jobs", "ls", *words)["jobs"]]

    assert found("--arg", "0=1") == [one]
    assert found("--arg", "book_id=1") == []  # without its app nobody knows that name
    assert found("--arg", "book_id=2") == [two]
    monkeypatch.setenv("RQJ_APP", shop.module)
    assert found("--arg", "book_id=1") == found("--arg", "book_id:=1") == [one]
    assert found("--arg", 'book_id:="1"') == found("--arg", "book_id=") == []
    assert found("--arg", "book_id=2", "--name", "crunch_sales", "-q", "sales") == [two]
    assert found("--tag", "night") == found("--text", '"ADA"') == found("--arg", "0=ada") == [red]
    assert found("--arg", "to=ada", "--arg", "colour=Colour.RED") == [red]
    assert shop.json("jobs", "cancel", "-y", one)["count"] == 1
    assert shop.json("jobs", "delete", "-y", "--arg", "book_id=2")["count"] == 1
    assert shop.json("jobs", "delete", "-y", "--tag", "night", "--text", "ada")["count"] == 1
    assert found() == []
    ids = shop.dead(30)
    assert [job["id"] for job in shop.json("dead", "--arg", "text=7")["jobs"]] == [ids[7]]
    monkeypatch.setattr("rqlite_jobs.inspector.questions.SCAN_MAX", 10)
    result = shop.rqj("dead", "--arg", "text=25")
    cursor = result.stderr.split()[-1]
    assert f"1 shown, looked at 10 of 30; the same command goes on with --cursor {cursor}\n" in result.stderr
    result = shop.rqj("dead", "--arg", "text=nobody", "--cursor", cursor)
    assert (result.exit_code, result.stdout) == (0, "No dead jobs so far.\n")
    assert "0 shown, looked at 20 of 30; " in result.stderr
    page = shop.json("dead", "--arg", "text=nobody", "--cursor", result.stderr.split()[-1])
    assert (page["jobs"], page["looked"], page["among"], page["next"]) == ([], 30, 30, None)
    assert shop.json("dead", "delete", "-y", "--arg", "text=25", "--error", "bad")["count"] == 1


def test_why(shop: Shop) -> None:
    waiting, later = (
        shop.enqueue("crunch_sales", 1),
        shop.app.handler("anything").options(delay="10m").enqueue().id,
    )
    result = shop.rqj("jobs", "why", waiting)
    assert (result.exit_code, result.stdout) == (0, f"{waiting} is ready: no worker runs.\n")
    assert result.stderr == "Start one: rqj worker\n"
    assert (
        shop.ok("jobs", "why", later)
        == f"{later} is scheduled: it waits for the time it was given; in 10m.\n"
    )
    assert shop.json("jobs", "why", waiting)["word"] == "no_worker"
    assert shop.rqj("jobs", "why", "nobody").exit_code == 3


@pytest.mark.parametrize(
    "words", [("--arg", "x"), ("--arg", "x:=y"), ("--arg", "x=1", "--arg", "x=2"), ("--arg", "a.b=1")]
)
def test_filters_that_are_none(shop: Shop, words: tuple[str, ...]) -> None:
    result = shop.rqj("jobs", "ls", *words)
    assert (result.exit_code, len(result.stderr.splitlines())) == (2, 2)


def test_pages(shop: Shop) -> None:
    ids = [job.id for job in shop.app.handler("anything").enqueue_many([(n,) for n in range(7)])]
    seen: list[str] = []
    cursor: str | None = ""
    for _ in range(3):
        page = shop.json("jobs", "ls", "--limit", "3", "--cursor", cursor or "")
        seen += [job["id"] for job in page["jobs"]]
        cursor = page["next"]
    assert (seen, cursor) == (ids, None)
    result = shop.rqj("jobs", "--limit", "3")
    cursor = shop.json("jobs", "ls", "--limit", "3")["next"]
    assert f"3 of 7 jobs shown; the same command goes on with --cursor {cursor}\n" in result.stderr


def test_show(shop: Shop) -> None:
    (dead,) = shop.dead()
    told = shop.json("jobs", "show", dead)
    assert (told["state"], told["attempts"], told["last_error"]) == ("dead", 1, "ValueError('bad data 0')")
    assert told["traceback"].endswith("ValueError: bad data 0\n")
    assert told["args"] == ["0"]
    said = shop.ok("dead", "show", dead)
    assert "last error  ValueError('bad data 0')" in said
    assert "\n  ValueError: bad data 0\n" in said


def test_show_tells_of_every_kind_of_value(shop: Shop) -> None:
    id_ = shop.json("enqueue", "-a", shop.module, "read_book", 'book:={"title":"Ulysses","pages":700}')["id"]
    with_app = shop.json("jobs", "show", id_, "-a", shop.module)
    without = shop.json("jobs", "show", id_)
    assert with_app["call"] == "read_book(book=Book(title='Ulysses', pages=700))"
    assert without["call"] == "read_book(book={'title': 'Ulysses', 'pages': 700})"
    assert with_app["kwargs"] == {"book": {"$": "model", "v": {"title": "Ulysses", "pages": 700}}}
    assert without["kwargs"] == {"book": {"title": "Ulysses", "pages": 700}}


@pytest.mark.parametrize(
    "words", [["jobs", "show"], ["dead", "show"], ["jobs", "cancel", "-y"], ["jobs", "delete", "-y"]]
)
def test_an_unknown_id(shop: Shop, words: list[str]) -> None:
    shop.enqueue("anything")
    result = shop.rqj(*words, "nope")
    assert result.exit_code == 3
    assert result.stderr.startswith("rqj: no job has the id 'nope'.\nhint: ")
    assert result.stdout == ""


def test_show_prints_what_it_finds_and_names_what_it_does_not(shop: Shop) -> None:
    (dead,) = shop.dead()
    one = shop.rqj("jobs", "show", "nope", dead)
    assert (one.exit_code, dead in one.stdout) == (3, True)
    assert one.stderr.startswith("rqj: no job has the id 'nope'.\n")
    two = shop.rqj("jobs", "show", "nope", dead, "never", "--json")
    assert two.exit_code == 3
    assert [job["id"] for job in json.loads(two.stdout)] == [dead]
    assert "2 of 3 ids are unknown: nope, never." in two.stderr


@pytest.mark.parametrize("option", ["--text", "--error", "--name", "--tag"])
@pytest.mark.parametrize("verb", ["jobs delete", "dead revive", "dead delete"])
def test_an_empty_filter_does_nothing_to_nobody(shop: Shop, verb: str, option: str) -> None:
    (dead,) = shop.dead()
    result = shop.rqj(*verb.split(), option, "", "--yes")
    assert result.exit_code == 2
    assert "is empty" in result.stderr
    assert shop.json("jobs", "show", dead)["state"] == "dead"


def test_cancel(shop: Shop) -> None:
    id_ = shop.app.handler("crunch_sales").options(delay="1h").enqueue(1).id
    assert shop.ok("jobs", "cancel", "--yes", id_) == f"cancelled {id_}\n"
    assert shop.enqueue("crunch_sales", 1) != id_  # its lock is free
    assert "of a cancelled job only this word is kept" in shop.ok("jobs", "show", id_)
    again = shop.rqj("jobs", "cancel", "--yes", id_)
    assert (again.exit_code, again.stdout) == (1, "")
    assert f"not cancelled: {id_} is cancelled" in again.stderr


def test_each_id_gets_its_word(shop: Shop) -> None:
    ready = shop.enqueue("anything")
    (dead,) = shop.dead(1)
    drain(shop.app)
    other = shop.enqueue("anything", 2)
    result = shop.rqj("jobs", "cancel", "--yes", "--json", ready, dead, "nope", other)
    assert result.exit_code == 3
    told = json.loads(result.stdout)
    assert {one["id"]: one["word"] for one in told["jobs"]} == {
        ready: "done", dead: "dead", "nope": "unknown", other: "cancelled",
    }  # fmt: skip
    assert (told["verb"], told["count"], told["dry_run"]) == ("cancel", 1, False)


def test_ids_from_standard_input(shop: Shop) -> None:
    ids = [shop.enqueue("anything", n) for n in range(3)]
    said = shop.ok("jobs", "delete", "--yes", "-", input="\n".join(ids) + "\n\n" + ids[0])
    assert said == "deleted 3 jobs\n"
    assert states(shop) == {}
    result = shop.rqj("jobs", "delete", "--yes", "-", input="\n")
    assert result.exit_code == 2


@pytest.mark.parametrize(
    ("answer", "code", "left"),
    [("y\n", 0, 0), ("n\n", 7, 2), ("", 7, 2), ("\n", 7, 2)],
    ids=["y", "n", "eof", "enter"],
)
def test_it_asks(shop: Shop, answer: str, code: int, left: int) -> None:
    ids = [shop.enqueue("anything", n) for n in range(2)]
    result = shop.rqj("jobs", "delete", *ids, input=answer)
    assert result.exit_code == code
    assert "Delete 2 ready jobs of namespace 'bookstore' on " in result.stderr
    assert len(states(shop)) == left


def test_a_dry_run_changes_nothing(shop: Shop) -> None:
    shop.dead(3)
    before = states(shop)
    result = shop.rqj("dead", "delete", "--all", "--dry-run")
    assert result.exit_code == 0
    assert "Would delete 3 dead jobs of namespace 'bookstore'" in result.stderr
    told = shop.json("dead", "revive", "--all", "--dry-run")
    assert (told["count"], told["dry_run"]) == (0, True)
    assert {one["word"] for one in told["jobs"]} == {"would be revived"}
    assert states(shop) == before


def test_bury(shop: Shop) -> None:
    id_ = shop.enqueue("anything")
    assert shop.ok("jobs", "bury", "-y", "--reason", "the customer is gone", id_) == f"buried {id_}\n"
    told = shop.json("jobs", "show", id_)
    assert (told["state"], told["last_error"], told["attempts"]) == ("dead", "the customer is gone", 0)


def failed(shop: Shop, count: int) -> list[str]:
    """Jobs that wait for their next attempt."""
    ids = [shop.enqueue("anything", n) for n in range(count)]
    operations = shop.app.operations
    shop.app.run(operations.register("w", 60_000, {}))
    claims = shop.app.run(operations.turn("w", "n" * 11, ["default"], [], count)).claims
    ends = [
        Settlement("retry", one.id, one.token, 3_600_000, error=f"Timeout {at}", traceback="t")
        for at, one in enumerate(claims)
    ]
    shop.app.run(operations.turn("w", "m" * 11, [], ends, 0))
    shop.app.run(operations.leave("w", ["default"]))
    return ids


def test_retry(shop: Shop) -> None:
    ids = failed(shop, 4)
    delayed = shop.app.handler("anything").options(delay="1h").enqueue().id
    assert shop.ok("jobs", "retry", ids[0]) == f"retried {ids[0]}\n"
    result = shop.rqj("jobs", "retry", delayed, "nope")
    assert result.exit_code == 3
    assert f"not retried: {delayed} is delayed; it has not failed" in result.stderr
    assert shop.ok("jobs", "retry", "--yes", "-", input=ids[1]) == f"retried {ids[1]}\n"
    assert (
        "Would retry 1 scheduled job of"
        in shop.rqj("jobs", "retry", "--error", "timeout 2", "--dry-run").stderr
    )
    assert shop.ok("jobs", "retry", "-y", "--error", "timeout 2") == f"retried {ids[2]}\n"
    assert shop.ok("jobs", "retry", "-y", "--all") == f"retried {ids[3]}\n"
    assert shop.ok("jobs", "retry", "-y", "--all") == "No failed jobs.\n"
    assert drain(shop.app) == 4
    assert shop.rqj("jobs", "retry").exit_code == 2
    assert states(shop)[delayed] == "scheduled"


def test_delete_by_state_and_filter(shop: Shop) -> None:
    ids = [shop.enqueue("anything", n) for n in range(3)]
    drain(shop.app)
    other, locked = shop.enqueue("anything"), shop.enqueue("crunch_sales", 1)
    assert shop.ok("jobs", "delete", "-y", "--all", "--state", "done") == f"deleted {len(ids)} jobs\n"
    assert shop.ok("jobs", "delete", "-y", "--queue", "sales") == f"deleted {locked}\n"
    assert shop.ok("jobs", "delete", "-y", "--name", "nobody") == "No job is like that.\n"
    assert list(states(shop)) == [other]
    assert shop.rqj("jobs", "delete", "-y", "--state", "done").exit_code == 2


def test_many_go_in_bounded_steps_with_a_bar_on_a_terminal(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    ids = [shop.enqueue("anything", n) for n in range(250)]
    sent: list[int] = []
    target, drawn = resolve(Chosen(app=shop.module)), Terminal()
    run = target.app.caller.run

    def counted(call: Any, **how: Any) -> Any:
        if call.verb == "cancel":
            sent.append(len([one for one in call.args if one in ids]))
        return run(call, **how)

    monkeypatch.setattr(target.app.caller, "run", counted)
    monkeypatch.setattr("sys.stderr", drawn)
    with pytest.raises(SystemExit) as left:
        do(CANCEL, target, Chosen(), Consent(yes=True), target.inspect.look(ids))
    assert left.value.code == 0
    assert sent == [100, 100, 50]
    assert "cancel" in drawn.getvalue()
    assert "250/250" in drawn.getvalue()


def test_revive_by_id_needs_no_consent(shop: Shop) -> None:
    (dead,) = shop.dead()
    assert shop.ok("dead", "revive", dead) == f"revived {dead}\n"
    told = shop.json("jobs", "show", dead)
    assert (told["state"], told["attempts"], told["last_error"]) == ("ready", 0, None)


def test_all_are_revived_in_the_order_they_came(shop: Shop) -> None:
    ids = shop.dead(250)
    assert shop.ok("dead", "revive", "--all", "--yes") == "revived 250 jobs\n"
    page = shop.json("jobs", "ls", "--state", "ready", "--limit", "1000")
    assert [job["id"] for job in page["jobs"]] == ids
    assert shop.ok("dead") == "No dead jobs.\n"
    assert shop.ok("dead", "revive", "--all", "--yes") == "No dead jobs.\n"


def test_filters(shop: Shop) -> None:
    ids = shop.dead(30)
    drain(shop.app)
    only = shop.json("dead", "--error", "BAD DATA 7")
    assert [job["id"] for job in only["jobs"]] == [ids[7]]
    assert only["count"] is None
    assert shop.ok("dead", "delete", "-y", "--error", "data 7") == f"deleted {ids[7]}\n"
    assert shop.ok("dead", "delete", "-y", "--name", "nobody") == "No dead job is like that.\n"
    assert shop.ok("dead", "delete", "-y", "--queue", "default", "--name", "broken") == "deleted 29 jobs\n"


@pytest.mark.parametrize(
    "words", [[], ["--all", "someid"], ["--all", "--name", "x"], ["someid", "--error", "x"]]
)
def test_which_dead_must_be_said_once(shop: Shop, words: list[str]) -> None:
    shop.dead()
    result = shop.rqj("dead", "delete", "--yes", *words)
    assert result.exit_code == 2
    assert "say which dead jobs to delete" in result.stderr


def test_a_revive_that_meets_another_holder(shop: Shop) -> None:
    holder = shop.enqueue("rejecting")
    twin = shop.enqueue("rejecting")
    result = shop.rqj("dead", "revive", twin)
    assert result.exit_code == 4
    assert f"not revived: {twin} is duplicate; {holder} holds its lock" in result.stderr


def test_an_unknown_queue(shop: Shop) -> None:
    shop.enqueue("crunch_sales", 1)
    for words in (["jobs", "-q", "sale"], ["dead", "-q", "sale"], ["scheduled", "-q", "sale"]):
        result = shop.rqj(*words)
        assert result.exit_code == 3
        assert "Did you mean 'sales'?" in result.stderr


@pytest.mark.parametrize("cursor", ["x", "ready/default/x/0", "ready/nope/0/0", "dead//-1/0", "1"])
def test_a_bad_cursor(shop: Shop, cursor: str) -> None:
    shop.enqueue("anything")
    result = shop.rqj("jobs", "--cursor", cursor or "")
    assert result.exit_code == 2
    assert "is not the cursor of a next page" in result.stderr
