"""Payloads: what a job's call looks like on the wire, and the canonical form that lock keys are made of.

A payload is JSON: `[name, args, kwargs, options]`, trailing empty ones left out. It can only name a job;
nothing in it makes a class be looked up (values that JSON does not know: tags.py; models: models.py).
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec
from msgspec import Struct, field

from rqlite_jobs import models, tags
from rqlite_jobs.errors import PayloadTooLarge, UnserializableArguments, shown

_to_json = msgspec.json.Encoder().encode
_to_sorted_json = msgspec.json.Encoder(order="sorted").encode
_from_json = msgspec.json.Decoder().decode
_DOCS = "docs/arguments.md"
_NOT_OURS = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError)


class Malformed(ValueError):
    """A payload that this library cannot have written."""


class Payload(Struct, frozen=True):
    """What a payload says: the job's name, the arguments of the call, and options for the worker.

    `args` and `kwargs` may hold `models.Unbuilt` until `Shape.restore` has seen them.
    """

    name: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)


class Shape:
    """The parameters of a handler: their names for messages, their annotations for models.

    Annotations are resolved when the first model is met, so they may name classes that are defined later.

    Args:
        fn: the handler's function.
    """

    def __init__(self, fn: Callable[..., Any]) -> None:
        self._fn = fn
        parameters = inspect.signature(fn).parameters.values()
        self._positional = [
            p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
        self._named = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
        self._var_positional = next((p.name for p in parameters if p.kind == p.VAR_POSITIONAL), None)
        self._var_keyword = next((p.name for p in parameters if p.kind == p.VAR_KEYWORD), None)

    @cached_property
    def _hints(self) -> dict[str, Any]:
        return models.hints_of(self._fn)

    def label(self, place: int | str) -> str:
        """Name an argument for a message, by its parameter where it has one.

        Args:
            place: the index of a positional argument, or the name of a keyword argument.
        """
        return self._parameter(place) or str(place)

    def noun(self, place: int | str) -> str:
        """Call an argument what a message calls it: `argument 'book_id'`."""
        return f"argument {self.label(place)!r}"

    def hint(self, place: int | str) -> Any:
        """Answer the annotation of the parameter that takes an argument, or None."""
        if isinstance(place, str) and place not in self._named:
            return self._hints.get(self._var_keyword or "")
        return self._hints.get(self._parameter(place) or "")

    def restore(self, payload: Payload) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Rebuild the models in decoded arguments: the args and kwargs to call the handler with.

        Raises:
            Malformed: the annotations of the handler do not fit the data.
        """
        args = tuple(self._restore(payload.name, place, value) for place, value in enumerate(payload.args))
        return args, {
            name: self._restore(payload.name, name, value) for name, value in payload.kwargs.items()
        }

    def _parameter(self, place: int | str) -> str | None:
        if isinstance(place, str):
            return place
        return self._positional[place] if place < len(self._positional) else self._var_positional

    def _restore(self, job_name: str, place: int | str, value: Any) -> Any:
        try:
            return models.restore(value, self.hint(place))
        except models.DoesNotFit as misfit:
            raise Malformed(f"{self.noun(place)} of job {job_name!r}: {misfit}") from misfit


class ReturnShape(Shape):
    """What a handler returns, as the one argument of a payload: its annotation, for models."""

    @cached_property
    def _hints(self) -> dict[str, Any]:
        return models.all_hints_of(self._fn)

    def noun(self, place: int | str) -> str:
        """Call it what a message calls it."""
        return "the result"

    def hint(self, place: int | str) -> Any:
        """Answer the annotation of what is returned, or None."""
        return self._hints.get("return")


def encode(
    name: str,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    *,
    shape: Shape | None = None,
) -> bytes:
    """Write the payload of a call.

    Args:
        name: the job's name.
        args: positional arguments.
        kwargs: keyword arguments.
        options: JSON values for the worker and for readers, by short keys: `r` is a `Retry.to_wire()`, `g` are tags,
            `t` is a result_ttl in ms.
        shape: the handler's parameters. Without it messages name arguments by number, and models are refused.

    Raises:
        UnserializableArguments: an argument that would not come out with the type and value it went in with.

    Cost: in proportion to the arguments; about 0.5 us for a small call.

    >>> encode("crunch_sales", (42,))
    b'["crunch_sales",[42]]'
    """
    if kwargs is None:
        kwargs = {}
    plain = tags.is_plain
    if all(map(plain, args)) and (not kwargs or all(map(plain, kwargs.values()))):
        try:
            return _to_json(_parts(name, args, kwargs, options))
        except UnicodeEncodeError:
            pass  # the slow way finds the argument it is in
    return _encode_slowly(name, args, kwargs, options, shape)


def decode(payload: bytes) -> Payload:
    """Read a payload.

    Raises:
        Malformed: not what `encode` writes.

    >>> decode(b'["crunch_sales",[42]]')
    Payload(name='crunch_sales', args=(42,), kwargs={}, options={})
    """
    try:
        parts = _from_json(payload)
        if type(parts) is not list or not 1 <= len(parts) <= 4:
            raise Malformed("it is not a list of name, args, kwargs and options")
        name, args, kwargs, options = parts + [[], {}, {}][len(parts) - 1 :]
        kinds = (type(name), type(args), type(kwargs), type(options))
        if kinds != (str, list, dict, dict):
            raise Malformed("its name is no text, its args no list, or its kwargs or options no object")
        if b'"$"' in payload:  # only then can there be a tag
            args = [tags.load(value) for value in args]
            kwargs = {key: tags.load(value) for key, value in kwargs.items()}
    except Malformed:
        raise
    except _NOT_OURS as error:
        raise Malformed(f"{type(error).__name__}: {error}") from error
    return Payload(name, tuple(args), kwargs, options)


def tags_of(payload: Payload) -> tuple[str, ...]:
    """The tags that stand in a payload; what is none of ours is no tag."""
    found = payload.options.get("g")
    return tuple(tag for tag in found if isinstance(tag, str)) if isinstance(found, list) else ()


def canonical(value: Any) -> bytes:
    """Write a value so that equal values of equal types, and no others, give equal bytes.

    The order of dicts and sets does not matter; 1, 1.0, "1" and True differ, and so do a tuple and a list.

    Raises:
        UnserializableArguments: a value that no payload carries.

    >>> canonical({"b": (1,), "a": 1.0})
    b'{"a":1.0,"b":{"$":"tuple","v":[1]}}'
    """
    try:
        return _to_sorted_json(value if tags.is_plain(value) else tags.dump(value, canonical=True))
    except UnicodeEncodeError as error:
        raise UnserializableArguments(f"the value has {_surrogate(error)}") from error
    except tags.Unencodable as error:
        raise UnserializableArguments(f"the value {error.why}.", hint=f"{error.remedy}: {_DOCS}") from error


def check_size(job_name: str, payload: bytes, limit: int) -> None:
    """Refuse a payload of more than `limit` bytes.

    Raises:
        PayloadTooLarge: with the size and the limit.
    """
    if len(payload) > limit:
        raise PayloadTooLarge(
            f"the arguments of job {job_name!r} take {len(payload):,} bytes, and payload_max is {limit:,}.",
            hint="Store the data elsewhere and pass its id or path, or raise the setting payload_max.",
            job_name=job_name,
            size=len(payload),
            limit=limit,
        )


def _parts(
    name: str, args: Sequence[Any], kwargs: Mapping[str, Any], options: Mapping[str, Any] | None
) -> list[Any]:
    """What a payload is made of, without the empty ones at its end."""
    if options:
        return [name, args, kwargs, options]
    if kwargs:
        return [name, args, kwargs]
    return [name, args] if args else [name]


def _encode_slowly(
    name: str,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    options: Mapping[str, Any] | None,
    shape: Shape | None,
) -> bytes:
    """Write a call argument by argument: for values that need a tag, and to name the one at fault."""
    places: list[int | str] = [*range(len(args)), *kwargs]
    dumped: dict[int | str, Any] = {}
    for place, value in zip(places, [*args, *kwargs.values()], strict=True):
        try:
            dumped[place] = _dump_checked(place, value, shape)
        except tags.Unencodable as error:
            raise _unserializable(name, place, value, error, shape) from error
    out_args = [dumped[place] for place in range(len(args))]
    return _to_json(_parts(name, out_args, {key: dumped[key] for key in kwargs}, options))


def _dump_checked(place: int | str, value: Any, shape: Shape | None) -> Any:
    """Dump one argument; where it holds a model, make sure that the annotation brings it back."""
    data = tags.dump(value)
    try:
        text = _to_json([place, data])
    except UnicodeEncodeError as error:
        raise tags.Unencodable(f"has {_surrogate(error)}", "Pass bytes, or clean the text first") from error
    if b'{"$":"model"' not in text:  # inside a string the quotes would be escaped
        return data
    hint = shape.hint(place) if shape else None
    try:
        back = models.restore(tags.load(data), hint)
    except models.DoesNotFit as misfit:
        what = f"is a {type(value).__name__}" if models.is_model(type(value)) else "holds a model"
        remedy = "Annotate the parameter of the handler with the class it is of, or pass plain data"
        raise tags.Unencodable(f"{what}, and {misfit}", remedy) from misfit
    if not models.same(value, back):
        raise tags.Unencodable(
            f"is {shown(value)}, which would come back as {shown(back)}",
            "Annotate the parameter of the handler with the one class it is of, or pass plain data",
        )
    return data


def _unserializable(
    job_name: str, place: int | str, value: Any, error: tags.Unencodable, shape: Shape | None
) -> UnserializableArguments:
    argument = shape.label(place) if shape else str(place)
    number = f"argument {place + 1}" if isinstance(place, int) else f"argument {place!r}"
    label = shape.noun(place) if shape else number
    path = "" if error.deep else tags.path_to_fault(value)
    where = f" at {path}" if path else ""
    return UnserializableArguments(
        f"{label}{where} of job {job_name!r} {error.why}.",
        hint=f"{error.remedy}: {_DOCS}",
        job_name=job_name,
        argument=argument,
    )


def _surrogate(error: UnicodeEncodeError) -> str:
    return f"the character {error.object[error.start]!r}, half of a pair, which is no text"
