"""What both benchmarks of processing share: rounds of no-op jobs through a worker, beside bare round trips."""

import time

from bare import Bare
from bookstore import Bookstore
from report import Report, rate
from server import Server

from rqlite_jobs import App, Handler
from rqlite_jobs.worker import Worker

WARM = 2000


def measure(question: str | None, slots: int) -> None:
    """Work off no-op jobs in this process with so many slots, and print what came of it."""
    report = Report(question, rounds=7, n=20_000, quick=(3, 5000))
    n = report.n
    with Server(report.server_kind) as server:
        bare, shop = Bare(server.url), Bookstore(server.url)
        kinds: dict[str, tuple[App, Handler[[int], None]]] = {
            "jobs": (shop.app, shop.crunch),
            "jobs with a lock": (shop.app, shop.crunch_once),
        }
        if slots > 1:
            kinds["async jobs"] = (shop.async_app, shop.acrunch)

        def work(name: str, count: int) -> tuple[float, float, float, float]:
            app, job = kinds[name]
            job.enqueue_many((book_id,) for book_id in range(count))
            shop.forget()
            reads, cpu_s, own_s = server.reads, server.cpu_s, time.process_time()
            Worker(app, concurrency=slots, burst=True).run()
            own_s, cpu_s, reads = time.process_time() - own_s, server.cpu_s - cpu_s, server.reads - reads
            assert len(shop.ended_s) == count, f"{len(shop.ended_s)} of {count} jobs ran"
            return count / shop.took_s, own_s / count * 1e6, cpu_s / count * 1e6, reads / count

        for name in kinds:
            work(name, WARM)
        for _ in range(report.rounds):
            # Half of the bare trips before, half after: what else the machine does may change in between.
            before = rate(n // 8, lambda: bare.trips(n // 8))
            pushes = rate(n // 8, lambda: bare.pushes(n // 8))
            for name in kinds:
                jobs, own_us, server_us, reads = work(name, n)
                report.add(name, "jobs/s", jobs)
                report.add(f"{name}: CPU of the worker", "us a job", own_us)
                report.add(f"{name}: CPU of the server", "us a job", server_us)
                report.add(f"{name}: round trips", "a job", reads)
            after = rate(n // 8, lambda: bare.trips(n // 8))
            report.add("EVALSHA of an empty script", "calls/s", 2 / (1 / before + 1 / after))
            report.add("EVALSHA of HSET and LPUSH", "calls/s", pushes)
        ratio = report.ratio("jobs / empty script", "jobs", "EVALSHA of an empty script")
        report.bar("jobs a bare trip (0.4: 8,000 jobs/s where it does 20,000 trips/s)", ratio, ">=", 0.4)
        report.end(server.version)
