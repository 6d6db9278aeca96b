"""Connections: taken for one request, given back, one set for each event loop, none of them across a fork."""

import asyncio
import os
import threading
from typing import Any

import pytest

from rqlite_jobs.address import Address
from rqlite_jobs.connection import Connections


class Made:
    """A connection of a test's own, that says whether it was closed."""

    def __init__(self) -> None:
        self.closed = False

    def disconnect(self) -> None:
        self.closed = True


class MadeForALoop(Made):
    async def disconnect(self) -> None:  # type: ignore[override]
        self.closed = True


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> Connections:
    monkeypatch.setattr(Address, "connection", lambda self: Made())
    monkeypatch.setattr(Address, "async_connection", lambda self: MadeForALoop())
    return Connections(Address.parse("redis://h"))


def take(connections: Connections) -> Any:
    """One at rest, else a new one: as a caller takes them."""
    return connections.resting() or connections.address.connection()


def take_async(connections: Connections) -> Any:
    """The same for an event loop."""
    return connections.resting_async() or connections.address.async_connection()


def test_one_at_rest_is_taken_before_a_new_one_is_made(connections: Connections) -> None:
    one, two = take(connections), take(connections)
    assert one is not two
    connections.give(one)
    connections.give(two)
    assert {take(connections), take(connections)} == {one, two}
    assert take(connections) not in (one, two)


def test_at_most_64_rest(connections: Connections) -> None:
    taken = [take(connections) for _ in range(100)]
    for one in taken:
        connections.give(one)
    again = [take(connections) for _ in range(100)]
    assert len({*taken} & {*again}) == 64


def test_close(connections: Connections) -> None:
    taken = [take(connections) for _ in range(3)]
    for one in taken[:2]:
        connections.give(one)
    connections.close()
    assert [one.closed for one in taken] == [True, True, False]
    assert take(connections) not in taken


def test_each_loop_has_its_own(connections: Connections) -> None:
    async def use() -> Any:
        one = take_async(connections)
        connections.give_async(one)
        assert take_async(connections) is one
        connections.give_async(one)
        return one

    with asyncio.Runner() as first, asyncio.Runner() as second:
        one, two = first.run(use()), second.run(use())
        assert one is not two
        assert first.run(use()) is one
        assert second.run(use()) is two


def test_closing_in_a_loop_closes_what_rests_there_and_the_blocking_ones(connections: Connections) -> None:
    async def rest() -> Any:
        one = take_async(connections)
        connections.give_async(one)
        return one

    blocking = take(connections)
    connections.give(blocking)
    with asyncio.Runner() as first, asyncio.Runner() as second:
        one, two = first.run(rest()), second.run(rest())
        first.run(connections.aclose())
        assert [blocking.closed, one.closed, two.closed] == [True, True, False]
        first.run(connections.aclose())  # nothing rests there any more
        assert first.run(rest()) is not one


def test_a_loop_that_is_gone_takes_its_connections_with_it(connections: Connections) -> None:
    async def rest() -> None:
        connections.give_async(take_async(connections))

    for _ in range(3):
        asyncio.run(rest())
    import gc

    gc.collect()
    assert len(connections._awaiting) == 0


def test_from_many_threads_nobody_gets_what_another_has(connections: Connections) -> None:
    held: set[int] = set()
    clashes: list[int] = []
    guard = threading.Lock()

    def use() -> None:
        for _ in range(300):
            one = take(connections)
            with guard:
                clashes.extend([id(one)] if id(one) in held else [])
                held.add(id(one))
            with guard:
                held.remove(id(one))
            connections.give(one)

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert clashes == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_starts_with_none(connections: Connections) -> None:
    one = take(connections)
    connections.give(one)

    async def rest() -> None:
        connections.give_async(take_async(connections))

    with asyncio.Runner() as runner:
        runner.run(rest())
        child = os.fork()
        if not child:
            fresh = not connections._resting and not connections._awaiting
            os._exit(0 if fresh and take(connections) is not one and not one.closed else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert len(connections._awaiting) == 1
    assert take(connections) is one
    assert not one.closed
