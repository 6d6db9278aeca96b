"""Waiting for work without polling."""

import threading
import time
from collections.abc import Iterator

import pytest
import redis

from rqlite_jobs.address import Address
from rqlite_jobs.keys import Keys
from rqlite_jobs.worker.waker import Waker
from tests.conftest import Spawn
from tests.servers import FakeServer, Server
from tests.worker.site import until

KEYS = Keys("test")
INF = float("inf")


@pytest.fixture
def waker(real_server: Server) -> Iterator[Waker]:
    made = Waker(Address.parse(real_server.url), KEYS, lambda: ["a", "b"])
    yield made
    made.stop()


class Waiting(threading.Thread):
    """A slot that waits once; `over` when it came back, and with what error."""

    def __init__(self, waker: Waker, longest_s: float = INF) -> None:
        super().__init__(daemon=True)
        self._waker = waker
        self._longest_s = longest_s
        self.error: BaseException | None = None
        self.took_s = 0.0
        self.start()

    def run(self) -> None:
        began_s = time.monotonic()
        try:
            self._waker.wait(self._longest_s)
        except BaseException as error:
            self.error = error
        self.took_s = time.monotonic() - began_s

    def over(self) -> None:
        self.join(10)
        assert not self.is_alive()
        assert self.error is None, self.error


def listeners(server: Server) -> int:
    with server.client() as client:
        return sum(one["cmd"] == "blpop" for one in client.client_list())


def listens(server: Server) -> None:
    until(lambda: listeners(server) == 1, "one listens")


def test_a_token_in_any_of_the_queues_wakes_the_waiter(waker: Waker, real_server: Server) -> None:
    for queue in "ab":
        waiting = Waiting(waker)
        listens(real_server)
        with real_server.client() as client:
            client.lpush(KEYS.wake(queue), "1")
            waiting.over()
            assert client.exists(KEYS.wake(queue)) == 0
    assert waiting.took_s < 1


def test_one_listens_and_the_others_wait_for_it(waker: Waker, real_server: Server) -> None:
    slots = [Waiting(waker) for _ in range(5)]
    listens(real_server)
    until(lambda: waker.idle == 4, "four wait")
    with real_server.client() as client:
        client.lpush(KEYS.wake("a"), "1")
        until(lambda: sum(slot.is_alive() for slot in slots) == 4, "one was woken")
        until(lambda: waker.idle == 3 and listeners(real_server) == 1, "another listens")
    waker.stop()
    for slot in slots:
        slot.over()


def test_who_knows_of_a_due_job_keeps_that_time_whether_it_listens_or_not(
    waker: Waker, real_server: Server
) -> None:
    first = Waiting(waker, 0.15)
    first.over()
    assert 0.14 <= first.took_s < 2
    listener = Waiting(waker)
    listens(real_server)
    second = Waiting(waker, 0.15)
    second.over()
    assert 0.14 <= second.took_s < 2
    assert listener.is_alive()
    overdue = Waiting(waker, -5.0)
    overdue.over()
    assert overdue.took_s < 1


def test_rousing_ends_all_waits_once(waker: Waker, real_server: Server) -> None:
    Waiting(waker, 0.001).over()
    slots = [Waiting(waker) for _ in range(3)]
    listens(real_server)
    until(lambda: waker.idle == 2, "two wait")
    waker.rouse()
    for slot in slots:
        slot.over()
    again = Waiting(waker)
    listens(real_server)
    assert again.is_alive()


def test_stopping_ends_all_waits_now_and_later(waker: Waker, real_server: Server) -> None:
    slots = [Waiting(waker) for _ in range(3)]
    listens(real_server)
    waker.stop()
    for slot in [*slots, Waiting(waker)]:
        slot.over()
    until(lambda: listeners(real_server) == 0, "nobody listens")


def test_stopping_in_any_moment_ends_the_wait_at_once(real_server: Server) -> None:
    for turn in range(60):
        waker = Waker(Address.parse(real_server.url), KEYS, lambda: ["a"])
        waiting = Waiting(waker)
        for _ in range(turn * 20):
            pass
        waker.stop()
        waiting.over()
        assert waiting.took_s < 2


def test_a_server_that_goes_away_is_an_error_the_second_time_and_comes_back(spawn: Spawn) -> None:
    server = spawn()
    waker = Waker(Address.parse(server.url), KEYS, lambda: ["a"])
    waiting = Waiting(waker)
    listens(server)
    server.kill()
    waiting.over()  # the turn that follows will tell
    with pytest.raises((redis.RedisError, OSError)):
        waker.wait(INF)
    server.start()
    waiting = Waiting(waker)
    listens(server)
    with server.client() as client:
        client.lpush(KEYS.wake("a"), "1")
    waiting.over()
    waker.stop()


def test_a_key_of_another_type_is_an_error_and_no_busy_loop(waker: Waker, real_server: Server) -> None:
    with real_server.client() as client:
        client.set(KEYS.wake("a"), "x")
    waker.wait(INF)
    with pytest.raises(redis.ResponseError):
        waker.wait(INF)


def test_a_server_inside_this_process_is_looked_at_often() -> None:
    waker = Waker(Address.parse(FakeServer().url), KEYS, lambda: ["a"])
    waiting = Waiting(waker)
    waiting.over()
    assert waiting.took_s < 2
