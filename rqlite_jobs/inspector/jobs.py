"""A job as its readers get it: made from a snapshot, and its call as one line of text."""

from collections.abc import Mapping
from typing import Any, Protocol

from rqlite_jobs.codec import Malformed, Payload, decode, tags_of
from rqlite_jobs.declaration import Declaration
from rqlite_jobs.errors import shown
from rqlite_jobs.inspector.rows import moment
from rqlite_jobs.job import Job, Record, Source
from rqlite_jobs.models import Unbuilt
from rqlite_jobs.snapshot import Snapshot, Tries

_ARGUMENT_MAX = 80
_ERROR_MAX = 4096


class Binder(Protocol):
    """What knows the parameters of a job: its handler."""

    @property
    def declared(self) -> Declaration:
        """What was said of it."""
        ...

    def bind_payload(self, payload: Payload, /) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Make the arguments of a call from a payload."""
        ...


class Home(Source, Protocol):
    """Where a job belongs: the App."""

    @property
    def handlers(self) -> Mapping[str, Binder]:
        """The jobs that it declares, by name."""
        ...


def job_of(home: Home, snapshot: Snapshot) -> Job[Any]:
    """Make a `Job` from what a script read.

    A record or payload that is not one of ours gives a job without name and arguments, never an error. Models among
    the arguments are rebuilt where the app declares the handler, and else stand there as `Unbuilt` data.

    Args:
        home: the app whose job it is.
        snapshot: what was read.
    """
    record, tries = Record.read(snapshot.record), snapshot.tries
    payload = _payload_of(home, payload_of(snapshot))
    begun = snapshot.state in ("running", "done")  # `tries` has only the starts that failed
    return Job(
        id=snapshot.id,
        name=payload.name,
        queue=record.queue if record else "",
        args=payload.args,
        kwargs=payload.kwargs,
        tags=tags_of(payload),
        state=snapshot.state,
        attempts=tries.attempts + begun,
        crashes=tries.crashes,
        last_error=_last_error(snapshot.state, tries),
        traceback=snapshot.traceback or None,
        lock_key=(record.lock_key or None) if record else None,
        run_at=moment(snapshot.run_at_ms),
        enqueued_at=moment(record.enqueued_at_ms) if record else None,
        started_at=moment(snapshot.started_ms),
        finished_at=moment(snapshot.finished_ms),
        progress=snapshot.progress,
        result_expires_at=moment(snapshot.kept_until_ms),
        _app=home,
    )


def payload_of(snapshot: Snapshot) -> bytes:
    """The payload of a job, raw; empty where it was not read, or its record is none of ours."""
    record = Record.read(snapshot.record)
    return (record.payload or snapshot.body) if record else b""


def is_partial(snapshot: Snapshot) -> bool:
    """Does the payload lie elsewhere, not read with this snapshot?"""
    record = Record.read(snapshot.record)
    return record is not None and not record.payload and not snapshot.body


def call_text(job: Job[Any], limit: int = 200) -> str:
    """A job's call as one line: `crunch_sales(42, full=True)`.

    Args:
        job: which.
        limit: the longest text, in characters; each argument is cut too.

    It is data, and may hold anything: whoever draws it escapes it.
    """
    arguments = [_shown(value) for value in job.args]
    arguments += [f"{name}={_shown(value)}" for name, value in job.kwargs.items()]
    text = f"{job.name or '?'}({', '.join(arguments)})"
    return text if len(text) <= limit else text[: limit - 3] + "..."


def _last_error(state: str, tries: Tries) -> str | None:
    if not tries.error and tries.putoffs and state in ("scheduled", "ready"):
        return f"no worker that took it knows this job; put off {tries.putoffs} times"
    return tries.error[:_ERROR_MAX] or None


def _shown(value: Any) -> str:
    return shown(value.data if isinstance(value, Unbuilt) else value, _ARGUMENT_MAX)


def _payload_of(home: Home, raw: bytes) -> Payload:
    try:
        payload = decode(raw)
    except Malformed:
        return Payload("")
    handler = home.handlers.get(payload.name)
    if handler is None:
        return payload
    try:
        args, kwargs = handler.bind_payload(payload)
    except Exception:  # it runs constructors of the user's models; the plain data tells enough
        return payload
    return Payload(payload.name, args, kwargs, payload.options)
