"""What the server is told of an ending."""

import asyncio
import random
from typing import Any

import pytest

from rqlite_jobs import Bury, Retry, RetryIn, Snooze
from rqlite_jobs.operations import Settlement
from rqlite_jobs.worker import outcome
from tests.worker.parts import claim

NO_JITTER = Retry(3, jitter=False)


def raised(error: BaseException, retry: Retry = NO_JITTER, **facts: Any) -> Settlement:
    return outcome.raised(claim("a", **facts), error, retry, random.Random(1))


def test_what_returned_is_done() -> None:
    assert outcome.done(claim("a", 5)) == Settlement("done", "a", "5-nonce")


@pytest.mark.parametrize(
    ("attempts", "crashes", "word", "delay_ms"),
    [
        (0, 0, "retry", 2000),
        (1, 0, "retry", 4000),
        (2, 0, "bury", 0),
        (9, 0, "bury", 0),
        (2, 1, "retry", 4000),
        (2, 2, "retry", 2000),
        (4, 2, "bury", 0),
    ],
)
def test_a_failure_is_tried_again_and_crashes_use_up_nothing(
    attempts: int, crashes: int, word: str, delay_ms: int
) -> None:
    found = raised(ValueError("x"), attempts=attempts, crashes=crashes)
    assert (found.word, found.delay_ms, found.error) == (word, delay_ms, "ValueError('x')")
    assert found.reason == ("failed" if word == "bury" else "")
    assert found.traceback.endswith("ValueError: x\n")


def test_snooze_says_nothing_of_an_error() -> None:
    assert raised(Snooze("10m"), attempts=50) == Settlement("snooze", "a", "1-nonce", 600_000)


def test_bury_has_the_reason_of_the_handler_bounded() -> None:
    found = raised(Bury("r" * 100_000))
    assert (found.word, found.reason) == ("bury", "buried")
    assert len(found.error) <= 4096
    assert found.traceback


@pytest.mark.parametrize(("attempts", "word"), [(0, "retry"), (1, "retry"), (2, "bury")])
def test_retry_in_keeps_to_the_number_of_attempts(attempts: int, word: str) -> None:
    found = raised(RetryIn("30s"), attempts=attempts)
    assert (found.word, found.delay_ms) == (word, 30_000 if word == "retry" else 0)


def test_retry_in_is_wanted_whatever_a_policy_picks() -> None:
    assert raised(RetryIn(1), Retry(3, only=KeyError)).word == "retry"


def test_a_handler_that_cancels_itself_has_failed() -> None:
    assert raised(asyncio.CancelledError(), Retry(3, only=KeyError)).word == "retry"


def test_what_a_policy_does_not_want_dies_at_once() -> None:
    assert raised(ValueError(), Retry(3, only=KeyError)).word == "bury"
    assert raised(KeyError(), Retry(3, only=KeyError)).word == "retry"
    assert raised(KeyError(), Retry(3, never=LookupError)).word == "bury"


@pytest.mark.parametrize("returned", ["abc", None, float("nan")])
def test_a_delay_function_that_answers_nonsense_is_stood_in_for(returned: Any) -> None:
    found = raised(ValueError(), Retry(3, delay=lambda attempt, error: returned))
    assert (found.word, found.delay_ms) == ("retry", 2000)


def test_after_99_failures_of_a_million_it_waits_an_hour() -> None:
    found = raised(ValueError(), Retry(1_000_000, jitter=False), attempts=99)
    assert (found.word, found.delay_ms) == ("retry", 3_600_000)


def test_an_unknown_job_is_put_off_longer_each_time() -> None:
    delays = [outcome.unknown(claim("a", putoffs=n)).delay_ms for n in (0, 1, 2, 5, 6, 7, 10**9)]
    assert delays == [1000, 2000, 4000, 32_000, 60_000, 60_000, 60_000]


def test_the_others() -> None:
    assert outcome.handed_back(claim("a")) == Settlement("back", "a", "1-nonce")
    found = outcome.malformed(claim("a"), "w" * 10_000)
    assert (found.word, found.reason) == ("bury", "malformed")
    assert len(found.error) <= 4096
