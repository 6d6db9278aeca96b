"""`rqj enqueue`: arguments as they are typed, and every answer."""

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID

import click
import pytest

from rqlite_jobs.cli.arguments import from_json, from_text
from tests.cli.conftest import Shop

pytestmark = pytest.mark.lanes("fake", "valkey")


def call(shop: Shop, *words: str) -> Any:
    """Enqueue with `--json`, and read the job back in Python."""
    id_ = shop.json("enqueue", "-a", shop.module, *words)["id"]
    job = shop.app.job_by_id(id_)
    return job.args, dict(job.kwargs)


def test_an_id_an_end_and_tags(shop: Shop) -> None:
    words = (
        "enqueue",
        "-a",
        shop.module,
        "--id",
        "night 1",
        "--expires-in",
        "1h",
        "--tag",
        "a",
        "--tag",
        "b",
        "anything",
    )
    told = shop.json(*words)
    assert (told["id"], told["outcome"], told["tags"]) == ("night 1", "enqueued", ["a", "b"])
    assert shop.json(*words)["outcome"] == "duplicate"
    assert shop.ok(*words) == "duplicate: a job night 1 is known already, and is ready\n"
    assert "expires_in" in refused(shop, "--expires-in", "0", "anything")
    assert "no braces" in refused(shop, "--id", "{", "anything")


def refused(shop: Shop, *words: str, code: int = 2) -> str:
    """What an enqueue says that is refused; nothing of it is stored."""
    before = set(shop.server.client().keys("*"))
    result = shop.rqj("enqueue", "-a", shop.module, *words)
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert set(shop.server.client().keys("*")) == before
    return result.stderr


def test_text_becomes_what_the_annotation_says(shop: Shop) -> None:
    assert call(shop, "crunch_sales", "book_id=42") == ((), {"book_id": 42})
    _, kwargs = call(shop, "flaky", "to=42", "colour=red", "when=2031-07-01T02:00:00Z")
    assert kwargs["to"] == "42"
    assert kwargs["colour"].name == "RED"
    assert kwargs["when"] == datetime(2031, 7, 1, 2, tzinfo=UTC)


def test_text_without_an_annotation_stays_text(shop: Shop) -> None:
    assert call(shop, "anything", "n=42", "empty=", "eq=a=b") == ((), {"n": "42", "empty": "", "eq": "a=b"})


def test_json(shop: Shop) -> None:
    assert call(shop, "anything", 'a:={"x":[1,null,true]}', f"big:={2**70}", "f:=1.0") == (
        (),
        {"a": {"x": [1, None, True]}, "big": 2**70, "f": 1.0},
    )
    _, kwargs = call(shop, "read_book", 'book:={"title":"Ulysses","pages":700}')
    assert (type(kwargs["book"]).__name__, kwargs["book"].pages) == ("Book", 700)


def test_args_json(shop: Shop) -> None:
    assert call(shop, "crunch_sales", "--args-json", "[42]") == ((42,), {})
    assert call(shop, "anything", "--args-json", '[1,"two"]', "three:=3") == ((1, "two"), {"three": 3})


@pytest.mark.parametrize(
    ("text", "hint", "value"),
    [
        ("42", int, 42),
        ("-1.5", float, -1.5),
        ("true", bool, True),
        ("0", bool, False),
        ("42", str, "42"),
        ("42", str | None, "42"),
        ("42", int | None, 42),
        ("null", int | None, None),
        ("42", Annotated[int, "of a book"], 42),
        ("2031-01-02", date, date(2031, 1, 2)),
        ("1.10", Decimal, Decimal("1.10")),
        ("90s", timedelta, timedelta(seconds=90)),
        ("8d8c7d5e-5d0e-4c3b-9f0a-0d3b2f6f3c11", UUID, UUID("8d8c7d5e-5d0e-4c3b-9f0a-0d3b2f6f3c11")),
        ("\u2603", bytes, "\u2603".encode()),
        ("42", None, "42"),
        ("42", Any, "42"),
        ("b", Literal["a", "b"], "b"),
    ],
)
def test_from_text(text: str, hint: Any, value: Any) -> None:
    found = from_text("x", text, hint)
    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize(
    ("text", "hint", "value"),
    [
        ("[1, 2]", tuple[int, ...], (1, 2)),
        ("[1, 1]", set[int], {1}),
        ("1", float, 1.0),
        ('"2031-01-02"', date, date(2031, 1, 2)),
        ("[1]", None, [1]),
        ("[1]", Any, [1]),
    ],
)
def test_from_json(text: str, hint: Any, value: Any) -> None:
    found = from_json("x", text, hint)
    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize(
    "hint", [int, float, bool, date, timedelta, Decimal, UUID, list[int], dict[str, int]]
)
def test_text_that_makes_nothing_is_refused(hint: Any) -> None:
    with pytest.raises(click.UsageError, match="argument 'x' is declared as"):
        from_text("x", "junk", hint)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["crunch_sales", "book_id=x"], 2, "argument 'book_id' is declared as int, and 'x' makes none"),
        (["crunch_sales", 'book_id:="x"'], 2, "argument 'book_id' is declared as int"),
        (["crunch_sales"], 2, "job 'crunch_sales' needs argument 'book_id'"),
        (["crunch_sales", "book_id=1", "x=2"], 2, "job 'crunch_sales' has no argument 'x'"),
        (["crunch_sales", "42"], 2, "'42' is neither name=text nor name:=json"),
        (["anything", "n=1", "n=2"], 2, "argument 'n' is given twice"),
        (["anything", "n:={"], 2, "is no JSON"),
        (["anything", "--args-json", "{}"], 2, "--args-json takes a JSON list"),
        (["flaky", "to=x", "colour=blue"], 2, "argument 'colour' is declared as Colour"),
        (["anything", "--delay", "soon"], 2, "is not a duration"),
        (["anything", "--delay", "5s", "--run-at", "2031-07-01T12:00Z"], 2, "run_at"),
        (["anything", "--run-at", "tomorrow"], 2, "--run-at 'tomorrow' is no time"),
        (["anything", "--run-at", "2031-07-01T12:00"], 2, "has no zone"),
        (["anything", "-q", "a b"], 2, "cannot be the name of a queue"),
        (["crunch_sale", "book_id=1"], 3, "has no job 'crunch_sale'"),
        (["anything", "x=" + "x" * 300_000], 1, "payload_max is 262,144"),
    ],
)
def test_what_is_refused(shop: Shop, words: list[str], code: int, said: str) -> None:
    told = refused(shop, *words, code=code)
    assert said in told
    assert len(told) < 1500
    assert len(told.splitlines()) == 2


def test_without_an_app(shop: Shop) -> None:
    result = shop.rqj("enqueue", "crunch_sales")
    assert result.exit_code == 2
    assert "-a MODULE:APP, or RQJ_APP" in result.stderr


def test_the_app_may_come_from_the_environment(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RQJ_APP", f"{shop.module}:app")
    assert shop.ok("enqueue", "anything").startswith("enqueued ")


def test_a_duplicate_is_an_answer(shop: Shop) -> None:
    first = shop.json("enqueue", "-a", shop.module, "crunch_sales", "book_id=1")
    second = shop.json("enqueue", "-a", shop.module, "crunch_sales", "book_id=1")
    assert (first["outcome"], first["state"], first["holder_id"]) == ("enqueued", "ready", None)
    assert (second["outcome"], second["id"], second["holder_id"]) == ("duplicate", first["id"], first["id"])
    said = shop.ok("enqueue", "-a", shop.module, "crunch_sales", "book_id=1")
    assert said == f"duplicate: {first['id']} holds the lock, and is ready\n"


def test_raise_is_a_conflict(shop: Shop) -> None:
    holder = shop.enqueue("strict")
    result = shop.rqj("enqueue", "-a", shop.module, "strict", "--json")
    assert result.exit_code == 4
    assert json.loads(result.stderr)["error"]["holder_id"] == holder


def test_rejected(shop: Shop) -> None:
    holder = shop.enqueue("rejecting")
    said = shop.ok("enqueue", "-a", shop.module, "rejecting")
    assert said.startswith("rejected: ")
    assert said.endswith(f"is among the dead, for {holder} holds the lock\n")


@pytest.mark.parametrize(
    ("words", "state"),
    [
        (["--delay", "10m"], "scheduled"),
        (["--delay", "600"], "scheduled"),
        (["--delay", "0"], "ready"),
        (["--delay", "-5"], "ready"),
        (["--run-at", "2131-07-01T12:00+02:00"], "scheduled"),
        (["--run-at", "1969-01-01T00:00Z"], "ready"),
    ],
)
def test_when(shop: Shop, words: list[str], state: str) -> None:
    told = shop.json("enqueue", "-a", shop.module, "anything", "-q", "slow", *words)
    assert (told["state"], told["queue"]) == (state, "slow")
