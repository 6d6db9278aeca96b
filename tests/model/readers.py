"""What the reading scripts must answer of a state of the model."""

import math

from rqlite_jobs.answers import Crew, LockEntry, LockPage, Page, QueueSurvey, Survey, WorkerEntry
from rqlite_jobs.snapshot import Snapshot, Tries
from tests.model.facts import Job, Trouble
from tests.model.picture import record
from tests.model.state import State

ROOM_LEAST = 1000
"""How many more than twice those that are there a listing looks at."""


def survey(state: State) -> Survey:
    """All numbers."""
    return Survey(
        now_ms=state.now_ms,
        running=sum(job.state == "running" for job in state.jobs.values()),
        dead=len(state.dead),
        rejected=len(state.rejected),
        done=len(state.done),
        kept=len(state.kept),
        locks=len(held_keys(state)),
        workers=len(state.workers),
        records=len(state.jobs),
        totals={name: count for name, count in state.totals.items() if count},
        queues=[_queue(state, queue) for queue in sorted(state.queues)],
    )


def _queue(state: State, queue: str) -> QueueSurvey:
    waiting = [id for id in state.ready.get(queue, ()) if id not in state.tombs.get(queue, ())]
    due = state.scheduled(queue)
    waiting_ms = (state.jobs[waiting[0]].since_ms or state.jobs[waiting[0]].enqueued_ms) if waiting else 0
    next_due_ms = due[0].due_ms if due else 0
    return QueueSurvey(queue, len(waiting), len(due), waiting_ms, next_due_ms, state.pause_of(queue))


def held_keys(state: State) -> list[str]:
    """The locks that are held, by the end of their time; those that live with their job last."""
    over = {key: lock.until_ms or float("inf") for key, lock in state.locks.items()}
    return sorted((key for key in over if over[key] > state.now_ms), key=lambda key: (over[key], key))


def look(state: State, id: str, *, whole: bool = True) -> Snapshot:
    """One job; `whole`: with its payload and traceback."""
    job = state.jobs.get(id)
    if job is None:
        return Snapshot(id, state.place_of(id), b"", b"", Tries(), "", 0, 0, "", "", 0)
    trouble = job.trouble or Trouble()
    started_ms, finished_ms = job.ended or (_started_ms(job, trouble), trouble.died_ms)
    runs = job.state == "running"
    return Snapshot(
        id=id,
        state=job.state,
        record=record(job),
        body=job.payload if whole and len(job.payload) > 2048 else b"",
        tries=Tries(
            trouble.attempts, trouble.crashes, trouble.putoffs, trouble.died_ms, trouble.started_ms,
            trouble.reason, trouble.error,
        ),
        traceback=(job.traceback or "") if whole else "",
        started_ms=started_ms,
        finished_ms=finished_ms,
        worker=job.worker if runs else "",
        token=job.token if runs else "",
        run_at_ms=job.due_ms if job.state == "scheduled" else 0,
        kept_until_ms=int(kept_ms) if math.isfinite(kept_ms := state.kept.get(id, 0)) else 0,
    )  # fmt: skip


def _started_ms(job: Job, trouble: Trouble) -> int:
    return job.started_ms if job.state == "running" else trouble.started_ms


def page(state: State, place: str, queue: str, passed: int, limit: int) -> Page:
    """Some of the jobs in one place behind `passed` others, not `running`; see `position`."""
    line = _line(state, place, queue)
    shown = line[passed : passed + limit]
    behind = {at: position(state, place, queue, at) for at in range(passed, passed + limit + 1)}
    places = [at for at, id in enumerate(shown, passed) if not _is_under_tomb(state, place, queue, id)]
    jobs = [look(state, line[at], whole=False) for at in places]
    return Page(jobs, [behind[at + 1] for at in places], behind[passed + len(shown)])


def position(state: State, place: str, queue: str, passed: int) -> bytes:
    """The position behind `passed` jobs; empty at the end, and at the beginning."""
    line = _line(state, place, queue)
    left, last = len(line) - passed, line[passed - 1] if 0 < passed < len(line) else ""
    if place in ("scheduled", "kept"):
        left += len(line) + ROOM_LEAST
    if not last:
        return b""
    mark = f"{passed} {last}" if place == "ready" else ""
    if place == "scheduled":
        mark = f"{state.jobs[last].due_ms} {last}"
    if place == "kept":
        mark = f"{state.kept[last]:.0f} {last}"
    return f"{left} {mark}".encode()


def _line(state: State, place: str, queue: str) -> list[str]:
    return {
        "ready": state.ready.get(queue, []),
        "scheduled": [job.id for job in state.scheduled(queue)],
        "dead": state.dead,
        "rejected": state.rejected,
        "done": state.done,
        "kept": sorted(state.kept, key=lambda id: (state.kept[id], id)),
    }[place]


def _is_under_tomb(state: State, place: str, queue: str, id: str) -> bool:
    return place == "ready" and id in state.tombs.get(queue, ())


def holders(state: State, keys: list[str], passed: int, limit: int) -> LockPage:
    """The locks named, or a page of all behind `passed` others."""
    held = held_keys(state)
    shown = keys or held[passed : passed + limit]
    behind = b"" if keys else lock_position(state, passed + len(shown))
    return LockPage(state.now_ms, len(held), behind, [_lock(state, key, key in held) for key in shown])


def lock_position(state: State, passed: int) -> bytes:
    """The position behind `passed` locks; empty at the end, and at the beginning."""
    held = held_keys(state)
    if not 0 < passed < len(held):
        return b""
    key = held[passed - 1]
    return f"{2 * len(held) + ROOM_LEAST - passed} {state.locks[key].until_ms or 'inf'} {key}".encode()


def _lock(state: State, key: str, held: bool) -> LockEntry:
    if not held:
        return LockEntry(key, "", 0, "", "", -1)
    lock = state.locks[key]
    return LockEntry(key, lock.mode, lock.until_ms, lock.holder, state.place_of(lock.holder), -1)


def crew(state: State) -> Crew:
    """All workers: those with a lease, then those being recovered."""
    workers = []
    for fallen, ends in ((False, state.workers), (True, state.fallen)):
        for worker, end in sorted(ends.items(), key=lambda item: (item[1], item[0])):
            held = len(state.running(worker))
            workers.append(WorkerEntry(worker, end, held, fallen, state.facts.get(worker, {})))
    return Crew(state.now_ms, workers)
