"""Reading what is there: jobs, queues, locks, workers, numbers. The same for Python, the command line and pages."""

from rqlite_jobs.inspector.changes import ChangeRow
from rqlite_jobs.inspector.document import to_json
from rqlite_jobs.inspector.jobs import call_text, job_of
from rqlite_jobs.inspector.reader import Inspector
from rqlite_jobs.inspector.rows import HistoryRow, LockRow, Page, PauseRow, QueueRow, Stats, WorkerRow
from rqlite_jobs.inspector.why import Reason

__all__ = [
    "ChangeRow",
    "HistoryRow",
    "Inspector",
    "LockRow",
    "Page",
    "PauseRow",
    "QueueRow",
    "Reason",
    "Stats",
    "WorkerRow",
    "call_text",
    "job_of",
    "to_json",
]
