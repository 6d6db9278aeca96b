"""Runs one claimed job: read it, find its handler, call it, judge how it ended."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct

from rqlite_jobs.answers import Claim
from rqlite_jobs.app import App
from rqlite_jobs.backoff import Retry
from rqlite_jobs.codec import Malformed, Payload, decode, encode
from rqlite_jobs.current import RUNNING, CurrentJob, Reports
from rqlite_jobs.durations import to_text
from rqlite_jobs.errors import RqjError
from rqlite_jobs.handler import Handler
from rqlite_jobs.operations import Settlement
from rqlite_jobs.worker import outcome
from rqlite_jobs.worker.trace import describe

log = logging.getLogger("rqlite_jobs.worker")


class Run(Struct, frozen=True):
    """A claimed job that can be run.

    Attributes:
        claim: which.
        handler: what runs it.
        args, kwargs: with what.
        retry: the policy it fails by.
        ttl_ms: how long its result is kept; see `Settlement`.
        reports: who hears how far it is.
    """

    claim: Claim
    handler: Handler[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    retry: Retry
    ttl_ms: int | None
    reports: Reports

    def current(self) -> CurrentJob:
        """The job, for its handler."""
        claim = self.claim
        return CurrentJob(claim.id, self.handler.name, claim.attempts + 1, claim.token, self.reports)


class Executor:
    """Runs claimed jobs of one app. It keeps nothing of them.

    Args:
        app: whose handlers run.
        rng: for the jitter of retries.
        reports: who hears how far they are.
    """

    def __init__(self, app: App, rng: random.Random, reports: Reports) -> None:
        self._app = app
        self._rng = rng
        self._reports = reports
        self._unknown: set[str] = set()
        self._terms: dict[str, tuple[Retry, int | None]] = {}
        self._result_max = app.settings.result_max

    def prepare(self, claim: Claim) -> Run | Settlement:
        """Read a claimed job and find its handler; or say what becomes of it where that fails."""
        # The payload is what stands behind the record's last NUL: JSON text has none.
        raw = claim.record.rpartition(b"\0")[2] or claim.body
        try:
            payload = decode(raw)
        except Malformed as error:
            log.error("job %s is buried: its payload cannot be read: %s", claim.id, error)
            return outcome.malformed(claim, f"its payload cannot be read: {error}")
        handler = self._app.handlers.get(payload.name)
        if handler is None or handler.remote:
            self._report_unknown(claim, payload)
            return outcome.unknown(claim)
        try:
            args, kwargs = handler.bind_payload(payload)
            retry, ttl_ms = self._terms.get(payload.name) or self._terms_of(handler)
            if payload.options:
                wire, own_ms = payload.options.get("r"), payload.options.get("t")
                retry = retry if wire is None else Retry.from_wire(wire)
                ttl_ms = own_ms if type(own_ms) is int else ttl_ms
        except BaseException as error:
            # Restoring a dataclass or model runs code of the app, which may even exit.
            why = str(error) if isinstance(error, RqjError | Malformed) else describe(error)[0]
            log.error(
                "job %s (%s) is buried: its arguments do not fit the handler: %s", claim.id, payload.name, why
            )
            return outcome.malformed(claim, f"its arguments do not fit the handler {payload.name!r}: {why}")
        return Run(claim, handler, args, kwargs, retry, ttl_ms, self._reports)

    def execute(self, claim: Claim) -> Settlement:
        """Run a job to its end in this thread. Whatever it raises becomes part of the answer."""
        run = self.prepare(claim)
        return run if isinstance(run, Settlement) else self.perform(run)

    def perform(self, run: Run) -> Settlement:
        """Call a prepared job's handler in this thread, and judge."""
        mark = RUNNING.set(run)
        try:
            value = run.handler.fn(*run.args, **run.kwargs)
        except BaseException as error:  # SystemExit in a handler ends the run, not the worker
            return self._judged(run, error)
        finally:
            RUNNING.reset(mark)
        return outcome.done(run.claim) if value is None and not run.ttl_ms else self._returned(run, value)

    async def aperform(self, run: Run, elsewhere: Callable[[Run], Awaitable[Settlement]]) -> Settlement:
        """The same on an event loop; a plain function is run `elsewhere`, off the loop.

        Raises:
            asyncio.CancelledError: the worker itself cancelled the run; its caller hands the job back.
        """
        if not run.handler.is_async:
            return await elsewhere(run)
        mark = RUNNING.set(run)
        try:
            value = await run.handler.fn(*run.args, **run.kwargs)
        except BaseException as error:
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise
            return self._judged(run, error)
        finally:
            RUNNING.reset(mark)
        return outcome.done(run.claim) if value is None and not run.ttl_ms else self._returned(run, value)

    def _terms_of(self, handler: Handler[..., Any]) -> tuple[Retry, int | None]:
        """On which terms jobs of a handler run whose call says nothing else: kept, for it is asked for each of them."""
        own_ms = handler.declared.result_ttl_ms
        ttl_ms = self._app.settings.result_ttl_ms if own_ms is None else own_ms
        terms = self._terms[handler.name] = (self._app.retry_of(handler), ttl_ms)
        return terms

    def _returned(self, run: Run, value: Any) -> Settlement:
        """The job is done, whatever becomes of what it returned."""
        if value is None:
            return outcome.returned(run.claim, b"", run.ttl_ms)
        name, why = run.handler.name, ""
        try:
            result = encode(name, (value,), shape=run.handler.declared.returns)
            if len(result) <= self._result_max:
                return outcome.returned(run.claim, result, run.ttl_ms)
            why = f"it takes {len(result):,} bytes, and result_max is {self._result_max:,}"
        except BaseException as error:  # taking a model apart runs code of the app
            why = error.message if isinstance(error, RqjError) else describe(error)[0]
        log.warning("job %s (%s) is done, and its result is not kept: %s", run.claim.id, name, why)
        return outcome.returned(run.claim, b"", 0)

    def _judged(self, run: Run, error: BaseException) -> Settlement:
        settled = outcome.raised(run.claim, error, run.retry, self._rng, skip=1)
        name, claim = run.handler.name, run.claim
        if settled.word == "retry":
            log.warning(
                "job %s (%s) failed, attempt %d of %d, again in %s: %s",
                claim.id, name, claim.attempts + 1 - claim.crashes, run.retry.max_attempts,
                to_text(settled.delay_ms), settled.error[:500],
            )  # fmt: skip
        elif settled.word == "bury":
            log.error("job %s (%s) is dead: %s", claim.id, name, settled.error[:500])
        # Its frames hold the arguments, and sometimes the whole request. (Not by assignment: a frozen dataclass
        # that is an exception refuses that.)
        BaseException.with_traceback(error, None)
        return settled

    def _report_unknown(self, claim: Claim, payload: Payload) -> None:
        level = logging.DEBUG if payload.name in self._unknown else logging.WARNING
        if len(self._unknown) < 1000:
            self._unknown.add(payload.name)
        log.log(
            level,
            "job %s is put off: this worker knows no job named %r. Is the module that declares it imported?",
            claim.id, payload.name,
        )  # fmt: skip
