"""The reference pages that are made from the code: docs/cli.md from `--help`, docs/errors.md from errors.py.

`python -m tests.reference` writes them; tests/test_docs.py compares.
"""

import inspect
from collections.abc import Iterator
from pathlib import Path

import click

from rqlite_jobs import errors
from rqlite_jobs.cli.main import rqj

DOCS = Path(__file__).parents[1] / "docs"
WIDTH = 100

CLI_HEAD = """# Command line

Made from `--help` by `python -m tests.reference`.

| exit code | |
|---|---|
| 0 | done; an enqueue whatever its outcome, a worker that TERM or INT stopped |
| 1 | failed; `rqj doctor` found an error |
| 2 | a usage that is none |
| 3 | no such job, queue, lock or id |
| 4 | the lock is held, and its policy says `raise`; a job that runs cannot be cancelled |
| 6 | the app cannot be imported |
| 7 | not confirmed; nothing was changed |
| 69 | the server cannot be reached |
| 130 | interrupted |

Errors are one line and a hint on stderr; with `--json` they are one JSON document; `--debug` adds the traceback.
"""

ERRORS_HEAD = """# Errors

Made from `rqlite_jobs/errors.py` by `python -m tests.reference`.

Every error is an `RqjError`, and most are also what a Python reader expects: `except LookupError` works. `str(error)`
is the message, what was tried and what was found, and on a second line the remedy; `error.message` and `error.hint`
have them apart. All can be imported from `rqlite_jobs`.

| error | also a | when | facts |
|---|---|---|---|
"""

SIGNALS_HEAD = """
A handler raises these to say how its run ends; they are no errors, and each is a `Signal`:

| signal | |
|---|---|
"""


def commands(command: click.Command, path: str = "rqj") -> Iterator[tuple[str, str]]:
    """Every command and what its `--help` says, in the order of the help."""
    context = click.Context(
        command, info_name=path, terminal_width=WIDTH, max_content_width=WIDTH, color=False,
        help_option_names=["-h", "--help"],
    )  # fmt: skip
    yield path, command.get_help(context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from commands(found, f"{path} {name}")


def cli() -> str:
    """docs/cli.md."""
    parts = [CLI_HEAD]
    for path, text in commands(rqj):
        lines = "\n".join(line.rstrip() for line in text.splitlines())
        parts.append(f"\n{'#' * min(4, len(path.split()) + 1)} {path}\n\n```\n{lines}\n```\n")
    return "".join(parts)


def error_page() -> str:
    """docs/errors.md."""
    rows, signals = [], []
    for name, kind in vars(errors).items():
        if not inspect.isclass(kind) or kind.__module__ != errors.__name__:
            continue
        said = (kind.__doc__ or "").partition("\n")[0]
        if issubclass(kind, errors.RqjError) and kind is not errors.RqjError:
            builtin = next((base.__name__ for base in kind.__bases__ if base.__module__ == "builtins"), "")
            facts = ", ".join(f"`{fact}`" for fact in inspect.get_annotations(kind))
            rows.append(f"| `{name}` | {f'`{builtin}`' if builtin else ''} | {said} | {facts} |\n")
        elif issubclass(kind, errors.Signal) and kind is not errors.Signal:
            signals.append(f"| `{name}` | {said} |\n")
    return ERRORS_HEAD + "".join(rows) + SIGNALS_HEAD + "".join(signals)


PAGES = {"cli.md": cli, "errors.md": error_page}

if __name__ == "__main__":
    for page, make in PAGES.items():
        (DOCS / page).write_text(make(), "utf-8")
        print(f"wrote docs/{page}")
