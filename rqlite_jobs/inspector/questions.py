"""What an inspector asks, in steps and without I/O: each function yields calls, is sent the answers, and returns rows.

So each question stands here once, and is asked by threads and by event loops alike.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeAlias, TypeVar

from rqlite_jobs.answers import Crew, LockPage, Survey
from rqlite_jobs.answers import Page as Part
from rqlite_jobs.counters import UNITS, Copies
from rqlite_jobs.durations import instant
from rqlite_jobs.errors import BadOption, JobNotFound, LockNotFound, QueueNotFound, nearest, shown
from rqlite_jobs.inspector.jobs import Home, is_partial, job_of
from rqlite_jobs.inspector.rows import HistoryRow, LockRow, Page, QueueRow, Stats, WorkerRow
from rqlite_jobs.job import Job
from rqlite_jobs.operations import Call, Operations
from rqlite_jobs.snapshot import Snapshot

T = TypeVar("T")
Steps: TypeAlias = Generator[Call[Any], Any, T]

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
class Wanted:
    """Which jobs a page is to hold; None: any."""

    state: str | None = None
    queue: str | None = None
    name: str | None = None
    error: str | None = None

    def takes(self, job: Job[Any]) -> bool:
        """Is this one of them?"""
        return (
            self.queue in (None, job.queue)
            and self.name in (None, job.name)
            and (self.error is None or self.error.casefold() in (job.last_error or "").casefold())
        )


@dataclass(frozen=True, slots=True)
class _Place:
    """One list of ids, how long it is, and where a page goes on in it: behind `offset` ids and then `skip` jobs."""

    state: str
    queue: str
    count: int
    offset: int = 0
    skip: int = 0

    @property
    def cursor(self) -> str:
        return f"{self.state}/{self.queue}/{self.offset}/{self.skip}"


def job(app: Home, ops: Operations, id: str) -> Steps[Job[Any]]:
    """One job, whole."""
    (found,) = yield ops.look([id])
    if found.state == "unknown":
        raise JobNotFound(
            f"no job has the id {shown(id)}.",
            hint="It was never enqueued in this namespace, or it has left the history of finished jobs.",
            job_id=id,
        )
    return job_of(app, found)


def look(app: Home, ops: Operations, ids: Sequence[str]) -> Steps[tuple[Job[Any], ...]]:
    """Jobs by id, whole."""
    jobs: list[Job[Any]] = []
    for at in range(0, len(ids), _LOOK_MAX):
        found: list[Snapshot] = yield ops.look(ids[at : at + _LOOK_MAX])
        jobs += [job_of(app, snapshot) for snapshot in found]
    return tuple(jobs)


def jobs(app: Home, ops: Operations, wanted: Wanted, cursor: str, limit: int) -> Steps[Page[Job[Any]]]:
    """A page of jobs; see `Inspector.jobs`."""
    check_limit(limit)
    survey: Survey = yield ops.survey()
    everywhere = _places(survey, wanted)
    filtered = wanted.name is not None or wanted.error is not None
    count = None if filtered or wanted.queue is not None else sum(place.count for place in everywhere)
    taken, room = list[Job[Any]](), SCAN_MAX
    for place in _from(cursor, everywhere):
        # The queue of what runs or has ended is known only when it is read.
        picky = filtered or (wanted.queue is not None and not place.queue)
        more = True
        while more:
            if len(taken) == limit or room <= 0:
                return Page(tuple(taken), instant(survey.now_ms), count, place.cursor)
            step = min(_STEP, room) if picky else min(limit - len(taken), PAGE_MAX)
            part: Part = yield ops.page(place.state, place.queue, place.offset, step)
            found = yield from _with_payloads(ops, part.jobs)
            fitting = [one for one in (job_of(app, snapshot) for snapshot in found) if wanted.takes(one)]
            free = limit - len(taken)
            taken += fitting[place.skip : place.skip + free]
            if len(fitting) > place.skip + free:
                place = replace(place, skip=place.skip + free)
            else:
                place, more = replace(place, offset=place.offset + step, skip=0), part.more
                room -= step if picky else 0
    return Page(tuple(taken), instant(survey.now_ms), count)


def queues(ops: Operations) -> Steps[Page[QueueRow]]:
    """All queues, by name."""
    survey: Survey = yield ops.survey()
    rows = tuple(sorted(map(QueueRow.of, survey.queues), key=lambda row: row.name))
    return Page(rows, instant(survey.now_ms), len(rows))


def locks(ops: Operations, cursor: str, limit: int) -> Steps[Page[LockRow]]:
    """A page of the locks that are held."""
    check_limit(limit)
    if cursor and not _is_number(cursor):
        raise bad_cursor(cursor)
    found: LockPage = yield ops.holders((), int(cursor or 0), limit)
    rows = tuple(LockRow.of(entry, found.now_ms) for entry in found.locks if entry.mode)
    following = str(int(cursor or 0) + limit) if found.more else ""
    return Page(rows, instant(found.now_ms), found.count, following)


def lock(ops: Operations, key: str) -> Steps[LockRow]:
    """One lock that is held."""
    found: LockPage = yield ops.holders([key])
    (entry,) = found.locks
    if not entry.mode:
        some: LockPage = yield ops.holders((), 0, 100)
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
    if by not in UNITS:
        raise BadOption(
            f"by={shown(by)} is nothing that history is kept by.",
            hint='Give "minute" or "day".',
            option="by",
        )
    if not 1 <= last <= HISTORY_MAX[by]:
        raise BadOption(
            f"last={last} is not possible by {by}.", hint=f"Give 1 to {HISTORY_MAX[by]:,}.", option="last"
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
    found: LockPage = yield ops.holders((), 0, 1)
    return instant(found.now_ms)


def _places(survey: Survey, wanted: Wanted) -> list[_Place]:
    """The lists that hold what is wanted, in the order of a listing."""
    if wanted.state is not None and wanted.state not in STATES:
        raise BadOption(
            f"no jobs are listed by the state {shown(wanted.state)}.", hint=nearest(wanted.state, STATES)
        )
    known = sorted(survey.queues, key=lambda queue: queue.name)
    if wanted.queue is not None:
        known = [queue for queue in known if queue.name == wanted.queue]
        if not known:
            raise QueueNotFound(
                f"no job was ever put into a queue {shown(wanted.queue)}.",
                hint=nearest(wanted.queue, [queue.name for queue in survey.queues])
                or "There is no queue yet.",
                queue=wanted.queue,
            )
    places = [_Place("running", "", survey.running)]
    places += [_Place("ready", queue.name, queue.ready) for queue in known]
    places += [_Place("scheduled", queue.name, queue.scheduled) for queue in known]
    places += [_Place("dead", "", survey.dead), _Place("rejected", "", survey.rejected)]
    places += [_Place("done", "", survey.done_kept)]
    states = {"dead": ("dead", "rejected")}.get(wanted.state or "", (wanted.state,))
    return [place for place in places if wanted.state is None or place.state in states]


def _from(cursor: str, places: list[_Place]) -> list[_Place]:
    """The places from a cursor on."""
    if not cursor:
        return _filled(places)
    state, _, rest = cursor.partition("/")
    queue, *numbers = rest.split("/")
    for at, place in enumerate(places):
        if (
            (place.state, place.queue) == (state, queue)
            and len(numbers) == 2
            and all(map(_is_number, numbers))
        ):
            return [replace(place, offset=int(numbers[0]), skip=int(numbers[1])), *_filled(places[at + 1 :])]
    raise bad_cursor(cursor)


def _filled(places: Sequence[_Place]) -> list[_Place]:
    # An empty one would end a full page with a cursor behind which there is nothing.
    return [place for place in places if place.count]


def _with_payloads(ops: Operations, found: Sequence[Snapshot]) -> Steps[list[Snapshot]]:
    """The same snapshots; those whose payload lies apart are read anew with it, for the name stands in there."""
    whole: dict[str, Snapshot] = {}
    apart = [snapshot.id for snapshot in found if is_partial(snapshot)]
    for at in range(0, len(apart), _LOOK_MAX):
        again: list[Snapshot] = yield ops.look(apart[at : at + _LOOK_MAX])
        whole |= {snapshot.id: snapshot for snapshot in again if snapshot.record}
    return [whole.get(snapshot.id, snapshot) for snapshot in found]


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 16


def check_limit(limit: int) -> None:
    """Refuse a page that no script would answer.

    Raises:
        BadOption: a limit out of bounds.
    """
    if not 1 <= limit <= PAGE_MAX:
        raise BadOption(f"limit={limit} is not possible.", hint=f"Give 1 to {PAGE_MAX:,}.", option="limit")


def bad_cursor(cursor: str) -> BadOption:
    """The error about a cursor that is none."""
    hint = "Take it, as it is, from `next` of the page before, with the same filters."
    return BadOption(f"{shown(cursor)} is not the cursor of a next page.", hint=hint, option="cursor")
