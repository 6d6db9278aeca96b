"""Work of several trips to the server, in steps and without I/O: calls are yielded, and their answers sent in.

So each question and each act stands in one place, and is done from threads and from event loops alike.
"""

from collections.abc import Generator
from typing import Any, Protocol, TypeAlias, TypeVar, cast

from rqlite_jobs.operations import Call, Operations

T = TypeVar("T")
Steps: TypeAlias = Generator[Call[Any], Any, T]


class Asked(Protocol):
    """The app whose namespace it is about."""

    @property
    def operations(self) -> Operations:
        """The calls of its namespace."""
        ...

    def run(self, call: Call[T], /) -> T:
        """Send a call."""
        ...

    async def arun(self, call: Call[T], /) -> T:
        """Send a call."""
        ...


class Stepper:
    """Takes steps to their end, from a thread or on an event loop.

    Args:
        app: sends the calls.
    """

    def __init__(self, app: Asked) -> None:
        self._asked = app

    @property
    def _ops(self) -> Operations:
        return self._asked.operations  # asked anew: an app may be pointed elsewhere by a test

    def _run(self, steps: Steps[T]) -> T:
        try:
            call = next(steps)
            while True:
                call = steps.send(self._asked.run(call))
        except StopIteration as end:
            return cast(T, end.value)

    async def _arun(self, steps: Steps[T]) -> T:
        try:
            call = next(steps)
            while True:
                call = steps.send(await self._asked.arun(call))
        except StopIteration as end:
            return cast(T, end.value)
