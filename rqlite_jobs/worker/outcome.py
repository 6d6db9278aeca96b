"""How a run ended, and what the server is told of it: the one place where a failure becomes a retry or a death."""

import asyncio
import random

from rqlite_jobs.answers import Claim
from rqlite_jobs.backoff import Retry
from rqlite_jobs.errors import Bury, RetryIn, Snooze
from rqlite_jobs.operations import Settlement
from rqlite_jobs.worker.trace import ERROR_MAX, cut, describe

PUTOFF_MAX_MS = 60_000


def done(claim: Claim) -> Settlement:
    """It returned None, which nobody asked to keep."""
    return Settlement("done", claim.id, claim.token)


def returned(claim: Claim, result: bytes, ttl_ms: int | None) -> Settlement:
    """It returned something; an empty result with a ttl of 0 is one that cannot be kept."""
    return Settlement("returned", claim.id, claim.token, result=result, ttl_ms=ttl_ms)


def raised(claim: Claim, error: BaseException, retry: Retry, rng: random.Random, skip: int = 0) -> Settlement:
    """It raised: a signal of the handler, or a failure that is tried again as long as its policy says.

    Args:
        claim: which job.
        error: what was raised.
        retry: its policy.
        rng: for jitter.
        skip: frames of the traceback that are ours.
    """
    if isinstance(error, Snooze):
        return Settlement("snooze", claim.id, claim.token, error.delay_ms)
    if isinstance(error, Bury):
        reason, trace = cut(error.reason, ERROR_MAX), describe(error, skip)[1]
        return Settlement("bury", claim.id, claim.token, 0, "buried", reason, trace)
    text, trace = describe(error, skip)
    # A crash is an attempt that uses up nothing of max_attempts.
    failures = claim.attempts + 1 - claim.crashes
    wanted = isinstance(error, RetryIn | asyncio.CancelledError) or retry.wants(error)
    if not wanted or failures >= retry.max_attempts:
        return Settlement("bury", claim.id, claim.token, 0, "failed", text, trace)
    delay_ms = error.delay_ms if isinstance(error, RetryIn) else _delay_ms(retry, failures, error, rng)
    return Settlement("retry", claim.id, claim.token, delay_ms, "", text, trace)


def malformed(claim: Claim, why: str) -> Settlement:
    """Its payload cannot be read, or does not fit the handler any more: no attempt would change that."""
    return Settlement("bury", claim.id, claim.token, 0, "malformed", cut(why, ERROR_MAX))


def unknown(claim: Claim) -> Settlement:
    """This worker has no handler of its name, and another may: it is put off, 1 s doubling to 60 s."""
    return Settlement("putoff", claim.id, claim.token, min(PUTOFF_MAX_MS, 1000 * 2 ** min(claim.putoffs, 6)))


def handed_back(claim: Claim) -> Settlement:
    """It was not run, or not to its end: to the head of its queue, as if it had never been claimed."""
    return Settlement("back", claim.id, claim.token)


def _delay_ms(retry: Retry, failures: int, error: BaseException, rng: random.Random) -> int:
    try:
        return retry.delay_ms(failures, error, rng)
    except BaseException:
        # A policy's own function exits. The job must not be lost for it, and its own error is the one to keep.
        return Retry().delay_ms(failures, None, rng)
