"""How soon does an idle worker start a job: from the call of enqueue to the handler's first line?"""

import struct
import subprocess
import sys
import time
from pathlib import Path

from report import Report, percentile
from server import Server

from rqlite_jobs import App
from rqlite_jobs.worker import Worker

PAUSE_S = 0.02
DEADLINE_S = 60.0
STAMP = struct.Struct("<d")
WORKER = "--serve"


def shop(url: str) -> App:
    app = App("bookstore", url=url)

    def stamp(asked_s: float) -> None:
        # Both processes read one and the same clock: that of the machine.
        sys.stdout.buffer.write(STAMP.pack((time.monotonic() - asked_s) * 1000))
        sys.stdout.buffer.flush()

    app.job(stamp)
    return app


def main() -> None:
    report = Report(__doc__, rounds=3, n=500, quick=(1, 50))
    with Server(report.server_kind) as server:
        app = shop(server.url)
        stamp = app.handler("stamp")
        command = [sys.executable, str(Path(__file__).resolve()), WORKER, server.url]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as worker:
            assert worker.stdout is not None
            try:
                for _ in range(5):  # connections made, scripts loaded, worker asleep again
                    stamp.enqueue(time.monotonic())
                    worker.stdout.read(STAMP.size)
                late_ms: list[float] = []
                for _ in range(report.rounds):
                    found_ms: list[float] = []
                    for _ in range(report.n):
                        time.sleep(PAUSE_S)
                        stamp.enqueue(time.monotonic())
                        found_ms += STAMP.unpack(worker.stdout.read(STAMP.size))
                    for share in (0.5, 0.95, 0.99):
                        report.add(f"p{share * 100:.0f}", "ms", percentile(found_ms, share))
                    late_ms += found_ms
            finally:
                worker.terminate()
        report.bar("p50 in ms, of all", percentile(late_ms, 0.5), "<=", 10)
        report.end(server.version)


if __name__ == "__main__":
    if sys.argv[1:2] == [WORKER]:
        Worker(shop(sys.argv[2])).run()
    else:
        main()
