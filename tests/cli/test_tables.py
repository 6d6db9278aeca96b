"""Tables in a real terminal, narrow and wide: within its width, one line a row, colours only where they are wanted."""

import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from rqlite_jobs.cli import tables
from tests.cli.conftest import Shop

pytestmark = pytest.mark.lanes("valkey")


def on_screen(words: list[str], **environ: str) -> str:
    """What a command draws on a terminal."""
    ours, theirs = pty.openpty()
    kept = {
        name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "TERM")
    }
    typing = subprocess.Popen(
        [sys.executable, "-m", "rqlite_jobs.cli", *words],
        env={**kept, "TERM": "xterm-256color", "PYTHONPATH": str(Path(__file__).parents[2]), **environ},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        close_fds=True,
    )
    os.close(theirs)
    drawn = b""
    with os.fdopen(ours, "rb", buffering=0) as screen:
        while True:
            try:
                part = screen.read(65536)
            except OSError:  # how Linux says that the other side is closed
                break
            if not part:
                break
            drawn += part
    assert typing.wait(30) == 0, drawn
    return drawn.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize(
    "words",
    [
        *(["jobs"], ["dead"], ["scheduled"], ["locks"], ["queues"], ["doctor"], ["changelog"]),
        ["stats", "--history", "day"],
    ],
)
def test_a_table_fits_its_terminal(shop: Shop, words: list[str], columns: int) -> None:
    shop.dead(2, "a long text " * 20)
    shop.enqueue("crunch_sales", 42)
    shop.app.control.pause("sales", by="somebody with a name as long as it may be" * 2)
    shop.app.handler("anything").options(delay="10m").enqueue("\u65e5\u672c\u8a9e" * 30)
    lines = on_screen(words, COLUMNS=str(columns), NO_COLOR="1").splitlines()
    from rich.cells import cell_len

    assert max(map(cell_len, lines)) <= columns
    if words in (["jobs"], ["dead"], ["scheduled"]):
        assert any("\u2026" in line for line in lines)
        assert len(lines) == 2 + {"jobs": 4, "dead": 2, "scheduled": 1}[words[0]]


def test_colours_are_for_terminals_that_want_them(shop: Shop) -> None:
    shop.enqueue("anything")
    assert "\x1b[32mready" in on_screen(["jobs"], COLUMNS="100")
    assert "\x1b" not in on_screen(["jobs"], COLUMNS="100", NO_COLOR="1")
    assert "\x1b" not in on_screen(["jobs"], COLUMNS="100", TERM="dumb")
    assert "\x1b" not in shop.ok("jobs")


def test_markup_in_a_cell_is_text(capsys: pytest.CaptureFixture[str]) -> None:
    tables.draw(
        [tables.Column("[bold]HEAD"), tables.Column("B", gives=True)], [["[red]x[/red]", ":smile: [/]"]]
    )
    drawn = capsys.readouterr().out
    assert "[red]x[/red]" in drawn
    assert ":smile: [/]" in drawn


def test_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    line = tables.spark([0, 1, 500, 999, 1000])
    assert line == " \N{LOWER ONE EIGHTH BLOCK}\N{LOWER HALF BLOCK}\N{FULL BLOCK}\N{FULL BLOCK}"
    assert (tables.spark([]), tables.spark([0, 0]), tables.spark([3])) == ("", "  ", "\N{FULL BLOCK}")
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(io.BytesIO(), "ascii"))
    assert tables.spark([1]) == ""
