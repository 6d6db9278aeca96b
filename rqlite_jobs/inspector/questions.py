"""What an inspector asks, in steps; each question stands here once, and comes to rows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from rqlite_jobs.answers import Crew, LockPage, Survey
from rqlite_jobs.answers import Page as Part
from rqlite_jobs.counters import UNITS, Copies
from rqlite_jobs.durations import instant
from rqlite_jobs.errors import BadOption, JobNotFound, LockNotFound, QueueNotFound, nearest, shown
from rqlite_jobs.inspector.cursor import Cursor, bad_cursor
from rqlite_jobs.inspector.filter import Filter
from rqlite_jobs.inspector.jobs import Home, is_partial, job_of
from rqlite_jobs.inspector.rows import HistoryRow, LockRow, Page, QueueRow, Stats, WorkerRow
from rqlite_jobs.job import Job
from rqlite_jobs.operations import Operations
from rqlite_jobs.snapshot import Snapshot
from rqlite_jobs.steps import Steps

STATES = ("running", "ready", "scheduled", "dead", "done")
"""The states whose jobs can be listed, in the order of a listing of all."""
PAGE_MAX = 1000
"""The longest page."""
SCAN_MAX = 10_000
"""How many jobs a page with a filter looks at."""
HISTORY_MAX = {"minute": 24 * 60, "day": 366}
"""How far back history is told; it is kept a little longer."""
_STEP = 200
_COPIES = 120  # some 10 us of the server each
_LOOK_MAX = 20  # payloads of up to payload_max each: the server answers nobody else while it reads them


@dataclass(frozen=True, slots=True)
class _Place:
    """One list of ids, how long it is, and from where on a page goes on in it."""

    state: str
    queue: str
    count: int
    position: bytes = b""


def job(app: Home, ops: Operations, id: str) -> Steps[Job[Any]]:
    """One job, whole."""
    (found,) = yield ops.look([id])
    if found.state == "unknown":
        raise not_found(id)
    return job_of(app, found)


def look(app: Home, ops: Operations, ids: Sequence[str]) -> Steps[tuple[Job[Any], ...]]:
    """Jobs by id, whole."""
    jobs: list[Job[Any]] = []
    for at in range(0, len(ids), _LOOK_MAX):
        found: list[Snapshot] = yield ops.look(ids[at : at + _LOOK_MAX])
        jobs += [job_of(app, snapshot) for snapshot in found]
    return tuple(jobs)


def jobs(
    app: Home, ops: Operations, state: str | None, wanted: Filter, cursor: str, limit: int
) -> Steps[Page[Job[Any]]]:
    """A page of jobs; see `Inspector.jobs`."""
    check_limit(limit)
    survey: Survey = yield ops.survey()
    everywhere = _places(survey, state, wanted.queue)
    places, looked = _from(cursor, everywhere)
    among = sum(place.count for place in everywhere)
    count = None if wanted.looks_inside or wanted.queue is not None else among
    taken, room, following = list[Job[Any]](), SCAN_MAX, ""
    for place in places:
        # The queue of what runs or has ended is known only when it is read.
        picky = wanted.looks_inside or (wanted.queue is not None and not place.queue)
        while True:
            if len(taken) == limit or room <= 0:
                following = Cursor(place.state, place.queue, looked, place.position).text()
                return Page(tuple(taken), instant(survey.now_ms), count, following, looked, among)
            step = min(_STEP, room) if picky else limit - len(taken)
            part: Part = yield ops.page(place.state, place.queue, place.position, step)
            found = yield from _with_payloads(ops, part.jobs, wanted)
            behind, seen = part.behind, step if part.behind else len(found)
            for at, snapshot in enumerate(found, 1):
                if (job := wanted.takes(app, snapshot)) is not None:
                    taken.append(job)
                    if len(taken) == limit:  # the rest of this part is for the next page
                        behind, seen = part.behind_each[at - 1], at
                        break
            looked, room = looked + seen, room - seen
            if not behind:
                break
            place = replace(place, position=behind)
    return Page(tuple(taken), instant(survey.now_ms), count, "", looked, among)


def queues(ops: Operations) -> Steps[Page[QueueRow]]:
    """All queues, by name."""
    survey: Survey = yield ops.survey()
    rows = tuple(sorted(map(QueueRow.of, survey.queues), key=lambda row: row.name))
    return Page(rows, instant(survey.now_ms), len(rows))


def locks(ops: Operations, cursor: str, limit: int) -> Steps[Page[LockRow]]:
    """A page of the locks that are held."""
    check_limit(limit)
    begin = Cursor.read(cursor) if cursor else Cursor("locks")
    if begin.state != "locks":
        raise bad_cursor(cursor)
    found: LockPage = yield ops.holders((), begin.position, limit)
    rows = tuple(LockRow.of(entry, found.now_ms) for entry in found.locks if entry.mode)
    looked = begin.looked + len(found.locks)
    following = Cursor("locks", "", looked, found.behind).text() if found.behind else ""
    return Page(rows, instant(found.now_ms), found.count, following, looked, found.count)


def lock(ops: Operations, key: str) -> Steps[LockRow]:
    """One lock that is held."""
    found: LockPage = yield ops.holders([key])
    (entry,) = found.locks
    if not entry.mode:
        some: LockPage = yield ops.holders((), limit=100)
        like = nearest(key, [one.key for one in some.locks]) if some.count <= 100 else ""
        raise LockNotFound(
            f"nobody holds the lock {shown(key, 120)}.",
            hint=like
            if like.startswith("Did you mean")
            else "A key begins with the name of the job: `rqj locks`.",
            lock_key=key,
        )
    return LockRow.of(entry, found.now_ms)


def workers(ops: Operations) -> Steps[Page[WorkerRow]]:
    """All workers."""
    crew: Crew = yield ops.crew()
    rows = tuple(WorkerRow.of(entry, crew.now_ms) for entry in crew.workers)
    return Page(rows, instant(crew.now_ms), len(rows))


def stats(ops: Operations) -> Steps[Stats]:
    """All numbers."""
    survey: Survey = yield ops.survey()
    return Stats.of(survey)


def history(ops: Operations, by: str, last: int) -> Steps[Page[HistoryRow]]:
    """What was counted lately, the newest minute or day last."""
    if by not in tuple(UNITS):  # asked of a tuple: a list is no key of a dict
        raise BadOption(
            f"by={shown(by)} is nothing that history is kept by.",
            hint='Give "minute" or "day".',
            option="by",
        )
    if type(last) is not int or not 1 <= last <= HISTORY_MAX[by]:
        raise BadOption(
            f"last={shown(last)} is not possible by {by}.",
            hint=f"Give 1 to {HISTORY_MAX[by]:,}.",
            option="last",
        )
    part: Copies = yield ops.history(by, last, limit=_COPIES)
    begin, copies, unit_ms, now_ms = part, [*part.copies], UNITS[by] * 60_000, part.now_ms
    newest = max(
        now_ms // unit_ms, copies[0].number if copies else 0
    )  # later than now if the clock went back
    first = max(newest - last + 1, 0)
    # Copies never change, so what is read in several steps is of one instant all the same.
    while (
        part.copies
        and (before := part.copies[-1].before) >= max(first, 1)
        and before < part.copies[-1].number
    ):
        part = yield ops.history(by, before - first + 1, before, _COPIES)
        copies += part.copies
    added = replace(begin, copies=copies).added()
    rows = tuple(
        HistoryRow.of(number * unit_ms, added.get(number, {})) for number in range(first, newest + 1)
    )
    return Page(rows, instant(now_ms), len(rows))


def now(ops: Operations) -> Steps[datetime]:
    """The time that everything here is measured against."""
    found: LockPage = yield ops.holders((), limit=1)
    return instant(found.now_ms)


def _places(survey: Survey, state: str | None, queue: str | None) -> list[_Place]:
    """The lists that hold what is wanted, in the order of a listing."""
    if state is not None and state not in STATES:
        raise BadOption(
            f"no jobs are listed by the state {shown(state)}.", hint=nearest(state, STATES), option="state"
        )
    known = sorted(survey.queues, key=lambda one: one.name)
    if queue is not None:
        known = [one for one in known if one.name == queue]
        if not known:
            raise QueueNotFound(
                f"no job was ever put into a queue {shown(queue)}.",
                hint=nearest(queue, [one.name for one in survey.queues]) or "There is no queue yet.",
                queue=queue,
            )
    places = [_Place("running", "", survey.running)]
    places += [_Place("ready", one.name, one.ready) for one in known]
    places += [_Place("scheduled", one.name, one.scheduled) for one in known]
    places += [_Place("dead", "", survey.dead), _Place("rejected", "", survey.rejected)]
    places += [_Place("done", "", survey.done), _Place("kept", "", survey.kept)]
    states = {"dead": ("dead", "rejected"), "done": ("done", "kept")}.get(state or "", (state,))
    return [place for place in places if state is None or place.state in states]


def _from(text: str, places: list[_Place]) -> tuple[list[_Place], int]:
    """The places from a cursor on, and how many records were looked at before."""
    if not text:
        return _filled(places), 0
    cursor = Cursor.read(text)
    for at, place in enumerate(places):
        if (place.state, place.queue) == (cursor.state, cursor.queue):
            return [replace(place, position=cursor.position), *_filled(places[at + 1 :])], cursor.looked
    raise bad_cursor(text)


def _filled(places: Sequence[_Place]) -> list[_Place]:
    # An empty one would end a full page with a cursor behind which there is nothing.
    return [place for place in places if place.count]


def _with_payloads(ops: Operations, found: Sequence[Snapshot], wanted: Filter) -> Steps[list[Snapshot]]:
    """The same snapshots; those whose payload lies apart and may matter are read anew with it."""
    whole: dict[str, Snapshot] = {}
    apart = [snapshot.id for snapshot in found if is_partial(snapshot) and wanted.may_take(snapshot)]
    for at in range(0, len(apart), _LOOK_MAX):
        again: list[Snapshot] = yield ops.look(apart[at : at + _LOOK_MAX])
        whole |= {snapshot.id: snapshot for snapshot in again if snapshot.record}
    return [whole.get(snapshot.id, snapshot) for snapshot in found]


def not_found(id: str) -> JobNotFound:
    """The error about a job that is not known."""
    return JobNotFound(
        f"no job has the id {shown(id)}.",
        hint="It was never enqueued in this namespace, or it has left the history of finished jobs.",
        job_id=id,
    )


def check_limit(limit: int) -> None:
    """Refuse a page that no script would answer.

    Raises:
        BadOption: a limit out of bounds.
    """
    if type(limit) is not int or not 1 <= limit <= PAGE_MAX:
        raise BadOption(
            f"limit={shown(limit)} is not possible.", hint=f"Give 1 to {PAGE_MAX:,}.", option="limit"
        )
