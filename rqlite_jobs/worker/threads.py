"""Threads for the plain functions of a child that has async ones too; daemons, so that none keeps a process alive."""

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class Threads:
    """At most `count` threads, made as they are needed, that run functions for an event loop.

    Args:
        count: how many at most.

    Not `concurrent.futures`: the interpreter waits for its threads when it ends, and a handler that never
    returns would keep a stopped worker alive.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._asked: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._made = 0
        self._under_way = 0
        self._guard = threading.Lock()

    def run(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        """Run `work` in a thread; the future of the running loop gets its answer. `work` must not raise."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def answer(value: T) -> None:
            if not future.cancelled():
                future.set_result(value)

        def asked() -> None:
            value = work()
            with self._guard:
                self._under_way -= 1  # before it answers: whoever hears of it may ask for the next
            try:
                loop.call_soon_threadsafe(answer, value)
            except RuntimeError:
                return  # the loop is closed: the worker has left, and this job was handed back

        with self._guard:
            # Asked or running: to compare the free threads with the queue's length would count a thread that has
            # taken a function, and not begun, as free.
            self._under_way += 1
            if self._under_way > self._made and self._made < self._count:
                self._made += 1
                threading.Thread(target=self._serve, name=f"rqj-thread-{self._made}", daemon=True).start()
        self._asked.put(asked)
        return future

    @property
    def busy(self) -> bool:
        """Is a function running, or asked for?"""
        return self._under_way > 0

    def _serve(self) -> None:
        while True:
            self._asked.get()()
