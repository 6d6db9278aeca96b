"""The story of `rqj demo`, told from what is really seen; each chapter stops it if it sees otherwise."""

import time
from collections import Counter
from typing import Any

from rqlite_jobs.cli.narrator import Narrator
from rqlite_jobs.cli.stage import NotSeen, Stage
from rqlite_jobs.cli.tables import Column, draw
from rqlite_jobs.job import Job

SALES, BOOKS = 1000, 10
_CATALOGUE = "autumn"


class Story:
    """A day in the bookstore.

    Args:
        stage: where it plays.
        narrator: who tells it.
    """

    def __init__(self, stage: Stage, narrator: Narrator) -> None:
        self._stage = stage
        self._narrator = narrator
        self._shop: Any = None

    def tell(self) -> None:
        """Tell all of it.

        Raises:
            NotSeen: something did not happen as promised; the message says what.
        """
        self._shop = self._stage.open()
        own = f"on a server of its own ({self._stage.server_version})"
        self._narrator.say(f"A bookstore in {self._stage.folder}, {own}.")
        self.many_sales()
        self.ladder()
        self.killed_worker()
        self.sales_table()
        self.what_an_operator_sees()

    def many_sales(self) -> None:
        """A thousand enqueues, ten runs."""
        say, inspect = self._narrator.say, self._shop.app.inspect
        self._narrator.chapter("A thousand sales, ten books, no worker yet")
        began_s = time.monotonic()
        holders: dict[int, str] = {}
        outcomes: Counter[str] = Counter()
        for number, book_id in enumerate(self._shop.store.sales()):
            job = self._shop.crunch_sales.enqueue(book_id)
            outcomes[job.outcome] += 1
            holder = holders.setdefault(book_id, job.id)
            _check(
                job.id == holder, f"a sale of book {book_id} was answered with another job than its holder"
            )
            if number % 50 == 0:
                self._narrator.busy(f"{number} of {SALES} sales")
                self._stage.look_around()
        took_s = time.monotonic() - began_s
        self._narrator.quiet()
        _check(
            dict(outcomes) == {"enqueued": BOOKS, "duplicate": SALES - BOOKS},
            f"the answers were {dict(outcomes)}",
        )
        _check(inspect.stats().ready == BOOKS, f"{inspect.stats().ready} jobs are ready, not {BOOKS}")
        say(f"{SALES:,} x crunch_sales.enqueue(book_id), in {took_s:.1f} s:")
        say(f"  {outcomes['enqueued']:>3} were stored, one for each book")
        say(f"  {outcomes['duplicate']:>3} were answered with the job that already holds the lock")

        first, second = self._stage.start_worker(), self._stage.start_worker()
        wanted = f"{BOOKS} books crunched"
        self._stage.until(wanted, lambda: inspect.stats().done >= BOOKS or None, "two workers start")
        runs = [total.runs for total in self._shop.store.totals()]
        _check(runs == [1] * BOOKS, f"the books were crunched {runs} times")
        _check(inspect.stats().locks == 0, "a lock is still held, and no job is left")
        say(f"Workers {first} and {second} start: {sum(runs)} runs, and no lock is left")

    def ladder(self) -> None:
        """Done at once, done at the third attempt, dead."""
        shop = self._shop
        self._narrator.chapter("Three jobs: one works, one fails twice, one always fails")
        began_s = time.monotonic()
        jobs: list[Job[Any]] = [
            shop.send_email.enqueue("ada@example.org", "Your order"), shop.flaky.enqueue(1), shop.broken.enqueue(2)
        ]  # fmt: skip
        seen: dict[str, list[tuple[str, int]]] = {job.name: [] for job in jobs}
        now = {job.name: job for job in jobs}

        def look() -> bool | None:
            for job in jobs:
                found = now[job.name] = job.refresh()
                step = (found.state, found.attempts)
                if found.state in ("scheduled", "done", "dead") and step not in seen[job.name]:
                    seen[job.name].append(step)
                    self._tell_attempt(found, time.monotonic() - began_s)
            return all(job.state in ("done", "dead") for job in now.values()) or None

        def doing() -> str:
            waits = [f"{job.name} in {_in_s(job):.1f} s" for job in now.values() if job.state == "scheduled"]
            return "next attempt: " + ", ".join(waits) if waits else "running"

        self._stage.until("the ladder at its end", look, doing)
        waits = [("scheduled", 1), ("scheduled", 2)]
        wanted = {
            "send_email": [("done", 1)],
            "flaky": [*waits, ("done", 3)],
            "broken": [*waits, ("dead", 3)],
        }
        _check(seen == wanted, f"the attempts were {seen}")
        error = now["broken"].last_error
        _check(error == "ValueError('bad data')", f"the error of the dead job is {error}")

    def killed_worker(self) -> None:
        """A worker dies in the middle of a job; another does it."""
        say, store, inspect = self._narrator.say, self._shop.store, self._shop.app.inspect
        self._narrator.chapter("A worker is killed in the middle of a job")
        self._stage.until("two workers up", lambda: inspect.stats().workers == 2 or None)
        job = self._shop.print_catalogue.enqueue(_CATALOGUE, 12)

        def printing() -> list[int] | None:
            pages: list[int] = store.pages(_CATALOGUE)
            return pages if len(pages) >= 5 else None

        pages = self._stage.until(
            "a catalogue in print", printing, lambda: f"{len(store.pages(_CATALOGUE))} of 12 pages"
        )
        killed = pages[-1]
        self._stage.kill_worker(killed)
        killed_s = time.monotonic()
        printed = len(store.pages(_CATALOGUE))
        _check(0 < printed < 12, f"the catalogue had {printed} of 12 pages when its worker was killed")
        say(f"Worker {killed} prints a catalogue, and is killed (SIGKILL) at page {printed} of 12")

        def begun_elsewhere() -> int | None:
            return next((pid for pid in store.pages(_CATALOGUE) if pid != killed), None)

        other = self._stage.until(
            "the job begun by another worker", begun_elsewhere, "the dead worker's lease (2 s) runs out"
        )
        later_s = time.monotonic() - killed_s
        say(f"{later_s:.1f} s later its lease (2 s) is over: worker {other} begins the job anew")
        self._stage.until(
            "the job done", lambda: job.refresh().state == "done" or None, lambda: _page_of(store, other)
        )
        job = job.refresh()
        _check(set(store.pages(_CATALOGUE)) == {other}, "not all pages are by the other worker")
        _check((job.attempts, job.crashes) == (2, 1), f"attempts {job.attempts}, crashes {job.crashes}")
        say(f"All 12 pages by worker {other}: done at attempt 2, after 1 crash")

    def sales_table(self) -> None:
        """What the ten jobs wrote."""
        totals = self._shop.store.totals()
        self._narrator.chapter("What the jobs have written")
        self._narrator.quiet()
        columns = [Column("BOOK"), *(Column(title, right=True) for title in ("SOLD", "REVENUE", "RUNS"))]
        draw(
            columns,
            [(one.title, str(one.copies), f"{one.cents / 100:,.2f}", str(one.runs)) for one in totals],
        )

    def what_an_operator_sees(self) -> None:
        """The same from outside."""
        self._narrator.chapter("What an operator sees")
        job = self._shop.crunch_sales.options(delay="1h").enqueue(7)
        _check(job.state == "scheduled", f"a job for in an hour is {job.state}")
        self._narrator.say("(One more sale waits for an hour, so that there is a lock to be seen.)")
        for noun in ("stats", "locks", "dead"):
            self._narrator.command(f"rqj {noun}")
            self._stage.run(noun)
        stats = self._shop.app.inspect.stats()
        found = {
            name: getattr(stats, name)
            for name in ("done", "dead", "scheduled", "locks", "crashed", "refused")
        }
        wanted = {"done": 13, "dead": 1, "scheduled": 1, "locks": 1, "crashed": 1, "refused": SALES - BOOKS}
        _check(found == wanted, f"the numbers are {found}")

    def _tell_attempt(self, job: Job[Any], at_s: float) -> None:
        what = f"{job.last_error}, next in {_in_s(job):.1f} s"
        what = {"done": "done", "dead": f"dead: {job.last_error}"}.get(job.state, what)
        style = {"done": "green", "dead": "red"}.get(job.state, "")
        self._narrator.say(f"{at_s:3.1f} s  {job.name:<10}  try {job.attempts}  {what}", style)


def _check(seen: bool, otherwise: str) -> None:
    if not seen:
        raise NotSeen(f"the demo saw something else than it promises: {otherwise}.")


def _in_s(job: Job[Any]) -> float:
    """How long from now a job is due, by the clock of this host, which is the server's too."""
    return max(0.0, job.run_at.timestamp() - time.time()) if job.run_at else 0.0


def _page_of(store: Any, pid: int) -> str:
    return f"{store.pages(_CATALOGUE).count(pid)} of 12 pages"
