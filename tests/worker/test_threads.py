"""Threads that run functions for an event loop."""

import asyncio
import queue
import threading
from typing import Any

from rqlite_jobs.worker.threads import Threads


def test_it_answers_with_what_the_function_returned() -> None:
    async def main() -> list[Any]:
        threads = Threads(2)
        return [
            await threads.run(lambda: 7),
            *await asyncio.gather(*(threads.run(lambda: 8) for _ in range(5))),
        ]

    assert asyncio.run(main()) == [7, 8, 8, 8, 8, 8]


def test_there_are_as_many_as_are_needed_and_no_more() -> None:
    def own() -> int:
        return sum(one.name.startswith("rqj-thread-") for one in threading.enumerate()) - before

    before = 0
    before = own()

    async def main() -> None:
        threads = Threads(3)
        for _ in range(20):
            await threads.run(lambda: None)
        assert own() == 1, "one that is free is used again"
        go = threading.Event()
        waiting = [threads.run(go.wait) for _ in range(10)]
        assert own() == 3
        go.set()
        await asyncio.gather(*waiting)

    asyncio.run(main())


def test_a_slow_function_never_blocks_another_while_there_is_a_thread() -> None:
    """The first of each round ends only when the second has run."""

    async def main() -> None:
        threads = Threads(2)
        for _ in range(3000):
            await threads.run(lambda: None)
            go = threading.Event()
            await asyncio.wait_for(asyncio.gather(threads.run(go.wait), threads.run(go.set)), 10)

    asyncio.run(main())


def test_nor_does_one_that_was_taken_but_has_not_begun() -> None:
    """Between a thread's taking of a function and its beginning another function comes in."""
    taken, hold = threading.Event(), threading.Event()

    class Held:
        def __init__(self) -> None:
            self.queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
            self.put, self.qsize = self.queue.put, self.queue.qsize

        def get(self) -> Any:
            item = self.queue.get()
            taken.set()
            hold.wait(10)
            return item

    async def main() -> None:
        threads = Threads(2)
        threads._asked = Held()  # type: ignore[assignment]
        hold.set()
        await threads.run(lambda: None)
        taken.clear()
        hold.clear()
        go = threading.Event()
        first = threads.run(lambda: go.wait(10))
        assert taken.wait(10)
        second = threads.run(go.set)
        hold.set()
        assert await first
        await second

    asyncio.run(main())


def test_one_that_was_given_up_disturbs_nobody() -> None:
    async def main() -> int:
        threads = Threads(1)
        go = threading.Event()
        given_up = threads.run(go.wait)
        given_up.cancel()
        later = threads.run(lambda: 5)
        go.set()
        return await later

    assert asyncio.run(main()) == 5


def test_a_function_that_outlives_its_loop_does_no_harm() -> None:
    go, over = threading.Event(), threading.Event()

    async def main() -> Threads:
        threads = Threads(1)
        threads.run(lambda: go.wait(10) and over.set())
        return threads

    threads = asyncio.run(main())
    go.set()
    assert over.wait(10)

    async def again() -> int:
        return await threads.run(lambda: 3)

    assert asyncio.run(again()) == 3, "the thread lives on"


def test_they_keep_no_process_alive() -> None:
    async def main() -> bool:
        return await Threads(1).run(lambda: threading.current_thread().daemon)

    assert asyncio.run(main())
