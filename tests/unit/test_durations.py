"""Durations and points in time: read exactly, rounded up, and refused when senseless (G11, G12)."""

import math
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rqlite_jobs.durations import MAX_MS, Duration, instant, instant_ms, to_ms, to_text
from rqlite_jobs.errors import BadDuration, BadOption, shown


@pytest.mark.parametrize(
    ("value", "ms"),
    [
        ("250ms", 250), ("30s", 30_000), ("10m", 600_000), ("2h", 7_200_000), ("7d", 604_800_000),
        ("1w", 604_800_000), ("1h30m", 5_400_000), ("1h 30m", 5_400_000), (" 5s ", 5_000), ("1.5s", 1_500),
        ("0.0001s", 1), ("0s", 0),
        (0, 0), (5, 5_000), (0.07, 70), (2.2, 2_200), (1e-9, 1), (0.0, 0), (-0.0, 0),
        (timedelta(seconds=90, microseconds=1), 90_001), (timedelta(days=36_525), MAX_MS),
    ],
)  # fmt: skip
def test_durations_are_read_exactly_and_rounded_up(value: Duration, ms: int) -> None:
    assert to_ms(value) == ms


@pytest.mark.parametrize(
    "value",
    [
        "", " ", "abc", "5", "s", "1x", "1h30", "30m1h", "1m1m", "1 s", "--1s", "1e3s", "inf", "nan", "١s",
        "1s\0", "1" * 200 + "s", math.nan, math.inf, -math.inf, True, False, None, b"1s", [1],
        Decimal(1), 1j, -1, "-1s", timedelta(seconds=-1), "101y", "36526d", 1e300, 10**5000, timedelta.max,
    ],
    ids=lambda value: shown(value, 20),
)  # fmt: skip
def test_what_is_no_duration_is_refused_with_the_forms_that_are(value: object) -> None:
    with pytest.raises(BadDuration) as caught:
        to_ms(value, what="delay")  # type: ignore[arg-type]
    assert caught.value.message.startswith("delay ")
    assert '"1h30m"' in caught.value.hint
    assert len(caught.value.message) < 200


@pytest.mark.parametrize(
    ("value", "ms"),
    [
        (-5, -5_000),
        ("-1h30m", -5_400_000),
        (-1e13, -MAX_MS),
        (timedelta(-1), -86_400_000),
        (timedelta.min, -MAX_MS),
    ],
)
def test_negative_ones_pass_where_they_mean_now(value: Duration, ms: int) -> None:
    assert to_ms(value, signed=True) == ms


@given(st.integers(-MAX_MS, MAX_MS))
def test_text_reads_back_as_what_was_written(ms: int) -> None:
    assert to_ms(to_text(ms), signed=True) == ms


@given(st.integers(0, MAX_MS // 1000 - 1), st.integers(0, 999))
def test_seconds_with_three_decimals_are_never_rounded_away(seconds: int, ms: int) -> None:
    assert to_ms(float(f"{seconds}.{ms:03}")) == seconds * 1000 + ms


def test_text_is_short_and_in_units_people_use() -> None:
    texts = [to_text(ms) for ms in (0, 250, 1_500, 5_400_000, 15_552_000_000)]
    assert texts == ["0s", "250ms", "1s500ms", "1h30m", "180d"]


@pytest.fixture(params=["Australia/Sydney", "UTC", "America/New_York"])
def local_zone(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run a test under a local time zone of the process."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = request.param
    time.tzset()
    yield request.param
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()


@pytest.mark.usefixtures("local_zone")
def test_aware_times_are_one_instant_under_every_local_zone() -> None:
    sydney = ZoneInfo("Australia/Sydney")
    assert instant_ms(datetime.fromisoformat("2031-07-01T02:00:00+00:00")) == 1_940_637_600_000
    assert instant_ms(datetime(2031, 7, 1, 12, tzinfo=sydney)) == 1_940_637_600_000
    assert instant_ms(datetime(2031, 4, 6, 2, 30, tzinfo=sydney)) == 1_933_169_400_000
    assert instant_ms(datetime(2031, 4, 6, 2, 30, fold=1, tzinfo=sydney)) == 1_933_173_000_000


@pytest.mark.usefixtures("local_zone")
@pytest.mark.parametrize("naive", [datetime(2031, 7, 1, 12), datetime(2031, 1, 15, 12)])
def test_naive_times_are_refused_under_every_local_zone(naive: datetime) -> None:
    with pytest.raises(BadOption, match="no zone") as caught:
        instant_ms(naive)
    assert isinstance(caught.value, ValueError)
    assert "tzinfo=UTC" in caught.value.hint


def test_what_lies_before_1970_is_past_and_what_is_no_time_is_refused() -> None:
    assert instant_ms(datetime(1969, 1, 1, tzinfo=UTC)) == 0
    assert instant_ms(datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=UTC)) == 1
    for zone in (UTC, timezone(timedelta(hours=-12))):
        assert instant(instant_ms(datetime.max.replace(tzinfo=zone))).year == 9999  # it can be read back
    for junk in ("2031-07-01", 5, None, timedelta(1)):
        with pytest.raises(BadOption, match="run_at"):
            instant_ms(junk)  # type: ignore[arg-type]
