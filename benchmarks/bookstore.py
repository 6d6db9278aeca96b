"""The apps that are measured: jobs that do nothing but note when they ran, on a server of the benchmark's own."""

import logging
import time

import report as _report  # noqa: F401  (first of all: it puts the checkout on the path)

from rqlite_jobs import App, until_executed

# A worker says that these servers keep nothing; here that is meant so.
logging.getLogger("rqlite_jobs").setLevel(logging.ERROR)


class Bookstore:
    """Two apps, one of plain and one of async functions; each job has one small argument.

    Args:
        url: the server's.

    Attributes:
        app, async_app: a worker runs jobs in threads for the one, on an event loop for the other.
        crunch, acrunch: jobs without a lock.
        crunch_once: the same as `crunch` with a lock, until it is executed.
        started_s, ended_s: when each run of these three began, and when it ended.
    """

    def __init__(self, url: str) -> None:
        self.app, self.async_app = App("bookstore", url=url), App("async_bookstore", url=url)
        self.started_s: list[float] = []
        self.ended_s: list[float] = []

        def crunch_sales(book_id: int) -> None:
            self.started_s.append(time.monotonic())
            self.ended_s.append(time.monotonic())

        async def acrunch_sales(book_id: int) -> None:
            crunch_sales(book_id)

        self.crunch = self.app.job(crunch_sales)
        self.crunch_once = self.app.job(name="crunch_once", lock=until_executed())(crunch_sales)
        self.acrunch = self.async_app.job(name="crunch_sales")(acrunch_sales)

    def forget(self) -> None:
        """Forget all runs so far."""
        self.started_s.clear()
        self.ended_s.clear()

    @property
    def took_s(self) -> float:
        """From the first job's start to the last one's end."""
        return max(self.ended_s) - min(self.started_s)
