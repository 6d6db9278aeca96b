"""Data that is out to spoil a terminal, a listing or a reader: planted, huge, malformed, in any script."""

import json
import os
import subprocess
import sys
import time
from typing import Any

import pytest

from rqlite_jobs.operations import Settlement
from tests.cli.conftest import Shop

pytestmark = pytest.mark.lanes("fake", "valkey")

EVIL = "\x1b[2J\x1b]0;title\x07\r\n\u202e\x9b31m\x00\u2028\ud7ff\U000e0001"
READERS = (["jobs"], ["queues"], ["locks"], ["dead"], ["scheduled"], ["workers"], ["stats"])


def plant(shop: Shop, id_: str, record: bytes, list_key: str = "ready:default:0") -> None:
    """Put a record of any kind into Redis, as another program might."""
    client, tag = shop.server.client(), shop.app.keys.tag
    client.sadd("rqj:namespaces", "bookstore")
    client.hset(tag + "queues", "default", "0")
    client.hset(tag + "jobs", id_, record)
    client.lpush(tag + list_key, id_)


def record(payload: bytes, tags: bytes = b"") -> bytes:
    return b"1\0default\0" + b"0\0" + b"1700000000000\0" + tags + b"\0" + payload


def assert_harmless(text: str) -> None:
    """Nothing in it moves a cursor, rings, or turns the direction of writing."""
    assert [char for char in text if not char.isprintable() and char != "\n"] == []


def test_nothing_in_a_job_reaches_the_terminal_raw(shop: Shop) -> None:
    shop.enqueue("anything", EVIL, **{"k": EVIL})
    shop.enqueue("broken", EVIL)
    plant(shop, "id" + EVIL, record(json.dumps(["name" + EVIL, [EVIL]]).encode()))
    plant(
        shop,
        "locked",
        record(b'["f"]', b"md\0kf:" + EVIL.replace("\0", "").encode("utf-8", "replace") + b"\0"),
    )
    for words in (*READERS, ["jobs", "show", "id" + EVIL], ["jobs", "show", "locked"]):
        result = shop.rqj(*words)
        assert result.exit_code == 0, result.output
        assert_harmless(result.stdout + result.stderr)


def test_an_error_of_a_handler_is_escaped(shop: Shop) -> None:
    (dead,) = shop.dead(1, EVIL)
    for words in (["dead"], ["dead", "show", dead], ["jobs", "bury", "-y", dead], ["dead", "--error", EVIL]):
        result = shop.rqj(*words)
        assert_harmless(result.stdout + result.stderr)


def test_what_is_typed_is_escaped_in_errors(shop: Shop) -> None:
    for words in (
        ["jobs", "show", EVIL], ["jobs", "-q", EVIL], ["locks", "show", EVIL], ["queues", "purge", EVIL], [EVIL],
        ["jobs", "-n", EVIL], ["worker", EVIL], ["scripts", "show", EVIL], ["jobs", "--" + EVIL], ["-u", EVIL, "jobs"],
    ):  # fmt: skip
        result = shop.rqj(*words)
        assert result.exit_code in (2, 3, 6)
        assert_harmless(result.stdout + result.stderr)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\xff\xfe",
        b"2\0default\0" + b"0\0" + b"1\0\0[]",
        b"1\0default\0" + b"0\0" + b"99999999999999999999\0\0" + b'["f"]',
        record(b""),
        record(b"not json"),
        record(b"\xff\xff"),
        record(b"[]"),
        record(b'["f",{}]'),
        record(b'["f",[' + b"[" * 5000),
        record(b'["f",[{"$":"datetime","v":"x"}]]'),
        record(b'["crunch_sales",["no number"],{"book_id":1}]'),
        record(b'["f"]', b"md\0"),
        record(b'["f"]', b"k\xff\xff\0md\0"),
    ],
)
def test_a_malformed_record_is_listed_and_can_be_deleted(shop: Shop, raw: bytes) -> None:
    plant(shop, "bad", raw)
    plant(shop, "dying", raw, "dead")
    for words in (*READERS, ["jobs", "show", "bad"], ["jobs", "-a", shop.module], ["doctor"]):
        result = shop.rqj(*words)
        assert result.exit_code == 0, result.output
    assert {job["id"] for job in shop.json("jobs")["jobs"]} == {"bad", "dying"}
    assert shop.ok("jobs", "delete", "-y", "bad") == "deleted bad\n"


@pytest.mark.parametrize(
    "key", ["ready:default:0", "scheduled:default", "dead", "workers", "locks", "queues", "jobs"]
)
def test_a_key_of_a_foreign_type_is_an_error_and_no_traceback(shop: Shop, key: str) -> None:
    shop.enqueue("anything")
    client, tag = shop.server.client(), shop.app.keys.tag
    client.delete(tag + key)
    client.set(tag + key, "a string")
    for words in READERS:
        result = shop.rqj(*words)
        assert result.exit_code in (0, 1), result.output
        assert "Traceback" not in result.output
        if result.exit_code:
            assert len(result.stderr.splitlines()) <= 2
            assert "unexpected" not in result.stderr


def bury(shop: Shop, errors: list[tuple[str, str]]) -> None:
    """Let jobs die with these errors and tracebacks, as a worker would tell them."""
    operations = shop.app.operations
    shop.app.handler("anything").enqueue_many([(n,) for n in range(len(errors))])
    shop.app.run(operations.register("w", 60_000, {}))
    claims = shop.app.run(operations.turn("w", "n" * 11, ["default"], [], len(errors))).claims
    ends = [
        Settlement("bury", claim.id, claim.token, 0, "failed", error, trace)
        for claim, (error, trace) in zip(claims, errors, strict=True)
    ]
    shop.app.run(operations.turn("w", "m" * 11, ["default"], ends, 0))


def test_g09_a_listing_of_huge_errors_stays_small(shop: Shop) -> None:
    huge = "ValueError('" + "x" * 300_000 + "')"  # more than a worker would send
    bury(shop, [(huge, huge)] * 20)
    page = shop.json("dead")
    assert len(page["jobs"]) == 20
    assert all(job["last_error"].startswith("ValueError('xxx") for job in page["jobs"])
    for words in (["dead"], ["dead", "--json"], ["jobs"], ["jobs", "--json"]):
        assert len(shop.ok(*words).encode()) < 200_000
    assert max(map(len, shop.ok("dead").splitlines())) < 400


def test_g10_a_page_of_large_payloads_is_small_and_quick(shop: Shop) -> None:
    shop.app.handler("anything").enqueue_many([("x" * 250_000, n) for n in range(20)])
    for words in (["jobs"], ["jobs", "--json"], ["jobs", "--name", "anything"]):
        began_s = time.monotonic()
        said = shop.ok(*words)
        assert time.monotonic() - began_s < 1
        assert len(said.encode()) < 50_000
        assert said.count("anything('xxx") == 20


def test_g24_names_in_any_script(shop: Shop) -> None:
    app = shop.app

    @app.job(name="gr\u00f6\u00dfe", queue="\u043e\u0447\u0435\u0440\u0435\u0434\u044c")
    def sized(text: str) -> None: ...

    id_ = sized.enqueue("\u2603\x00\U0001d518").id
    said = shop.ok("jobs")
    assert "\u043e\u0447\u0435\u0440\u0435\u0434\u044c" in said
    assert "gr\u00f6\u00dfe('\u2603\\x00\U0001d518')" in said
    assert shop.json("jobs", "show", id_)["args"] == ["\u2603\x00\U0001d518"]
    assert shop.ok("queues", "purge", "-y", "\u043e\u0447\u0435\u0440\u0435\u0434\u044c").startswith(
        "deleted 1 job"
    )


@pytest.mark.lanes("valkey")
@pytest.mark.parametrize(
    "extra",
    [{}, {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, {"PYTHONIOENCODING": "latin-1"}],
    ids=["utf-8", "ascii", "latin-1"],
)
def test_g24_under_the_c_locale(shop: Shop, extra: dict[str, str]) -> None:
    shop.enqueue("anything", "\u2603 gr\u00f6\u00dfe \u043e\u0448\u0438\u0431\u043a\u0430")
    shop.dead(1, "\u043e\u0448\u0438\u0431\u043a\u0430")
    environ: dict[str, Any] = {**os.environ, "LC_ALL": "C", "PYTHONPATH": os.pathsep.join(sys.path), **extra}
    for words in (
        ["jobs"],
        ["dead"],
        ["jobs", "--json"],
        ["jobs", "show", "\u2603"],
        ["jobs", "-q", "\u2603"],
    ):
        done = subprocess.run(
            [sys.executable, "-m", "rqlite_jobs.cli", *words], env=environ, capture_output=True, check=False
        )
        assert done.returncode == (3 if "\u2603" in words else 0), done.stderr
        assert b"Traceback" not in done.stderr
