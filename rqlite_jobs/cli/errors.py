"""What goes wrong, told to people and to programs: a line and a hint on stderr, and an exit code."""

import json
import os
import sys
import traceback
from typing import Any

import click

from rqlite_jobs import errors
from rqlite_jobs.cli.text import plain
from rqlite_jobs.secrecy import masked

OK, FAILED, USAGE, NOT_FOUND, CONFLICT, TIMED_OUT, NO_APP, NOT_CONFIRMED = range(8)
UNREACHABLE = 69
INTERRUPTED = 130


class NotFound(errors.RqjError):
    """Something that was named on the command line is not there."""


# The first that fits counts.
_CODES: tuple[tuple[type[BaseException], int], ...] = (
    (errors.AppNotFound, NO_APP),
    (errors.NotConfirmed, NOT_CONFIRMED),
    (errors.Unreachable, UNREACHABLE),
    (errors.ServerMissing, UNREACHABLE),
    (errors.LockConflict, CONFLICT),
    (errors.ResultTimeout, TIMED_OUT),
    (errors.UnknownJob, NOT_FOUND),
    (errors.JobNotFound, NOT_FOUND),
    (errors.QueueNotFound, NOT_FOUND),
    (errors.LockNotFound, NOT_FOUND),
    (NotFound, NOT_FOUND),
    (errors.WrongArguments, USAGE),
    (errors.UnserializableArguments, USAGE),
    (errors.UnknownOption, USAGE),
    (errors.BadDuration, USAGE),
    (errors.BadOption, USAGE),
    (errors.BadUrl, USAGE),
    (errors.BadName, USAGE),
    (click.UsageError, USAGE),
    (click.Abort, INTERRUPTED),
    (KeyboardInterrupt, INTERRUPTED),
)


def exit_code(error: BaseException) -> int:
    """The exit code that an error stands for; 1 for one that has none of its own.

    >>> exit_code(errors.JobNotFound())
    3
    """
    return next((code for kind, code in _CODES if isinstance(error, kind)), FAILED)


def report(error: BaseException, *, as_json: bool, debug: bool) -> int:
    """Tell on stderr what went wrong, and return the exit code.

    Args:
        error: what was raised.
        as_json: as one JSON document.
        debug: with its traceback.
    """
    if debug:
        sys.stderr.write(masked("".join(traceback.format_exception(error))))
    code = exit_code(error)
    # An address typed where it does not belong is told back, without its password.
    message, hint = map(masked, _words(error))
    if as_json:
        told = {
            "type": type(error).__name__,
            "message": message,
            "hint": hint,
            "exit_code": code,
            **_facts(error),
        }
        click.echo(json.dumps({"error": told}, indent=2), err=True)
        return code
    click.echo(f"rqj: {plain(message)}", err=True)
    if hint:
        click.echo(f"hint: {plain(hint)}", err=True)
    return code


def _words(error: BaseException) -> tuple[str, str]:
    if isinstance(error, errors.RqjError):
        return error.message, error.hint
    if isinstance(error, click.Abort | KeyboardInterrupt):
        return "interrupted.", ""
    if isinstance(error, click.ClickException):
        return _click_words(error)
    if isinstance(error, OSError):
        return f"{error.strerror or error}: {error.filename}" if error.filename else str(error), ""
    said = (str(error).strip().splitlines() or [""])[0][:500]
    where = traceback.extract_tb(error.__traceback__)[-1:]
    place = f" ({os.path.basename(where[0].filename)}:{where[0].lineno})" if where else ""
    return f"unexpected {type(error).__name__}: {said}{place}", "--debug shows the traceback."


def _click_words(error: click.ClickException) -> tuple[str, str]:
    context = error.ctx if isinstance(error, click.UsageError) else None
    path = context.command_path if context else "rqj"
    message = error.format_message()
    if isinstance(error, click.NoSuchOption):
        # The last line names the option again: it may be all that a log shows.
        near = f"Did you mean {error.possibilities[0]}? " if error.possibilities else ""
        return error.message, f"{near}`{path} --help` lists the options; {error.option_name} is none of them."
    if isinstance(error, click.exceptions.NoSuchCommand):
        near = f"Did you mean `{path} {error.possibilities[0]}`? " if error.possibilities else ""
        return error.message, f"{near}`{path} --help` lists the commands."
    return message, f"`{path} --help` shows how it is used, with an example." if context else ""


def _facts(error: BaseException) -> dict[str, Any]:
    """The facts that an error of ours carries, where they are plain values."""
    if not isinstance(error, errors.RqjError):
        return {}
    own = {name: value for name, value in vars(error).items() if name not in ("message", "hint")}
    return {name: value for name, value in own.items() if isinstance(value, str | int)}
