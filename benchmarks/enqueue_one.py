"""How fast are jobs enqueued one by one, beside what the client library itself allows?"""

import uuid
from collections.abc import Callable

from bare import Bare, words_of
from bookstore import Bookstore
from report import Report, rate
from server import Server


def main() -> None:
    report = Report(__doc__, rounds=25, n=1000, quick=(9, 300))
    n = report.n
    with Server(report.server_kind) as server:
        bare, held, shop = Bare(server.url), Bare(server.url, held=True), Bookstore(server.url)
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

        def own() -> Callable[[], None]:
            """The very calls that `plain` makes, every word of them ready to be sent."""
            calls = (
                shop.app.operations.enqueue([shop.crunch.prepare((book_id,), {})]) for book_id in range(n)
            )
            packed = [shop.app.caller.pack(call, "bare-lane", uuid.uuid4().hex[:16]) for call in calls]
            requests = [words_of(request) for request in packed]
            return lambda: bare.calls(requests)

        bare.trips(n)
        plain()
        for _ in range(report.rounds):
            report.add("EVALSHA of an empty script", "calls/s", rate(n, lambda: bare.trips(n)))
            report.add("EVALSHA of HSET and LPUSH", "calls/s", rate(n, lambda: bare.pushes(n)))
            report.add("the same, on one held connection", "calls/s", rate(n, lambda: held.pushes(n)))
            report.add("EVALSHA of our own script", "calls/s", rate(n, own()))
            report.add("enqueue", "jobs/s", rate(n, plain))
            report.add("enqueue with a lock", "jobs/s", rate(n, locked))
            report.add("enqueue, refused as a duplicate", "jobs/s", rate(n, refused))
        report.ratio("enqueue / empty script", "enqueue", "EVALSHA of an empty script")
        least = report.ratio("enqueue / HSET and LPUSH", "enqueue", "EVALSHA of HSET and LPUSH")
        report.ratio("enqueue / held connection", "enqueue", "the same, on one held connection")
        own_script = report.ratio("enqueue / our own script", "enqueue", "EVALSHA of our own script")
        report.bar("one by one, of a bare loop that stores as little as it can", least, ">=", 0.8)
        report.bar("one by one, of a bare loop of the same script", own_script, ">=", 0.8)
        report.end(server.version)


if __name__ == "__main__":
    main()
