"""Arguments of a job as they are typed: `name=text`, made what the handler's annotation says, and `name:=json`."""

import json
import re
from collections.abc import Sequence
from datetime import timedelta
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import click
import msgspec

from rqlite_jobs.codec import Shape
from rqlite_jobs.durations import to_ms
from rqlite_jobs.errors import RqjError, shown
from rqlite_jobs.inspector.filter import AsText

_TYPED = re.compile(r"([^\W\d]\w*)(:?=)(.*)", re.DOTALL)
_WANTED = re.compile(r"(\w+)(:?=)(.*)", re.DOTALL)  # a number is one that was given by position


def keyword_arguments(typed: Sequence[str], shape: Shape) -> dict[str, Any]:
    """Read `name=text` and `name:=json`.

    Args:
        typed: as on the command line.
        shape: the parameters of the handler.

    Raises:
        UsageError: it has another form, or does not make what the annotation says.
    """
    found: dict[str, Any] = {}
    for one in typed:
        match = _TYPED.fullmatch(one)
        if match is None:
            raise click.UsageError(f"{shown(one)} is neither name=text nor name:=json.")
        name, mark, text = match.groups()
        if name in found:
            raise click.UsageError(f"argument {name!r} is given twice.")
        hint = shape.hint(name)
        found[name] = from_json(name, text, hint) if mark == ":=" else from_text(name, text, hint)
    return found


def wanted_argument(typed: str) -> tuple[str, Any]:
    """Read `name=text` or `name:=json` of a filter; the text is like every argument that reads the same.

    Raises:
        UsageError: it has another form.

    >>> wanted_argument("book_id:=42")
    ('book_id', 42)
    """
    match = _WANTED.fullmatch(typed)
    if match is None:
        raise click.UsageError(f"{shown(typed)} is neither name=text nor name:=json.")
    name, mark, text = match.groups()
    return name, _loads(name, text) if mark == ":=" else AsText(text)


def positional_arguments(text: str, shape: Shape) -> list[Any]:
    """Read `--args-json`.

    Raises:
        UsageError: it is no JSON list, or an item does not make what the annotation says.
    """
    values = _loads("--args-json", text)
    if not isinstance(values, list):
        raise click.UsageError(f"--args-json takes a JSON list, as in '[42, \"x\"]'; this is {shown(text)}.")
    return [_made(shape.label(at), value, shape.hint(at)) for at, value in enumerate(values)]


def from_text(name: str, text: str, hint: Any) -> Any:
    """Make of a text what an annotation says; without one it stays text.

    Raises:
        UsageError: it cannot be made of it.

    >>> from_text("book_id", "42", int)
    42
    """
    kinds = _members(hint)
    if hint is None or str in kinds or Any in kinds:
        return text
    if bytes in kinds:
        return text.encode()
    try:
        if timedelta in kinds:
            return timedelta(milliseconds=to_ms(text, signed=True))
        return msgspec.convert(text, hint, strict=False)
    except (msgspec.ValidationError, RqjError) as error:
        raise _misfit(name, text, hint, error) from None
    except (TypeError, ValueError):
        raise click.UsageError(
            f"argument {name!r} is declared as {_name(hint)}, which no text makes. Write {name}:=<json>."
        ) from None


def from_json(name: str, text: str, hint: Any) -> Any:
    """Read JSON and make of it what an annotation says.

    Raises:
        UsageError: it is no JSON, or does not fit.

    >>> from_json("ids", "[1, 2]", tuple[int, ...])
    (1, 2)
    """
    return _made(name, _loads(name, text), hint)


def _members(hint: Any) -> tuple[Any, ...]:
    """The types that an annotation allows, one level deep."""
    origin = get_origin(hint)
    if origin is Annotated:
        return _members(get_args(hint)[0])
    return get_args(hint) if origin in (Union, UnionType) else (hint,)


def _made(name: str, value: Any, hint: Any) -> Any:
    if hint is None:
        return value
    try:
        if hasattr(hint, "model_validate"):
            return hint.model_validate(value)
        return msgspec.convert(value, hint)
    except (msgspec.ValidationError, ValueError) as error:
        raise _misfit(name, json.dumps(value), hint, error) from None
    except TypeError:  # an annotation that only type checkers understand: the value as it is
        return value


def _loads(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"{name}: {shown(text)} is no JSON: {error}.") from None


def _misfit(name: str, text: str, hint: Any, error: Exception) -> click.UsageError:
    said = (str(error).strip().splitlines() or [""])[0][:200].rstrip(".")
    return click.UsageError(
        f"argument {name!r} is declared as {_name(hint)}, and {shown(text)} makes none: {said}."
    )


def _name(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) else str(hint)
