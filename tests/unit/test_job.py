"""Job, record and id: frozen values, records read or refused as lua does, ids that never repeat."""

import asyncio
import os
import random
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rqlite_jobs import record as record_module
from rqlite_jobs.errors import RqjError
from rqlite_jobs.job import Job, NewJob, Record, new_id
from rqlite_jobs.lock import Lock

HEAD = b"1\0sales\x000\x001700000000000\0"


@pytest.mark.parametrize(
    ("raw", "record"),
    [
        (HEAD + b"\0" + b'["f"]', Record("sales", 0, 1_700_000_000_000, payload=b'["f"]')),
        (HEAD + b"\0", Record("sales", 0, 1_700_000_000_000)),
        (HEAD + b"\0" + b"\0\0a\0", Record("sales", 0, 1_700_000_000_000, payload=b"\0\0a\0")),
        (
            HEAD + b"md\0kbook:1\0\0[]",
            Record("sales", 0, 1_700_000_000_000, "until_executed", "book:1", payload=b"[]"),
        ),
        (
            HEAD + b"me\0kb\0t6000\0\0[]",
            Record("sales", 0, 1_700_000_000_000, "until_expired", "b", 6_000, b"[]"),
        ),
        (
            HEAD + b"md\0kb\0z9\0\0[]",
            Record("sales", 0, 1_700_000_000_000, "until_executed", "b", payload=b"[]"),
        ),
        ("1\0очередь\x009\x005\0\0".encode(), Record("очередь", 9, 5)),
    ],
)
def test_a_record_is_read(raw: bytes, record: Record) -> None:
    assert Record.read(raw) == record


@pytest.mark.parametrize(
    "raw",
    [
        b"", b"\0", b"1", b"junk", HEAD, HEAD[:-1], b"2" + HEAD[1:] + b"\0[]", b"1\0\x000\x005\0\0",
        b"1\0q\0x\x005\0\0", b"1\0q\x0010\x005\0\0", b"1\0q\x000\0x\0\0", b"1\0q\x000\0-5\0\0",
        b"1\0q\x000\x005\0md\0\0[]", b"1\0q\x000\x005\0kb\0\0[]", b"1\0q\x000\x005\0md\0kb\0tx\0\0[]",
        b"1\0\xff\x000\x005\0\0",
        b"1\0q\x000\x005\0md\0k\xff\0\0[]", b"1\0q\x000\x005\0md\0kb", b"1\0q\x000\x00999999999999999\0\0",
        b"1\0q\x000\x00" + b"9" * 5000 + b"\0\0", "1\0q\x000\0٥\0\0".encode(),
    ],
)  # fmt: skip
def test_what_is_no_record_is_none(raw: bytes) -> None:
    assert Record.read(raw) is None


@given(st.binary() | st.binary().map(lambda tail: HEAD + tail))
def test_any_bytes_are_a_record_or_none(raw: bytes) -> None:
    found = Record.read(raw)
    assert found is None or raw.endswith(found.payload)


class App:
    """A source that notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def job_by_id(self, id: str, /) -> Job[Any]:
        self.asked.append(f"read {id}")
        return Job(id, state="done", _app=self)

    async def ajob_by_id(self, id: str, /) -> Job[Any]:
        return self.job_by_id(id)

    def cancel_job(self, id: str, /) -> bool:
        self.asked.append(f"cancel {id}")
        return True

    async def acancel_job(self, id: str, /) -> bool:
        return self.cancel_job(id)


def test_a_job_asks_its_app_and_never_changes() -> None:
    app = App()
    job: Job[float] = Job("a1", "crunch_sales", "sales", (42,), state="ready", outcome="enqueued", _app=app)
    assert job.refresh().state == "done"
    assert asyncio.run(job.arefresh()).state == "done"
    assert job.cancel()
    assert asyncio.run(job.acancel())
    assert app.asked == ["read a1", "read a1", "cancel a1", "cancel a1"]
    assert job.state == "ready"
    with pytest.raises(AttributeError):
        job.state = "done"  # type: ignore[misc]
    with pytest.raises(RqjError, match="belongs to no app"):
        Job("a1").refresh()


def test_a_job_is_shown_without_its_arguments_and_compares_by_its_facts() -> None:
    job: Job[None] = Job("a1", "mail", "bulk", ("secret",), {"key": "secret"}, state="ready", _app=App())
    assert repr(job) == "Job(id='a1', name='mail', queue='bulk', state='ready')"
    assert (
        repr(Job("a1", outcome="duplicate"))
        == "Job(id='a1', name='', queue='', state='', outcome='duplicate')"
    )
    assert job == Job("a1", "mail", "bulk", ("secret",), {"key": "secret"}, state="ready")
    assert len({job, Job("a1"), Job("a1")}) == 2


def test_a_new_job_is_due_now_without_a_lock_unless_told() -> None:
    job = NewJob("a1", "sales", b'["f"]')
    assert (job.level, job.delay_ms, job.run_at_ms, job.lock) == (0, None, None, None)
    assert NewJob("a1", "sales", b"", lock=Lock("until_executed", "k")).lock == Lock("until_executed", "k")


def test_an_id_is_20_letters_or_digits_and_sorts_by_time(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [new_id() for _ in range(2_000)]
    assert len(set(ids)) == 2_000
    assert all(len(id) == 20 and id.isascii() and id.isalnum() and id[8:10] == "00" for id in ids)
    found = []
    for ms in (0, 1, 61, 62, 3_843, 3_844, 1_700_000_000_000, 1_700_000_000_001, 62**8 - 1):
        monkeypatch.setattr(record_module.time, "time_ns", lambda ms=ms: ms * 1_000_000)
        found.append(new_id()[:8])
    assert found == sorted(found)
    assert len(set(found)) == len(found)
    assert (found[0], found[-1]) == ("00000000", "zzzzzzzz")


def test_the_random_part_uses_every_letter_at_every_place() -> None:
    tails = [new_id()[10:] for _ in range(5_000)]
    assert all(len(set(letters)) == 62 for letters in zip(*tails, strict=True))


def test_ids_of_threads_differ() -> None:
    ids: list[str] = []
    threads = [threading.Thread(target=lambda: ids.extend([new_id() for _ in range(500)])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(ids)) == 4_000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_ids_of_forks_differ_whatever_was_seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    state = random.getstate()
    monkeypatch.setattr(record_module.time, "time_ns", lambda: 5_000_000)  # only the random part may differ
    random.seed(1)
    new_id()
    ids = []
    for _ in range(8):
        reader, writer = os.pipe()
        if os.fork() == 0:
            random.seed(1)
            os.write(writer, "".join(new_id() for _ in range(20)).encode())
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            text = pipe.read().decode()
        os.wait()
        ids += [text[at : at + 20] for at in range(0, 400, 20)]
    ids += [new_id() for _ in range(20)]
    random.setstate(state)
    assert len(ids) == len(set(ids)) == 180
