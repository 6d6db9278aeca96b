"""How many round trips and commands does a job cost over its life, and what does an idle worker ask?"""

import threading
import time
from collections.abc import Callable

from bookstore import Bookstore
from report import Report
from server import Server

from rqlite_jobs import App
from rqlite_jobs.worker import Worker

# What a client of ours sends. Every other command that the server counts was called inside a script.
SENT = ("evalsha", "eval", "blpop", "sadd")
START_DEADLINE_S = 30.0
SETTLE_S = 0.5  # each slot looks once for work before it sleeps


def main() -> None:
    report = Report(__doc__, rounds=1, n=5000, quick=(1, 500))
    n = report.n
    idle_s = 15.0 if n > 500 else 5.0
    with Server(report.server_kind) as server:
        shop = Bookstore(server.url)

        def one_by_one() -> None:
            for book_id in range(n):
                shop.crunch.enqueue(book_id)

        def locked() -> None:
            for book_id in range(n):
                shop.crunch_once.enqueue(book_id)

        def bulk() -> None:
            shop.crunch.enqueue_many((book_id,) for book_id in range(n))

        def work() -> None:
            Worker(shop.app, concurrency=1, burst=True).run()

        lives = {"one by one": one_by_one, "with a lock": locked, "in bulk": bulk}
        for enqueue in lives.values():  # namespace opened, scripts known, history full enough to be trimmed
            enqueue()
            work()
        for _ in range(report.rounds):
            for name, enqueue in lives.items():
                for step, run in ((f"enqueue {name}", enqueue), (f"work off what came {name}", work)):
                    sent, inside = _counted(server, run)
                    report.add(f"{step}: round trips", "a job", sent / n)
                    report.add(f"{step}: commands in scripts", "a job", inside / n)
            sent, inside = _idle(server, shop.app, idle_s)
            report.add("idle worker, 10 slots: commands sent", "a second", sent / idle_s)
            report.add("idle worker, 10 slots: commands in scripts", "a second", inside / idle_s)
        idle = report.median("idle worker, 10 slots: commands sent")
        report.bar("idle worker, commands a second", idle, "<=", 2)
        report.end(server.version)


def _counted(server: Server, run: Callable[[], object]) -> tuple[int, int]:
    """How many commands were sent while `run` ran, and how many were called inside scripts."""
    before = server.calls
    run()
    made = server.calls - before
    sent = sum(made[name] for name in SENT)
    return sent, made.total() - sent - made["info"]


def _idle(server: Server, app: App, seconds: float) -> tuple[int, int]:
    """The same for a worker that has nothing to do."""
    worker = Worker(app, concurrency=10)
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        deadline_s = time.monotonic() + START_DEADLINE_S
        while not server.client.info("clients")["blocked_clients"]:
            if time.monotonic() > deadline_s:
                raise SystemExit("the worker does not wait for work")
            time.sleep(0.01)
        time.sleep(SETTLE_S)
        return _counted(server, lambda: time.sleep(seconds))
    finally:
        worker.stop()
        thread.join()


if __name__ == "__main__":
    main()
