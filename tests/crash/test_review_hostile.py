"""What an app's own classes do at the wrong moment costs the job, never the slot that runs it."""

import dataclasses
from typing import Any, ClassVar

import pytest

from rqlite_jobs import App, Retry
from tests.conftest import app_on
from tests.servers import Server
from tests.worker.inside import KINDS, burst, of_kind


@pytest.fixture(params=KINDS)
def app(real_server: Server, request: pytest.FixtureRequest) -> App:
    return of_kind(app_on(real_server), request.param)


@dataclasses.dataclass(frozen=True)
class Refused(Exception):
    """An error whose attributes nobody may set, `__traceback__` among them."""

    code: int


@dataclasses.dataclass
class Gate:
    """An argument that a process cannot make any more once it is shut."""

    number: int
    shut: ClassVar[BaseException | None] = None

    def __post_init__(self) -> None:
        if Gate.shut is not None:
            raise Gate.shut


def test_an_error_that_is_a_frozen_dataclass(app: App) -> None:
    ran = []

    @app.job(retry=Retry(1))
    def refuse() -> None:
        raise Refused(7)

    @app.job
    def note() -> None:
        ran.append(1)

    job = refuse.enqueue()
    note.enqueue()
    burst(app, concurrency=1)
    found = job.refresh()
    assert (found.state, found.attempts) == ("dead", 1)
    assert "Refused(code=7)" in (found.last_error or "")
    assert ran == [1]


@pytest.mark.parametrize("shut", [SystemExit(3), KeyboardInterrupt(), ValueError("no")], ids=repr)
def test_an_argument_whose_class_exits_when_it_is_made_again(
    app: App, shut: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = []

    @app.job
    def take(gate: Gate) -> None: ...

    @app.job
    def note() -> None:
        ran.append(1)

    job = take.enqueue(Gate(1))
    note.enqueue()
    monkeypatch.setattr(Gate, "shut", shut)
    burst(app, concurrency=1)
    monkeypatch.undo()
    found = job.refresh()
    assert (found.state, found.attempts) == ("dead", 0)
    assert "its arguments do not fit the handler 'take'" in (found.last_error or "")
    assert ran == [1]


def test_a_policy_whose_function_exits(app: App) -> None:
    def leave(*_: Any) -> float:
        raise SystemExit(3)

    @app.job(retry=Retry(2, delay=leave))
    def broken() -> None:
        raise ValueError("bad data")

    job = broken.enqueue()
    burst(app, concurrency=1)
    found = job.refresh()
    assert (found.state, found.last_error) == ("scheduled", "ValueError('bad data')")
