"""From a call to a job in the server: bound, encoded, sent, and answered with a handle.

What is sent and what the answers mean is written once, as generators that yield a `Call` and take its answer; the
blocking and the async driver differ by the word `await`.
"""

import logging
from collections.abc import Generator, Mapping, Sequence
from inspect import BoundArguments
from typing import Any, Protocol, TypeVar

from msgspec.structs import replace

from rqlite_jobs.answers import Enqueued
from rqlite_jobs.codec import Malformed, Payload, check_size, decode, encode, tags_of
from rqlite_jobs.config import Settings
from rqlite_jobs.declaration import Declaration
from rqlite_jobs.durations import instant
from rqlite_jobs.errors import BadOption, LockConflict, RqjError
from rqlite_jobs.job import Job, NewJob, Record, Source, new_id
from rqlite_jobs.operations import Call, Operations
from rqlite_jobs.options import Terms

T = TypeVar("T")
Flow = Generator[Call[Any], Any, T]

_LOOK_MAX = 20  # payloads of up to 256 KiB each come back from one look
_log = logging.getLogger("rqlite_jobs")


class Home(Source, Protocol):
    """What a producer needs of an app."""

    @property
    def settings(self) -> Settings:
        """Its settings."""
        ...

    @property
    def operations(self) -> Operations:
        """What can be asked of its namespace."""
        ...

    def declaration(self, name: str, /) -> Declaration | None:
        """What was declared under a name."""
        ...

    def run(self, call: Call[T]) -> T:
        """Send a call."""
        ...

    async def arun(self, call: Call[T]) -> T:
        """Send a call from an event loop."""
        ...


class Producer:
    """Enqueues calls for one app.

    Args:
        home: the app.
    """

    def __init__(self, home: Home) -> None:
        self._home = home

    def prepare(
        self, declared: Declaration, terms: Terms, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> NewJob:
        """Bind and encode a call; nothing is sent.

        Raises:
            WrongArguments, UnserializableArguments, PayloadTooLarge: the call cannot be carried.
            BadOption: no lock key can be made of it, or it would expire before it is due.
        """
        name = declared.name
        bound = declared.binder.bind(args, kwargs)
        if terms.expires_ms is not None and terms.delay_ms is not None and terms.delay_ms >= terms.expires_ms:
            raise BadOption(
                f"job {name!r} would expire before it is due.",
                hint="Give expires_in more than delay: it counts from the enqueue.",
                option="expires_in",
            )
        payload = encode(name, args, kwargs, terms.payload, shape=declared.shape)
        settings = self._home.settings
        if len(payload) > settings.payload_max:
            check_size(name, payload, settings.payload_max)
        lock = None
        if terms.lock is not None:
            lock = terms.lock.lock_for(name, _arguments(declared, bound))
        queue = terms.queue or settings.default_queue
        return NewJob(
            terms.id or new_id(), queue, payload, 0, terms.delay_ms, terms.run_at_ms, lock, name, args, kwargs,
            bool(terms.id), terms.expires_ms, terms.tags,
        )  # fmt: skip

    def enqueue(self, job: NewJob) -> Job[Any]:
        """Send a prepared call; what comes back is its job, or the one that holds its lock.

        Raises:
            LockConflict: the lock is held and its policy says `raise`.
            The errors of `App.run`.
        """
        home = self._home
        answers = home.run(home.operations.enqueue((job,)))
        if answers[0].outcome == "enqueued":
            return self._enqueued(job, answers[0])
        return self._drive(self._told((job,), answers))[0]

    async def aenqueue(self, job: NewJob) -> Job[Any]:
        """Send a prepared call: `enqueue` for async code."""
        home = self._home
        answers = await home.arun(home.operations.enqueue((job,)))
        if answers[0].outcome == "enqueued":
            return self._enqueued(job, answers[0])
        return (await self._adrive(self._told((job,), answers)))[0]

    def enqueue_many(self, jobs: Sequence[NewJob]) -> list[Job[Any]]:
        """Send prepared calls, in as few trips as they fit in; the answers come in their order.

        Raises:
            LockConflict: after all were sent, if one met a held lock whose policy says `raise`.
            The errors of `App.run`; a note says how many had been sent by then.
        """
        return self._drive(self._sent(jobs))

    async def aenqueue_many(self, jobs: Sequence[NewJob]) -> list[Job[Any]]:
        """Send prepared calls: `enqueue_many` for async code."""
        return await self._adrive(self._sent(jobs))

    def _drive(self, flow: Flow[T]) -> T:
        try:
            call = next(flow)
            while True:
                try:
                    answer = self._home.run(call)
                except RqjError as error:
                    call = flow.throw(error)
                else:
                    call = flow.send(answer)
        except StopIteration as end:
            found: T = end.value
            return found

    async def _adrive(self, flow: Flow[T]) -> T:
        try:
            call = next(flow)
            while True:
                try:
                    answer = await self._home.arun(call)
                except RqjError as error:
                    call = flow.throw(error)
                else:
                    call = flow.send(answer)
        except StopIteration as end:
            found: T = end.value
            return found

    def _sent(self, jobs: Sequence[NewJob]) -> Flow[list[Job[Any]]]:
        operations = self._home.operations
        answers: list[Enqueued] = []
        for batch in operations.batches(jobs):
            try:
                answers += yield operations.enqueue(batch)
            except RqjError as error:
                if len(jobs) > len(batch):
                    error.add_note(f"{len(answers)} of {len(jobs)} jobs had been enqueued by then.")
                raise
        return (yield from self._told(jobs, answers))

    def _told(self, jobs: Sequence[NewJob], answers: Sequence[Enqueued]) -> Flow[list[Job[Any]]]:
        """The handle of each job, and what its policy says about a held lock."""
        bodies = yield from self._bodies(answers)
        told: list[Job[Any]] = []
        conflicts: list[tuple[NewJob, Job[Any]]] = []
        for job, answer in zip(jobs, answers, strict=True):
            if answer.outcome == "enqueued":
                told.append(self._enqueued(job, answer))
                continue
            if answer.outcome == "rejected":
                told.append(self._rejected(job, answer))
                continue
            told.append(self._holder(job, answer, bodies.get(answer.id, b"")))
            if answer.id == job.id:
                continue  # its id is known already; that is no matter of locks
            if job.lock is not None and job.lock.on_conflict == "raise":
                conflicts.append((job, told[-1]))
            elif job.lock is not None and job.lock.on_conflict == "log":
                _log.warning("%s", _held(job, told[-1]))
        if conflicts:
            raise _conflict(jobs, conflicts, told)
        return told

    def _bodies(self, answers: Sequence[Enqueued]) -> Flow[dict[str, bytes]]:
        """The payloads of those holders whose record does not have it, because it is large."""
        ids: dict[str, None] = {}
        for answer in answers:
            if answer.record and (record := Record.read(answer.record)) and not record.payload:
                ids[answer.id] = None
        wanted, found = list(ids), {}
        for start in range(0, len(wanted), _LOOK_MAX):
            for seen in (yield self._home.operations.look(wanted[start : start + _LOOK_MAX])):
                found[seen.id] = seen.body
        return found

    def _enqueued(self, job: NewJob, answer: Enqueued) -> Job[Any]:
        run_at = None
        if answer.state == "scheduled":
            due_ms = job.run_at_ms if job.delay_ms is None else answer.now_ms + job.delay_ms
            run_at = instant(due_ms or answer.now_ms)
        return Job(
            job.id, job.name, job.queue, job.args, job.kwargs, "enqueued", None, answer.state, tags=job.tags,
            lock_key=None if job.lock is None else job.lock.key,
            run_at=run_at, enqueued_at=instant(answer.now_ms), _app=self._home,
        )  # fmt: skip

    def _rejected(self, job: NewJob, answer: Enqueued) -> Job[Any]:
        return replace(
            self._enqueued(job, answer),
            outcome="rejected",
            holder_id=answer.holder_id,
            last_error=f"duplicate of {answer.holder_id}",
            finished_at=instant(answer.now_ms),
        )

    def _holder(self, job: NewJob, answer: Enqueued, body: bytes) -> Job[Any]:
        record = Record.read(answer.record) if answer.record else None
        if record is None:
            # Its name is known all the same: lock keys begin with the name of their job.
            payload, queue, enqueued_at = Payload(job.name), "", None
            lock_key = job.lock.key if job.lock else None
        else:
            payload = self._payload(job, record.payload or body)
            queue, enqueued_at, lock_key = (
                record.queue,
                instant(record.enqueued_at_ms),
                record.lock_key or None,
            )
        return Job(
            answer.id, payload.name, queue, payload.args, payload.kwargs, "duplicate", answer.holder_id, answer.state,
            tags=tags_of(payload), lock_key=lock_key, enqueued_at=enqueued_at, _app=self._home,
        )  # fmt: skip

    def _payload(self, job: NewJob, raw: bytes) -> Payload:
        """What a holder was called with; a payload that cannot be read is no reason to fail an enqueue."""
        try:
            found = decode(raw)
        except Malformed:
            return Payload(job.name)
        declared = self._home.declaration(found.name)
        if declared is None:
            return found
        try:
            args, kwargs = declared.shape.restore(found)
        except Malformed:  # the classes have changed since; the plain data stands for them
            return found
        return Payload(found.name, args, kwargs, found.options)


def _arguments(declared: Declaration, bound: dict[str, Any]) -> BoundArguments:
    return BoundArguments(declared.binder.signature, bound)


def _held(job: NewJob, holder: Job[Any]) -> str:
    key = job.lock.key if job.lock else ""
    return f"job {job.name!r} was not enqueued: its lock {key!r} is held by job {holder.id} ({holder.state})"


def _conflict(
    jobs: Sequence[NewJob], conflicts: Sequence[tuple[NewJob, Job[Any]]], told: Sequence[Job[Any]]
) -> LockConflict:
    job, holder = conflicts[0]
    message = f"{_held(job, holder)}."
    if len(jobs) > 1:
        message = f"{len(conflicts)} of {len(jobs)} jobs met a lock that is held; the first: {message}"
    return LockConflict(
        message,
        hint='`rqj locks show` tells more of it; on_conflict="return" answers with the holder instead.',
        holder_id=holder.id,
        lock_key=job.lock.key if job.lock else "",
        answers=tuple(told),
    )
