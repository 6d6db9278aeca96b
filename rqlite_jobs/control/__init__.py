"""What operators do to jobs, queues, locks and workers. The same for Python, the command line and pages."""

from rqlite_jobs.control.control import Control

__all__ = ["Control"]
