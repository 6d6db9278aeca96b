"""A shop in a folder of its own: an app module, a server, and `rqj` typed in that folder."""

import importlib
import itertools
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from rqlite_jobs import App
from rqlite_jobs.cli.main import rqj
from rqlite_jobs.testing import drain
from tests.servers import FakeServer, Server

SOURCE = """
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from rqlite_jobs import App, Retry, until_executed, until_expired

app = App("bookstore")


class Colour(Enum):
    RED = "red"


@dataclass
class Book:
    title: str
    pages: int


@app.job(queue="sales", lock=until_executed(key="book:{book_id}"))
def crunch_sales(book_id: int) -> float:
    return float(book_id)


@app.job(retry=Retry(max_attempts=1))
def broken(text: str = "") -> None:
    raise ValueError(f"bad data {text}".strip())


@app.job(queue="mail", retry=Retry(max_attempts=3, delay="60s"))
def flaky(to: str, colour: Colour = Colour.RED, when: datetime | None = None) -> None:
    raise ConnectionError("provider timeout")


@app.job(lock=until_expired("1h"))
def daily() -> None: ...


@app.job(lock=until_executed(on_conflict="raise"))
def strict() -> None: ...


@app.job(lock=until_executed(on_conflict="reject"))
def rejecting() -> None: ...


@app.job
def read_book(book: Book) -> None: ...


@app.job
def anything(*args, **kwargs) -> None: ...
"""
_names = itertools.count(1)


class Shop:
    """The folder, its app, its server, and the command line."""

    def __init__(self, folder: Path, server: Server | FakeServer) -> None:
        self.folder = folder
        self.server = server
        self.module = f"shop_{os.getpid()}_{next(_names)}"
        (folder / f"{self.module}.py").write_text(SOURCE, "utf-8")

    @property
    def app(self) -> App:
        """The app that the module makes."""
        found: App = importlib.import_module(self.module).app
        return found

    def rqj(self, *words: str, input: str | None = None) -> Result:
        """Type a command."""
        return CliRunner().invoke(rqj, list(words), input=input, prog_name="rqj")

    def ok(self, *words: str, input: str | None = None) -> str:
        """What a command prints that ends with 0."""
        result = self.rqj(*words, input=input)
        assert result.exit_code == 0, result.output
        return result.stdout

    def json(self, *words: str) -> Any:
        """The one JSON document that a command prints."""
        return json.loads(self.ok(*words, "--json"))

    def enqueue(self, name: str, *args: Any, **kwargs: Any) -> str:
        """Enqueue a job, and give back its id."""
        return self.app.handler(name).enqueue(*args, **kwargs).id

    def dead(self, count: int = 1, text: str = "") -> list[str]:
        """Let jobs die; their ids in that order."""
        ids = [self.enqueue("broken", text or str(at)) for at in range(count)]
        drain(self.app)
        return ids


@pytest.fixture
def shop(server: Server | FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    """A shop on the server of a lane; no setting of this machine reaches it."""
    for name in [name for name in os.environ if name.startswith("RQJ_") or name == "REDIS_URL"]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("RQJ_URL", server.url)
    monkeypatch.setenv("RQJ_EMBEDDED", "0")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    made = Shop(tmp_path, server)
    yield made
    sys.modules.pop(made.module, None)
