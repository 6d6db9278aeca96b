"""Filters: which jobs a listing is to hold."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from rqlite_jobs.errors import BadOption, WrongArguments, a_type, shown
from rqlite_jobs.inspector.jobs import Home, job_of, payload_of
from rqlite_jobs.job import Job, Record
from rqlite_jobs.models import Unbuilt
from rqlite_jobs.snapshot import Snapshot


class AsText(str):
    """A value as it was typed: it is like every argument that reads the same, `42` like 42 and like "42"."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Filter:
    """Which jobs are wanted; None, or nothing: any.

    Raises:
        BadOption: a name, error, tag or text that is empty, or no text.

    Attributes:
        queue: those of this queue.
        name: those of the job declared under this name.
        error: those with this text in their last error, upper and lower case alike.
        tag: those with this tag.
        arg: those called with these arguments, by the name of the parameter. Where the app declares the job, by its
            signature: it does not matter whether an argument was given by position, by name, or not at all because it
            has a default. Else by the name in the call; "0" is the first one given by position.
        text: those with this text in their payload (name, arguments, tags, as JSON), upper and lower case alike.
    """

    queue: str | None = None
    name: str | None = None
    error: str | None = None
    tag: str | None = None
    arg: Mapping[str, Any] = field(default_factory=dict)
    text: str | None = None

    def __post_init__(self) -> None:
        # An empty text lies in every other: a variable that was not set must not delete everything.
        for option in ("name", "error", "tag", "text"):
            value = getattr(self, option)
            if value is not None and (not isinstance(value, str) or not value):
                found = "empty" if value == "" else f"{a_type(value)}, not text"
                raise BadOption(
                    f"{option}={shown(value)} is {found}.", hint="Leave it out to take all.", option=option
                )

    @property
    def looks_inside(self) -> bool:
        """Whether a job must be read to know; the queue alone is known of most without."""
        return self.error is not None or self.in_payload

    @property
    def in_payload(self) -> bool:
        """Whether its payload must be read."""
        return bool(self.arg) or any(one is not None for one in (self.name, self.tag, self.text))

    def may_take(self, snapshot: Snapshot) -> bool:
        """Can this be one of them, as far as is known without its payload?"""
        record = Record.read(snapshot.record)
        if self.queue is not None and self.queue != (record.queue if record else ""):
            return False
        return self.error is None or self.error.casefold() in snapshot.tries.error.casefold()

    def takes(self, home: Home, snapshot: Snapshot) -> Job[Any] | None:
        """The job, if it is one of them."""
        if not self.may_take(snapshot):
            return None
        if self.text is not None:
            raw = payload_of(snapshot).decode("utf-8", "replace")
            if self.text.casefold() not in raw.casefold():
                return None
        job = job_of(home, snapshot)
        if self.name not in (None, job.name) or (self.tag is not None and self.tag not in job.tags):
            return None
        return job if not self.arg or self._called_so(home, job) else None

    def _called_so(self, home: Home, job: Job[Any]) -> bool:
        given: dict[str, Any] = {**{str(at): value for at, value in enumerate(job.args)}, **job.kwargs}
        handler = home.handlers.get(job.name)
        if handler is not None:
            with suppress(WrongArguments):  # the payload of an older signature
                given |= handler.declared.binder.bind(job.args, job.kwargs)
        return all(name in given and _alike(given[name], wanted) for name, wanted in self.arg.items())


def check_arg(arg: object) -> Mapping[str, Any]:
    """The arguments of a filter, if they are some.

    Raises:
        BadOption: they are no mapping of names.
    """
    if arg is None:
        return {}
    if not isinstance(arg, Mapping) or not all(isinstance(name, str) for name in arg):
        raise BadOption(
            f"arg={shown(arg)} is {a_type(arg)}, and not arguments by name.",
            hint='Write arg={"book_id": 42}; the first one given by position is "0".',
            option="arg",
        )
    return arg


def _alike(value: Any, wanted: Any) -> bool:
    if isinstance(value, Unbuilt):
        value = value.data
    try:
        if isinstance(wanted, AsText):
            return _reads_as(value, wanted)
        # True is 1 for Python, and not for whoever looks for one of them.
        return bool(value == wanted) and isinstance(value, bool) == isinstance(wanted, bool)
    except Exception:  # comparing and printing run code of the user's classes
        return False


def _reads_as(value: Any, text: str) -> bool:
    if isinstance(value, bool) or value is None:
        return text in (str(value), json.dumps(value))
    return str(value) == text
