"""rqlite-jobs in a harness that runs job queues side by side; see README.md here for how it is used."""

import sys
from datetime import UTC, datetime
from typing import ClassVar

sys.path.insert(0, "..")
import peer

from rqlite_jobs import App, until_executed
from rqlite_jobs.worker import Worker

SLOTS = {"c1": 1, "io": 100}


class RqliteJobs(peer.Adapter):
    name = "rqlite_jobs"
    modes: ClassVar = {"c1": {}, "best": {}, "p2": {"procs": 2}, "io": {}, "threads": {}}
    n: ClassVar = {"enqueue": 20_000, "bulk": 100_000, "process": 100_000}
    note = (
        "c1 = 1 slot, best = 10, threads = 100, io = 100 on an event loop; everything that is promised is on"
    )

    def open(self):
        self.app = self._app(peer.JOBS)

    def enqueue(self, job, payload):
        self.app.handlers[job].enqueue(payload)

    def bulk(self, job, payloads):
        self.app.handlers[job].enqueue_many([(payload,) for payload in payloads])

    def schedule(self, job, payload, when):
        self.app.handlers[job].options(run_at=datetime.fromtimestamp(when, UTC)).enqueue(payload)

    def unique(self, job, payload):
        self.app.handlers[f"unique_{job}"].enqueue(payload)

    def work(self, mode):
        app = self._app(peer.ASYNC_JOBS if mode == "io" else peer.JOBS)
        Worker(app, concurrency=100 if mode == "threads" else SLOTS.get(mode, 10)).run()

    def _app(self, jobs):
        app = App("bench", url=peer.REDIS_URL)
        for name, function in jobs.items():
            app.job(name=name)(function)
            app.job(name=f"unique_{name}", lock=until_executed())(function)
        return app


if __name__ == "__main__":
    peer.main(RqliteJobs())
