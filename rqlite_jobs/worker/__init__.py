"""The engine: claims jobs, runs them, settles them, and keeps its lease meanwhile."""

from rqlite_jobs.worker.worker import Worker as Worker

__all__ = ["Worker"]
