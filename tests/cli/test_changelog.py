"""`rqj changelog`: who did what, on one screen."""

import re

import pytest

from rqlite_jobs.changelog import ACTS
from rqlite_jobs.cli.changelog import _what
from rqlite_jobs.cli.errors import USAGE
from rqlite_jobs.identity import who
from rqlite_jobs.inspector import ChangeRow
from tests.cli.conftest import Shop

pytestmark = pytest.mark.lanes("fake", "valkey")


def test_what_was_done_and_by_whom(shop: Shop) -> None:
    ids = [shop.enqueue("flaky", f"{n}") for n in range(3)]
    shop.ok("jobs", "cancel", "--yes", ids[0])
    shop.ok("jobs", "delete", "--yes", *ids[1:])
    shop.ok("queues", "pause", "mail", "--for", "10m")
    shop.ok("queues", "resume", "mail")
    head, _, *rows = shop.ok("changelog").splitlines()
    assert head.split() == ["WHEN", "ACT", "BY", "JOBS", "WHAT"]
    cells = [re.split(r" {2,}", row.strip()) for row in rows]
    assert [row[1:] for row in cells] == [
        ["resume", who(), "-", "queue mail"],
        ["pause", who(), "-", "queue mail for 10m"],
        ["delete", who(), "2", f"{ids[1]} and 1 more"],
        ["cancel", who(), "1", ids[0]],
    ]
    assert all(re.fullmatch(r"\d+s ago", row[0]) for row in cells)


def test_filters_and_pages(shop: Shop) -> None:
    ids = [shop.enqueue("flaky", f"{n}") for n in range(3)]
    for id in ids:
        shop.ok("jobs", "cancel", "--yes", id)
    shop.ok("queues", "pause", "mail")
    found = shop.json("changelog", "ls", "--act", "cancel", "--limit", "2")
    assert [row["ids"] for row in found["changes"]] == [[ids[2]], [ids[1]]]
    found = shop.json("changelog", "--act", "cancel", "--limit", "2", "--cursor", found["next"])
    assert [row["ids"] for row in found["changes"]] == [[ids[0]]]
    assert (found["next"], found["count"], found["namespace"]) == (None, None, "bookstore")
    assert [row["act"] for row in shop.json("changelog", "--id", ids[1])["changes"]] == ["cancel"]
    result = shop.rqj("changelog", "--limit", "1")
    assert "1 of 4 changes shown" in result.stderr


def test_nothing_and_nonsense(shop: Shop) -> None:
    assert shop.ok("changelog") == "No changes.\n"
    result = shop.rqj("changelog", "--act", "cancle")
    assert (result.exit_code, all(act in result.stderr for act in ACTS)) == (USAGE, True)
    assert shop.rqj("changelog", "--cursor", "x").exit_code == USAGE


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (ChangeRow(None, "pause", "x", queue="mail"), "queue mail until resumed"),
        (ChangeRow(None, "purge", "x", ("a",), 500, queue="mail"), "queue mail"),
        (ChangeRow(None, "bury", "x", ("a",), 1, why="gone"), "a: gone"),
        (ChangeRow(None, "release", "x", ("a",), 1, lock_keys=("k",)), "k, held by a"),
        (
            ChangeRow(None, "release", "x", ("a", "b"), 2, lock_keys=("k", "l"), force=True),
            "k and 1 more, held by a and 1 more, by force",
        ),
        (ChangeRow(None, "reject", "x", ("a",), 1, lock_keys=("k",), other_ids=("b",)), "a: b holds k"),
        (
            ChangeRow(None, "takeover", "x", ("a",), 1, lock_keys=("k",), other_ids=("b",)),
            "a: k was left by b",
        ),
        (ChangeRow(None, "recover", "x", ("a",), 1, workers=("w",)), "from worker w"),
        (
            ChangeRow(None, "recover", "x", ("a",), 9, workers=("w", "v"), crashed=3),
            "from worker w and 1 more, 3 crashed",
        ),
        (ChangeRow(None, "expire", "x", ("a", "b"), 1234), "a and 1,233 more"),
        (ChangeRow(None, "odd", "x"), "-"),
    ],
)
def test_each_act_in_words(row: ChangeRow, said: str) -> None:
    assert _what(row) == said


def test_names_do_not_move_the_cursor(shop: Shop) -> None:
    shop.enqueue("flaky", "a")
    shop.app.control.pause("mail", by="\x1b[31mann" + "x" * 90)
    found = shop.ok("changelog")
    assert "\x1b" not in found
    assert "\\x1b[31mann" in found
    assert "x" * 40 not in found
