"""Rows as data for JSON: the one serialiser behind every `--json`, so that field names are those of the rows."""

import dataclasses
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from rqlite_jobs import models, tags
from rqlite_jobs.errors import shown
from rqlite_jobs.inspector.jobs import call_text
from rqlite_jobs.job import Job

_IN_LISTS = tuple(
    "id state name queue tags attempts crashes last_error lock_key run_at enqueued_at started_at finished_at "
    "progress result_expires_at".split()
)


def to_json(value: Any, *, whole: bool = False) -> Any:
    """Turn a row, or anything made of rows, into what `json.dumps` takes.

    Args:
        value: a row, a `Job`, a time, a list or mapping of them.
        whole: a job with its arguments and traceback. Without it a job is what a list shows, bounded: its call
            as text, at most 200 characters.

    Times are ISO 8601 in UTC with milliseconds. Arguments stand as they are sent: JSON, with the self-describing
    tags of the codec for what JSON does not know.

    >>> to_json({"at": datetime(2031, 7, 1, 2, tzinfo=UTC)})     # doctest: +SKIP
    {'at': '2031-07-01T02:00:00.000+00:00'}
    """
    if isinstance(value, Job):
        return _job(value, whole)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: to_json(getattr(value, field.name), whole=whole)
            for field in dataclasses.fields(value)
            if not field.name.startswith("_")
        }
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds")
    if isinstance(value, Mapping):
        return {str(key): to_json(item, whole=whole) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item, whole=whole) for item in value]
    return str(value) if isinstance(value, Path) else value


def _job(job: Job[Any], whole: bool) -> dict[str, Any]:
    told = {name: to_json(getattr(job, name)) for name in _IN_LISTS}
    told["call"] = call_text(job)
    if whole:
        told["args"] = [data_of(value) for value in job.args]
        told["kwargs"] = {name: data_of(value) for name, value in job.kwargs.items()}
        told["traceback"] = job.traceback
    if job.outcome is not None:
        told["outcome"], told["holder_id"] = job.outcome, job.holder_id
    return told


def data_of(value: Any) -> Any:
    """One argument, or a result, as it is sent; its repr, if a class of the user's has changed so that it cannot be."""
    if isinstance(value, models.Unbuilt):
        return data_of(value.data)
    try:
        return msgspec.json.decode(msgspec.json.encode(tags.dump(value)))
    except Exception:  # dumping asks the user's classes for their fields
        return shown(value, 1000)
