"""The changelog: who did what, a row for each line, and the question for a page of them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from rqlite_jobs.changelog import ACTS, Changes
from rqlite_jobs.durations import instant
from rqlite_jobs.errors import BadOption, nearest, shown
from rqlite_jobs.inspector.cursor import bad_cursor
from rqlite_jobs.inspector.questions import SCAN_MAX, check_limit
from rqlite_jobs.inspector.rows import Page, moment
from rqlite_jobs.operations import Operations
from rqlite_jobs.steps import Steps

_STEP = 500  # lines of up to some 5 KiB each: the server answers nobody else while it looks at them
_CURSOR = re.compile(r"[0-9]{1,20}-[0-9]{1,20}[ce]")


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """One line of the changelog: all of one kind that one call did.

    Attributes:
        at: when, by the server's clock; by that of the app, if it has one of its own.
        act: what: `cancel delete bury revive retry purge pause resume release recover`, or by itself `expire reject
            takeover`.
        by: who; of what happened by itself, the worker or the script that met it.
        ids: the jobs. A line names as many as fit into 2,400 bytes; of `release`, those that held the locks.
        count: how many jobs there were.
        queue: of a purge, a pause and a resume.
        lock_keys: of `release`, `reject` and `takeover`, those of `ids` in their order.
        other_ids: of `reject`, who held those locks; of `takeover`, who had held them before.
        workers: of `recover`, those that were given up; `crashed`: how many jobs had been running there.
        crashed: see `workers`.
        force: of a release, whether also locks of living jobs were to be freed.
        for_ms: of a pause, how long it is; None: until the queue is resumed.
        why: of a burial, the reason.
    """

    at: datetime | None
    act: str
    by: str
    ids: tuple[str, ...] = ()
    count: int = 0
    queue: str | None = None
    lock_keys: tuple[str, ...] = ()
    other_ids: tuple[str, ...] = ()
    workers: tuple[str, ...] = ()
    crashed: int = 0
    force: bool = False
    for_ms: int | None = None
    why: str | None = None

    @classmethod
    def of(cls, line: Mapping[str, str]) -> Self:
        """Make the row from what the script answered; what cannot be read is left out."""
        return cls(
            at=moment(_number(line.get("at"))),
            act=line.get("act", ""),
            by=line.get("by", ""),
            ids=_list(line.get("ids")),
            count=_number(line.get("count")),
            queue=line.get("queue"),
            lock_keys=_list(line.get("keys")),
            other_ids=_list(line.get("others")),
            workers=_list(line.get("workers")),
            crashed=_number(line.get("crashed")),
            force=line.get("force") == "1",
            for_ms=_number(line.get("for_ms")) or None,
            why=line.get("why"),
        )


def changelog(
    ops: Operations, act: str | None, id: str | None, cursor: str, limit: int
) -> Steps[Page[ChangeRow]]:
    """A page of the changelog; see `Inspector.changelog`."""
    check_limit(limit)
    if act is not None and act not in ACTS:
        raise BadOption(f"the changelog tells of no {shown(act)}.", hint=nearest(act, ACTS), option="act")
    if id == "":  # to the script that is no filter
        raise BadOption("id='' is no id.", hint="Leave it out to see all lines.", option="id")
    if cursor and not _CURSOR.fullmatch(cursor):
        raise bad_cursor(cursor)
    filtered = act is not None or id is not None
    rows, looked = list[ChangeRow](), 0
    while True:
        free = limit - len(rows)
        found: Changes = yield ops.changes(cursor, free, _STEP if filtered else free, act or "", id or "")
        rows += map(ChangeRow.of, found.lines)
        looked, cursor = looked + found.looked, found.next
        if not cursor or len(rows) == limit or (filtered and looked >= SCAN_MAX):
            return Page(tuple(rows), instant(found.now_ms), None if filtered else found.count, cursor)


def _list(text: str | None) -> tuple[str, ...]:
    return tuple(text.split("\0")) if text else ()


def _number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 16 else 0
