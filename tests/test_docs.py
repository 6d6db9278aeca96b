"""The documentation fails when it lies: its examples run, its references are complete, its links lead somewhere."""

import ast
import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

import rqlite_jobs
from rqlite_jobs import errors, keys
from rqlite_jobs.app import _DECLARED
from rqlite_jobs.backoff import Retry
from rqlite_jobs.cli.main import rqj
from rqlite_jobs.cli.story import Story
from rqlite_jobs.options import OPTIONS
from rqlite_jobs.setting import SETTINGS
from tests.reference import PAGES, commands

CHECKOUT = Path(__file__).parents[1]
README = CHECKOUT / "README.md"
DOCS = sorted((CHECKOUT / "docs").glob("*.md"))
TEXTS = [
    README,
    CHECKOUT / "CONTRIBUTING.md",
    CHECKOUT / "CHANGELOG.md",
    CHECKOUT / "lua" / "README.md",
    *DOCS,
]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]+\]\(([^)\s]+)\)")
PROMISES = [f"P{number}" for number in range(1, 11)]


def name_of(path: Path) -> str:
    return str(path.relative_to(CHECKOUT))


def blocks(path: Path) -> Iterator[tuple[int, str, str, str]]:
    """The blocks of a page: line, language, text, and the text of a plain block right behind it."""
    text = path.read_text("utf-8")
    found = list(BLOCK.finditer(text))
    for at, block in enumerate(found):
        behind = found[at + 1] if at + 1 < len(found) else None
        follows = behind is not None and behind[1] == "" and text[block.end() : behind.start()].strip() == ""
        yield (
            text.count("\n", 0, block.start()) + 1,
            block[1],
            block[2],
            behind[2] if behind and follows else "",
        )


# The examples run.


@pytest.mark.parametrize("path", [README, *DOCS], ids=name_of)
def test_every_python_block_runs(path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One after the other, as they stand on the page; a plain block right behind one is what it prints."""
    pytest.importorskip("fakeredis", reason="fakeredis is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RQJ_URL", f"fake://docs-{path.name}")
    scope: dict[str, Any] = {"__name__": f"docs_{path.stem.lower()}"}
    for line, language, text, printed in blocks(path):
        if language != "python":
            continue
        code = compile("\n" * line + text, name_of(path), "exec")
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(code, scope)
        assert not printed or out.getvalue() == printed


def test_every_page_has_blocks_of_known_kinds() -> None:
    for path in TEXTS:
        for line, language, text, _ in blocks(path):
            assert language in ("", "python"), f"{name_of(path)}:{line}"
            assert all(len(row) <= 110 for row in text.splitlines()), f"{name_of(path)}:{line} is too wide"


# README's two commands.


@pytest.mark.parametrize(("command", "extra"), [("rqj demo", "server"), ("pytest", "dev")])
def test_readme_has_one_command_for_each(command: str, extra: str) -> None:
    """The same lines that .ci/run takes from it, and runs."""
    wanted = f"python3 -m venv .venv && . .venv/bin/activate && pip install '.[{extra}]' && {command}"
    lines = [
        line for line in README.read_text("utf-8").splitlines() if line.rstrip().endswith(f"&& {command}")
    ]
    assert lines == [wanted]
    quoted = f"'{command}'" if " " in command else command
    assert f"$(readme_line {quoted} {extra})" in (CHECKOUT / ".ci" / "run").read_text("utf-8")


def test_readme_shows_the_demo_as_it_is() -> None:
    """Its chapters; tests/cli/test_demo.py compares the lines with what it really prints."""
    source = ast.parse((CHECKOUT / "rqlite_jobs" / "cli" / "story.py").read_text("utf-8"))
    titles = [
        node.args[0].value
        for node in ast.walk(source)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".chapter")
        if isinstance(node.args[0], ast.Constant)
    ]
    assert Story.__doc__ is not None
    shown = re.findall(r"^\d  (.+)$", README.read_text("utf-8"), re.MULTILINE)
    assert shown == titles


# References are complete.


@pytest.mark.parametrize("page", PAGES)
def test_reference_pages_are_those_of_the_code(page: str) -> None:
    written = (CHECKOUT / "docs" / page).read_text("utf-8")
    # Word by word: where the lines break is the business of the library that draws the help.
    assert written.split() == PAGES[page]().split(), "type: python -m tests.reference"


@pytest.mark.parametrize(
    ("path", "text"), [*commands(rqj)], ids=lambda given: given if given.startswith("rqj") else ""
)
def test_every_command_says_what_it_does_with_an_example(path: str, text: str) -> None:
    command: click.Command = rqj
    context = click.Context(rqj)
    for word in path.split()[1:]:
        assert isinstance(command, click.Group)
        found = command.get_command(context, word)
        assert found is not None
        command = found
    assert command.help
    if not isinstance(command, click.Group):
        assert "Example:" in text
        assert f"  {path.removesuffix(' ls')}" in text, "its example is one of itself"
    for parameter in command.params:
        assert not isinstance(parameter, click.Option) or parameter.help, f"{parameter.opts} has no help"


def rows(path: Path) -> dict[str, str]:
    """The tables of a page: the first cell, without its marks, and the second."""
    found = re.findall(r"^\| `([^`]+)` \|(?: ([^|]*) \|)?", path.read_text("utf-8"), re.MULTILINE)
    return {first: second.strip() for first, second in found}


def test_every_setting_is_documented_with_its_default() -> None:
    told = rows(CHECKOUT / "docs" / "settings.md")
    assert list(told) == list(SETTINGS)
    for name, setting in SETTINGS.items():
        if setting.default is None:
            continue  # worked out; the page says how
        wanted = {True: "1", False: "0"}.get(setting.default) if isinstance(setting.default, bool) else None
        wanted = wanted or ("Retry()" if isinstance(setting.default, Retry) else str(setting.default))
        assert told[name] == f"`{wanted}`", name


def test_every_option_is_documented() -> None:
    told = rows(CHECKOUT / "docs" / "enqueue.md")
    for name in {*OPTIONS, *_DECLARED}:
        assert name in told, f"the option {name} is not in docs/enqueue.md"
    told = rows(CHECKOUT / "docs" / "retries.md")
    for name in ("max_attempts", "delay", "base", "cap", "jitter", "only", "never"):
        assert name in told


def test_every_public_name_is_documented() -> None:
    text = "\n".join(path.read_text("utf-8") for path in [README, *DOCS])
    unnamed = [name for name in rqlite_jobs.__all__ if not re.search(rf"\b{re.escape(name)}\b", text)]
    assert unnamed == ["__version__"]
    for name, kind in vars(errors).items():
        if isinstance(kind, type) and issubclass(kind, errors.RqjError | errors.Signal):
            assert name in rqlite_jobs.__all__, f"{name} cannot be imported from rqlite_jobs"


def test_every_key_is_in_the_data_dictionary() -> None:
    told = {key.partition(":")[0] for key in rows(CHECKOUT / "lua" / "README.md")}
    assert told >= keys._FIXED | keys._DERIVED
    assert keys.NAMESPACES in (CHECKOUT / "lua" / "README.md").read_text("utf-8")


# Guarantees.


def test_every_promise_has_its_tests() -> None:
    text = (CHECKOUT / "docs" / "guarantees.md").read_text("utf-8")
    parts = re.split(r"^## (P\d+) .*$", text, flags=re.MULTILINE)[1:]
    assert parts[::2] == PROMISES
    for promise, part in zip(parts[::2], parts[1::2], strict=True):
        named = re.findall(r"^- `(tests/[\w/]+\.py)::([\w:]+)`$", part, re.MULTILINE)
        assert len(named) >= 2, f"{promise} has no tests"
        assert "*Where it ends:*" in part, promise
        for file, test in named:
            assert test in names_of_tests(CHECKOUT / file), f"{promise}: there is no {file}::{test}"
    in_readme = re.findall(r"^\| (P\d+) \|", README.read_text("utf-8"), re.MULTILINE)
    assert in_readme == PROMISES


def names_of_tests(path: Path) -> set[str]:
    """The tests of a file, those of a class as `Class::test`."""
    if not path.is_file():
        return set()
    found = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        inner = node.body if isinstance(node, ast.ClassDef) else [node]
        prefix = f"{node.name}::" if isinstance(node, ast.ClassDef) else ""
        for one in inner:
            if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and one.name.startswith("test"):
                found.add(prefix + one.name)
            elif isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name):
                found.add(prefix + one.targets[0].id)  # TestQueue = Machine.TestCase
    return found


# Links.


@pytest.mark.parametrize("path", TEXTS, ids=name_of)
def test_links_lead_somewhere(path: Path) -> None:
    text = BLOCK.sub("", path.read_text("utf-8"))
    for link in LINK.findall(text):
        assert "://" not in link, f"{link}: a page that cannot be checked"
        file, _, anchor = link.partition("#")
        target = (path.parent / file).resolve() if file else path
        assert target.exists(), link
        if anchor:
            titles = re.findall(r"^#+ (.+)$", target.read_text("utf-8"), re.MULTILINE)
            assert anchor in [re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles], (
                link
            )


def test_the_index_has_every_page() -> None:
    index = (CHECKOUT / "docs" / "index.md").read_text("utf-8")
    missing = [path.name for path in DOCS if path.name != "index.md" and f"({path.name})" not in index]
    assert missing == []


def test_pages_that_messages_name_are_there() -> None:
    named = set()
    for source in (CHECKOUT / "rqlite_jobs").rglob("*.py"):
        named.update(re.findall(r"docs/[\w-]+\.md", source.read_text("utf-8")))
    assert "docs/arguments.md" in named
    assert [page for page in sorted(named) if not (CHECKOUT / page).is_file()] == []
