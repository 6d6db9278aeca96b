"""Text and times as a terminal shows them."""

from datetime import UTC, datetime, timedelta

import pytest

from rqlite_jobs.cli import times
from rqlite_jobs.cli.text import count, cut, plain, plain_lines, readable

NOW = datetime(2031, 7, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("gr\u00f6\u00dfe \u2603 \u65e5\u672c \U0001f600", "gr\u00f6\u00dfe \u2603 \u65e5\u672c \U0001f600"),
        ("a\x1b[31mb", "a\\x1b[31mb"),
        ("\r\n\t\x00\x7f\x9b", "\\r\\n\\t\\x00\\x7f\\x9b"),
        ("\u202eevil\u2066\u200b", "\\u202eevil\\u2066\\u200b"),
        ("\ud800", "\\ud800"),
        ("\U000e0001", "\\U000e0001"),
    ],
)
def test_plain(raw: str, shown: str) -> None:
    assert plain(raw) == shown


def test_plain_lines_keeps_lines_and_nothing_else() -> None:
    assert plain_lines("one\n\ttwo\x1b\r\nthree\x0bfour") == "one\n    two\\x1b\nthree\nfour"


@pytest.mark.parametrize(
    ("text", "limit", "shown"), [("abc", 3, "abc"), ("abcd", 3, "..."), ("abcdef", 5, "ab...")]
)
def test_cut(text: str, limit: int, shown: str) -> None:
    assert cut(text, limit) == shown


def test_cut_never_gets_longer_by_escaping() -> None:
    assert len(cut("\x1b" * 100, 20)) == 20


def test_count() -> None:
    assert [count(1, "job"), count(0, "job"), count(1234, "job")] == ["1 job", "0 jobs", "1,234 jobs"]


def test_words_that_the_locale_did_not_know() -> None:
    assert readable("\u2603".encode().decode("ascii", "surrogateescape")) == "\u2603"
    assert readable("plain") == "plain"
    assert readable("\udcff") == "\ufffd"


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0s"),
        (59, "59s"),
        (60, "1m"),
        (75, "1m15s"),
        (3600, "1h"),
        (3605, "1h"),
        (5400, "1h30m"),
        (90_000, "1d1h"),
    ],
)
def test_span(seconds: int, shown: str) -> None:
    assert times.span(seconds) == shown


def test_ages_are_never_negative_and_what_is_to_come_is_never_early() -> None:
    assert times.ago(NOW - timedelta(seconds=75), NOW) == "1m15s ago"
    assert times.ago(NOW + timedelta(seconds=5), NOW) == "0s ago"
    assert times.until(NOW + timedelta(milliseconds=10), NOW) == "in 1s"
    assert times.until(NOW, NOW) == "due"
    assert times.ago(None, NOW) == times.until(None, NOW) == times.lasted(None, NOW) == "-"


def test_moments() -> None:
    assert times.moment(NOW - timedelta(minutes=5), NOW) == "2031-07-01 11:55:00 UTC (5m ago)"
    assert times.moment(NOW + timedelta(minutes=5), NOW) == "2031-07-01 12:05:00 UTC (in 5m)"
    assert times.lasted(NOW, NOW + timedelta(milliseconds=250)) == "250ms"
    assert times.lasted(NOW, NOW + timedelta(seconds=90)) == "1m30s"
