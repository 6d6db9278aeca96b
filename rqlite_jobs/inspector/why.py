"""Why a job is where it is, and what would have to happen for it to go on: one plain answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rqlite_jobs.answers import Crew, QueueSurvey, Survey
from rqlite_jobs.durations import instant
from rqlite_jobs.errors import shown
from rqlite_jobs.inspector.jobs import Home, job_of
from rqlite_jobs.inspector.questions import not_found
from rqlite_jobs.inspector.rows import PauseRow, WorkerRow
from rqlite_jobs.job import Job
from rqlite_jobs.operations import Operations
from rqlite_jobs.snapshot import Snapshot
from rqlite_jobs.steps import Steps

_ERROR_MAX = 200
_DEAD = {
    "failed": "it failed {attempts}, the last time with {error}, and no attempt is left",
    "crashed": "{crashes} ended with their process",
    "buried": "it was buried: {error}",
    "duplicate": "it was refused as a {error}",
    "malformed": "{error}",
}
_GONE = {
    "cancelled": "it was cancelled before it was started",
    "expired": "its time was over before it was started, or started again",
}


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a job is where it is.

    Attributes:
        id: the job.
        state: where it is.
        word: why: `cancelled expired done dead running silent retry unknown_job delayed paused no_worker not_served
            not_known busy next malformed`.
        text: the same as a sentence.
        hint: what to do about it; empty where there is nothing to do but wait.
        until: when this will change by itself, where that is known: a due time, the end of a pause.
        now: the server's time.
    """

    id: str
    state: str
    word: str
    text: str
    hint: str
    until: datetime | None
    now: datetime


def why(app: Home, ops: Operations, id: str) -> Steps[Reason]:
    """Why a job is where it is; see `Inspector.why`."""
    (found,) = yield ops.look([id])
    if found.state == "unknown":
        raise not_found(id)
    survey: Survey = yield ops.survey()
    crew: Crew = yield ops.crew()
    workers = [WorkerRow.of(one, crew.now_ms) for one in crew.workers]
    job = job_of(app, found)
    word, text, hint, until = _reason(job, found, survey, workers)
    return Reason(id, job.state, word, text, hint, until, instant(crew.now_ms))


def _reason(
    job: Job[Any], found: Snapshot, survey: Survey, workers: Sequence[WorkerRow]
) -> tuple[str, str, str, datetime | None]:
    state, now = job.state, instant(survey.now_ms)
    if state in _GONE:
        return state, f"{_GONE[state]}; of such a job only this word is kept", "", None
    if state == "done":
        return "done", "it ran to its end", "", None
    if state == "dead":
        return _dead(job, found)
    if state == "running":
        return _running(found, workers)
    if state == "scheduled" and job.run_at is not None and job.run_at > now:
        return _scheduled(job, found)
    if state in ("ready", "scheduled"):
        queue = next((one for one in survey.queues if one.name == job.queue), None)
        return _ready(job, queue, workers)
    return "malformed", "its record is not one of ours", "rqj jobs delete removes it.", None


def _dead(job: Job[Any], found: Snapshot) -> tuple[str, str, str, None]:
    form = _DEAD.get(found.tries.reason, "it died: {error}")
    text = form.format(
        attempts=_times(job.attempts), crashes=f"{job.crashes} of its attempts", error=_error(job)
    )
    return "dead", text, "rqj dead revive runs it again.", None


def _running(found: Snapshot, workers: Sequence[WorkerRow]) -> tuple[str, str, str, None]:
    worker = next((one for one in workers if one.id == found.worker), None)
    if worker is None or worker.state == "fallen":
        return "silent", f"its worker {found.worker} is dead, and it is about to be given back", "", None
    where = f"the worker {worker.id} ({worker.host}, pid {worker.pid})"
    if worker.state == "silent":
        return (
            "silent",
            f"{where} has it, but its lease is over: any other worker will give it back",
            "rqj recover does so now.",
            None,
        )
    return "running", f"{where} runs it", "", None


def _scheduled(job: Job[Any], found: Snapshot) -> tuple[str, str, str, datetime | None]:
    if job.attempts:
        return (
            "retry",
            f"it failed {_times(job.attempts)}, the last time with {_error(job)}, and waits for its next attempt",
            "rqj jobs retry lets it go now.",
            job.run_at,
        )
    if found.tries.putoffs:
        return (
            "unknown_job",
            f"no worker that took it knows a job {shown(job.name)}; it was put off {_times(found.tries.putoffs)}",
            "Start a worker whose app declares it.",
            job.run_at,
        )
    return "delayed", "it waits for the time it was given", "", job.run_at


def _ready(
    job: Job[Any], queue: QueueSurvey | None, workers: Sequence[WorkerRow]
) -> tuple[str, str, str, datetime | None]:
    if queue is not None and queue.pause is not None:
        pause = PauseRow.of(queue.pause)
        end = "" if pause.until else " until somebody resumes it"
        return (
            "paused",
            f"its queue {shown(job.queue)} is paused{end}, by {pause.by}",
            f"rqj queues resume {job.queue}",
            pause.until,
        )
    alive = [one for one in workers if one.state == "alive"]
    if not alive:
        return "no_worker", "no worker runs", "Start one: rqj worker", None
    serving = [one for one in alive if one.all_queues or job.queue in one.queues]
    if not serving:
        return (
            "not_served",
            f"no worker serves its queue {shown(job.queue)}",
            f"Start one: rqj worker -q {job.queue}",
            None,
        )
    # One that registered no names is of another version: it may know it.
    knowing = [one for one in serving if not one.names or job.name in one.names]
    if job.name and not knowing:
        return (
            "not_known",
            f"no worker that serves its queue {shown(job.queue)} knows a job {shown(job.name)}",
            "Start a worker whose app declares it.",
            None,
        )
    slots, busy = sum(one.concurrency for one in serving), sum(one.running for one in serving)
    others = max(0, queue.ready - 1) if queue is not None else 0
    if busy >= slots or others:
        return (
            "busy",
            f"it waits its turn: {busy} jobs run in {slots} slots that serve its queue, and {others} others are ready",
            "",
            None,
        )
    return "next", "it is the next one of its queue, and is about to be started", "", None


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _error(job: Job[Any]) -> str:
    return (job.last_error or "an error that left no text")[:_ERROR_MAX]
