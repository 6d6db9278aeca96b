"""Bytes that no script of ours has written, planted where readers and workers come by; and a client with no address."""

import asyncio
from typing import Any

import pytest
import redis
from redis.asyncio.sentinel import Sentinel as AsyncSentinel
from redis.sentinel import Sentinel

from rqlite_jobs import App
from rqlite_jobs.errors import BadUrl
from rqlite_jobs.wire import pack
from tests.conftest import app_on
from tests.servers import Server
from tests.worker.inside import KINDS, burst, of_kind


@pytest.fixture
def client(real_server: Server) -> "redis.Redis":
    return real_server.client()


@pytest.mark.parametrize("entry", [b"garbage\xff", b"", b"s", b"s-", b"s99999999999999999999999-x"])
def test_an_entry_of_running_that_is_none_of_ours(real_app: App, client: Any, entry: bytes) -> None:
    @real_app.job
    def note() -> None: ...

    job = note.enqueue()
    client.zadd(real_app.keys.fixed("workers"), {"w": 9e12})
    client.hset(real_app.keys.prefix("running") + "w", job.id, entry)
    assert job.refresh().state == "running"
    assert [one.id for one in real_app.inspect.jobs("running")] == [job.id]


@pytest.mark.parametrize(
    ("key", "value", "state"),
    [
        ("ends", b"zz yy", "done"),
        ("ends", b"\xff", "done"),
        ("ends", b"9" * 5000 + b" 1", "done"),
        ("tries", b"\0".join([b"9" * 5000, b"0", b"0", b"5", b"0", b"\xff", b"\xff"]), "dead"),
    ],
)
def test_a_word_about_a_job_that_is_none_of_ours(
    real_app: App, client: Any, key: str, value: bytes, state: str
) -> None:
    @real_app.job
    def note() -> None: ...

    job = note.enqueue()
    client.hset(real_app.keys.fixed(key), job.id, value)
    assert job.refresh().state == state


def test_a_word_about_a_job_that_is_gone(real_app: App, client: Any) -> None:
    client.hset(real_app.keys.fixed("gone"), "x", b"\xff")
    assert real_app.run(real_app.operations.look(["x"]))[0].state == "\ufffd"


def test_a_due_time_that_is_no_time(real_app: App, client: Any) -> None:
    @real_app.job
    def note() -> None: ...

    job = note.options(delay="1h").enqueue()
    client.zadd(real_app.keys.prefix("scheduled") + "default", {job.id: float("inf")})
    assert job.refresh().state == "scheduled"


@pytest.mark.parametrize("kind", KINDS)
def test_an_id_that_is_no_text_stops_nobody(real_server: Server, client: Any, kind: str) -> None:
    app = of_kind(app_on(real_server), kind)
    ran = []

    @app.job
    def note(number: int) -> None:
        ran.append(number)

    job = note.enqueue(1)
    jobs, ready = app.keys.fixed("jobs"), app.keys.prefix("ready") + "default:0"
    client.hset(jobs, b"\xff\xfe", client.hget(jobs, job.id))
    client.rpush(ready, b"\xff\xfe")
    note.enqueue(2)
    burst(app, concurrency=1)
    assert ran == [1, 1, 2]
    assert app.inspect.stats().done == 3
    assert client.hkeys(app.keys.fixed("ends"))


def test_words_that_are_no_text_are_packed_as_they_came() -> None:
    assert pack(["A", "\udcff", 7]) == b"$1\r\nA\r\n$1\r\n\xff\r\n$1\r\n7\r\n"


def test_a_client_of_sentinel_is_refused_and_not_taken_for_localhost() -> None:
    for client in (
        Sentinel([("10.0.0.1", 26379)]).master_for("shop"),
        AsyncSentinel([("10.0.0.1", 26379)]).master_for("shop"),
    ):
        with pytest.raises(BadUrl, match="Sentinel"):
            asyncio.run(address_of(client))


async def address_of(client: Any) -> Any:
    return App("test", redis=client).address
