"""Retry: the delays of G08, jitter that only adds, and policies that are refused where they are made."""

import json
import logging
import math
import random
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rqlite_jobs.backoff import Retry
from rqlite_jobs.durations import MAX_MS
from rqlite_jobs.errors import BadDuration, BadOption

RNG = random.Random(7)


class Rng(random.Random):
    """Always the same number."""

    def __init__(self, number: float) -> None:
        super().__init__()
        self.number = number

    def random(self) -> float:
        return self.number


def test_g08_delays_stay_at_the_cap_however_large_the_attempt() -> None:
    retry = Retry(1_000_000, base=2, cap="3600s", jitter=False)
    attempts = (1, 2, 3, 10, 11, 12, 47, 100, 1025, 10_000)
    expected = [2, 4, 8, 1024, 2048, 3600, 3600, 3600, 3600, 3600]
    assert [retry.delay_after(n) for n in attempts] == expected
    assert [retry.delay_ms(n, None, RNG) for n in attempts] == [seconds * 1000 for seconds in expected]
    assert retry.delay_after(10**400) == 3600


@given(st.integers(-5, 10**9), st.floats(1, 1e308), st.integers(0, MAX_MS), st.floats(0, 1, exclude_max=True))
def test_no_policy_waits_longer_than_its_cap_or_less_than_its_delay(
    n: int, base: float, cap: int, dice: float
) -> None:
    retry = Retry(base=base, cap=timedelta(milliseconds=cap))
    plain_ms = round(retry.delay_after(n) * 1000)
    assert 0 <= plain_ms <= cap
    assert plain_ms <= retry.delay_ms(n, None, Rng(dice)) <= math.ceil(plain_ms * 1.25)


@pytest.mark.parametrize(
    ("retry", "seconds"),
    [
        (Retry(), [2, 4, 8]),
        (Retry(base=1), [1, 1, 1]),
        (Retry(base=10, cap="30s"), [10, 30, 30]),
        (Retry(cap=0), [0, 0, 0]),
        (Retry(delay="5s", cap="1s"), [5, 5, 5]),
        (Retry(delay=timedelta(seconds=1.5)), [1.5, 1.5, 1.5]),
        (Retry(delay=["1s", 2]), [1, 2, 2]),
        (Retry(delay=lambda n, error: n * 10), [10, 20, 30]),
    ],
)
def test_the_delay_follows_the_policy(retry: Retry, seconds: list[float]) -> None:
    assert [retry.delay_after(n) for n in (1, 2, 3)] == seconds


@pytest.mark.parametrize(
    ("retry", "most"),
    [
        (Retry(), 2500),
        (Retry(jitter=False), 2000),
        (Retry(delay="2s"), 2500),
        (Retry(delay=["2s"]), 2000),
        (Retry(delay=lambda n, error: 2), 2000),
    ],
)
def test_jitter_adds_up_to_a_quarter_to_powers_and_to_a_fixed_delay(retry: Retry, most: int) -> None:
    assert retry.delay_ms(1, None, Rng(0.0)) == 2000
    assert retry.delay_ms(1, None, Rng(1.0)) == most


def test_a_delay_function_sees_the_attempt_and_the_error() -> None:
    seen: list[tuple[int, object]] = []

    def wait(attempt: int, error: BaseException | None) -> str:
        seen.append((attempt, error))
        return "1m"

    error = ValueError("bad data")
    assert Retry(delay=wait).delay_ms(2, error, RNG) == 60_000
    assert seen == [(2, error)]


@pytest.mark.parametrize("answer", [ZeroDivisionError(), "soon", None, math.nan])
def test_a_delay_function_that_fails_is_logged_and_the_job_still_waits(
    answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def wait(attempt: int, error: BaseException | None) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    with caplog.at_level(logging.ERROR):
        assert Retry(delay=wait, jitter=False).delay_ms(3, None, RNG) == 8_000
    assert "delay function" in caplog.text
    with pytest.raises((ZeroDivisionError, BadDuration)):
        Retry(delay=wait).delay_after(1)


def test_only_and_never_choose_the_errors_that_are_worth_another_attempt() -> None:
    assert Retry().wants(ValueError())
    picky = Retry(only=(ConnectionError, TimeoutError), never=BrokenPipeError)
    found = [picky.wants(error) for error in (ConnectionError(), BrokenPipeError(), ValueError())]
    assert found == [True, False, False]
    assert not Retry(never=[ValueError]).wants(UnicodeError())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"max_attempts": 0}, BadOption, "max_attempts=0"),
        ({"max_attempts": True}, BadOption, "max_attempts=True"),
        ({"max_attempts": 2.0}, BadOption, "max_attempts=2.0"),
        ({"base": 0.5}, BadOption, "base=0.5"),
        ({"base": math.nan}, BadOption, "base=nan"),
        ({"base": math.inf}, BadOption, "base=inf"),
        ({"base": "2"}, BadOption, "base='2'"),
        ({"jitter": "no"}, BadOption, "jitter='no'"),
        ({"cap": -1}, BadDuration, "the cap of Retry -1 is negative"),
        ({"cap": "soon"}, BadDuration, "the cap of Retry 'soon'"),
        ({"delay": []}, BadOption, "no duration in it"),
        ({"delay": ["1s", "x"]}, BadDuration, "a delay of Retry 'x'"),
        ({"delay": "x"}, BadDuration, "the delay of Retry 'x'"),
        ({"delay": True}, BadDuration, "the delay of Retry True"),
        ({"only": "ValueError"}, BadOption, "only='ValueError'"),
        ({"never": (ValueError, 5)}, BadOption, "has 5 in it"),
    ],
)
def test_a_senseless_policy_is_refused_where_it_is_made(
    options: Any, error: type[ValueError], says: str
) -> None:
    with pytest.raises(error) as caught:
        Retry(**options)
    assert says in str(caught.value)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("retry", "wire"),
    [
        (Retry(), {}),
        (Retry(7, delay="5s", jitter=False), {"n": 7, "d": 5000, "j": 0}),
        (Retry(delay=["1s", 2, timedelta(milliseconds=1)]), {"d": [1000, 2000, 1]}),
        (Retry(1_000_000, base=1.5, cap="90s"), {"n": 1_000_000, "b": 1.5, "c": 90_000}),
    ],
)
def test_a_policy_travels_with_a_call_as_plain_json(retry: Retry, wire: dict[str, Any]) -> None:
    assert retry.to_wire() == wire
    again = Retry.from_wire(json.loads(json.dumps(wire)))
    for n in (1, 2, 3, 50):
        assert again.delay_after(n) == retry.delay_after(n)
    assert (again.max_attempts, again.jitter) == (retry.max_attempts, retry.jitter)


@pytest.mark.parametrize(
    "retry", [Retry(only=ValueError), Retry(never=ValueError), Retry(delay=lambda n, e: 1)]
)
def test_code_does_not_travel_with_a_call(retry: Retry) -> None:
    with pytest.raises(BadOption, match="travels as data") as caught:
        retry.to_wire()
    assert "declaration" in caught.value.hint


@pytest.mark.parametrize(
    "wire", [{"n": "3"}, {"n": 0}, {"d": "1s"}, {"d": ["x"]}, {"d": {}}, {"b": None}, {"c": None}, {"c": -1}]
)
def test_a_planted_policy_is_refused(wire: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        Retry.from_wire(wire)


def test_equal_policies_are_equal_and_frozen() -> None:
    assert Retry(delay=["1s"]) == Retry(delay=("1s",))
    assert hash(Retry()) == hash(Retry())
    with pytest.raises(AttributeError):
        Retry().base = 3  # type: ignore[misc]
