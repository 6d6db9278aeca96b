"""How fast are jobs enqueued in bulk, beside a bare script that stores as many a call?"""

from bare import Bare
from bookstore import Bookstore
from report import Report, rate
from server import Server

BATCH, LOCKED = 1000, 200


def main() -> None:
    report = Report(__doc__, rounds=9, n=10_000, quick=(3, 2000))
    n = report.n
    with Server(report.server_kind) as server:
        bare, shop = Bare(server.url), Bookstore(server.url)
        once = iter(range(10**9))

        def plain() -> None:
            shop.crunch.enqueue_many((book_id,) for book_id in range(n))

        def locked() -> None:
            shop.crunch_once.enqueue_many([(next(once),) for _ in range(n)])

        def refused() -> None:
            shop.crunch_once.enqueue_many([(-1,)] * n)

        plain()
        shop.crunch_once.enqueue(-1)
        for _ in range(report.rounds):
            report.add("HSET and LPUSH, 1,000 a call", "jobs/s", rate(n, lambda: bare.bulk(n, BATCH)))
            bare.clear()
            report.add("enqueue_many", "jobs/s", rate(n, plain))
            report.add("enqueue_many with locks", "jobs/s", rate(n, locked))
            report.add("enqueue_many, refused as duplicates", "jobs/s", rate(n, refused))
        report.ratio("enqueue_many / HSET and LPUSH", "enqueue_many", "HSET and LPUSH, 1,000 a call")
        report.ratio("with locks / without", "enqueue_many with locks", "enqueue_many")
        report.end(server.version)


if __name__ == "__main__":
    main()
