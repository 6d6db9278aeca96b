"""How much of the server's memory does a waiting job take?"""

from bookstore import Bookstore
from report import Report
from server import Server


def main() -> None:
    report = Report(__doc__, rounds=1, n=100_000, quick=(1, 20_000))
    n = report.n
    for _ in range(report.rounds):
        for name, unit, handler in (
            ("waiting job with one small argument", "B", "crunch"),
            ("the same with a lock", "B", "crunch_once"),
        ):
            with Server(report.server_kind) as server:
                version = server.version
                shop = Bookstore(server.url)
                getattr(shop, handler).enqueue_many((book_id,) for book_id in range(100))
                before = server.used_memory
                getattr(shop, handler).enqueue_many((book_id,) for book_id in range(100, n + 100))
                report.add(name, unit, (server.used_memory - before) / n)
    report.bar("waiting job, bytes", report.median("waiting job with one small argument"), "<=", 170)
    report.end(version)


if __name__ == "__main__":
    main()
