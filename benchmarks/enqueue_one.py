"""How fast are jobs enqueued one by one, beside what the client library itself allows?"""

from bare import Bare
from bookstore import Bookstore
from report import Report, rate
from server import Server


def main() -> None:
    report = Report(__doc__, rounds=25, n=1000, quick=(9, 300))
    n = report.n
    with Server(report.server_kind) as server:
        bare, shop = Bare(server.url), Bookstore(server.url)
        once = iter(range(10**9))
        shop.crunch_once.enqueue(-1)

        def plain() -> None:
            for book_id in range(n):
                shop.crunch.enqueue(book_id)

        def locked() -> None:
            for _ in range(n):
                shop.crunch_once.enqueue(next(once))

        def refused() -> None:
            for _ in range(n):
                shop.crunch_once.enqueue(-1)

        bare.trips(n)
        plain()
        for _ in range(report.rounds):
            report.add("EVALSHA of an empty script", "calls/s", rate(n, lambda: bare.trips(n)))
            report.add("EVALSHA of HSET and LPUSH", "calls/s", rate(n, lambda: bare.pushes(n)))
            report.add("enqueue", "jobs/s", rate(n, plain))
            report.add("enqueue with a lock", "jobs/s", rate(n, locked))
            report.add("enqueue, refused as a duplicate", "jobs/s", rate(n, refused))
        report.ratio("enqueue / empty script", "enqueue", "EVALSHA of an empty script")
        ratio = report.ratio("enqueue / HSET and LPUSH", "enqueue", "EVALSHA of HSET and LPUSH")
        report.bar("one by one, of what a bare EVALSHA loop reaches", ratio, ">=", 0.8)
        report.end(server.version)


if __name__ == "__main__":
    main()
