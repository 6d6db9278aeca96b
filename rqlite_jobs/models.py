"""Enums, dataclasses and models: sent as plain data, rebuilt through the annotation of the handler only.

A payload never names a class. It marks where a model stood (`Unbuilt`), and the handler's own annotation
says which class that is; a value that its annotation does not bring back equal is refused at enqueue.
"""

import dataclasses
import types
import typing
from collections.abc import Callable, Iterator
from decimal import Decimal
from enum import Enum
from typing import Any, ForwardRef, NewType, TypeVar

import msgspec


class DoesNotFit(ValueError):
    """Plain data does not make a value of the annotated type."""


class Unbuilt:
    """Stands in decoded arguments where a model stood, until the annotation says which class it is.

    Args:
        data: the plain data of the model: the value of an enum member, a dict of fields, or a list of them.
    """

    __slots__ = ("data",)

    def __init__(self, data: Any) -> None:
        self.data = data

    def __repr__(self) -> str:
        return f"Unbuilt({self.data!r})"


def is_model(cls: object) -> bool:
    """Tell whether instances go out as plain data: an Enum, dataclass, Struct, NamedTuple, pydantic model."""
    return isinstance(cls, type) and (
        issubclass(cls, Enum | msgspec.Struct)
        or dataclasses.is_dataclass(cls)
        or (issubclass(cls, tuple) and hasattr(cls, "_fields"))
        or _is_pydantic(cls)
    )


def data_of(model: Any) -> Any:
    """Take a model apart into the plain data that `restore` makes it from."""
    cls = type(model)
    if isinstance(model, Enum):
        return model.value
    if isinstance(model, msgspec.Struct):
        return {name: getattr(model, name) for name in model.__struct_fields__}
    if dataclasses.is_dataclass(model):
        return {field.name: getattr(model, field.name) for field in dataclasses.fields(model) if field.init}
    if _is_pydantic(cls):
        return msgspec.json.decode(model.model_dump_json(by_alias=True, round_trip=True))
    return list(model)


def restore(value: Any, annotation: Any) -> Any:
    """Rebuild every model in a decoded value through an annotation.

    Args:
        value: what came out of a payload; it may hold `Unbuilt` at any depth.
        annotation: the resolved annotation of the parameter it is for.

    Raises:
        DoesNotFit: the annotation names no class that the data makes.

    >>> class Colour(Enum): RED = "red"
    >>> restore([Unbuilt("red")], list[Colour])
    [<Colour.RED: 'red'>]
    """
    if type(value) is Unbuilt:
        for cls in _choices(annotation):
            if is_model(cls):
                try:
                    return _build(cls, value.data)
                except Exception:  # whatever a constructor raises: the next class of a union may fit
                    continue
        raise _misfit(annotation, "names no class that can be made from it")
    if not _holds_unbuilt(value):
        return value
    kind = type(value)
    for choice in _choices(annotation):
        origin = typing.get_origin(choice) or choice
        if isinstance(origin, type) and issubclass(kind, origin):
            try:
                return _restore_items(value, typing.get_args(choice))
            except DoesNotFit:
                continue
    raise _misfit(annotation, "does not say what it holds")


def hints_of(fn: Callable[..., Any]) -> dict[str, Any]:
    """Resolve the annotations of a function's parameters; one that cannot be resolved is left out.

    They are read one by one: a single name that exists for type checkers only shall not hide the others.
    """
    hints = all_hints_of(fn)
    hints.pop("return", None)
    return hints


def all_hints_of(fn: Callable[..., Any]) -> dict[str, Any]:
    """The same, and that of what it returns, as `return`."""
    hints = {}
    for name, annotation in getattr(fn, "__annotations__", {}).items():
        alone = types.SimpleNamespace(__annotations__={name: annotation})
        try:
            hints[name] = typing.get_type_hints(alone, getattr(fn, "__globals__", {}), include_extras=True)[
                name
            ]
        except Exception:  # evaluating an annotation can raise anything
            continue
    return hints


def same(one: Any, other: Any) -> bool:
    """Tell whether two values have equal types and values all the way down; NaN is the same as NaN."""
    kind = type(one)
    if kind is not type(other):
        return False
    if dataclasses.is_dataclass(kind):  # also the fields that its constructor does not take
        return all(same(getattr(one, f.name), getattr(other, f.name)) for f in dataclasses.fields(kind))
    if isinstance(one, msgspec.Struct) or (issubclass(kind, tuple) and kind is not tuple):
        return same(data_of(one), data_of(other))
    if kind is list or kind is tuple:
        return len(one) == len(other) and all(map(same, one, other))
    if kind is dict:
        return same([[*item] for item in one.items()], [[*item] for item in other.items()])
    if kind is Decimal:  # a signalling NaN raises when it is compared
        return str(one) == str(other)
    return bool(one == other) or (one != one and other != other)


def _build(cls: type, data: Any) -> Any:
    """Make a model from its plain data."""
    if issubclass(cls, Enum):
        return cls(data)
    if _is_pydantic(cls):
        return cls.model_validate_json(msgspec.json.encode(data))  # type: ignore[attr-defined]
    hints = hints_of_class(cls)
    if issubclass(cls, tuple):
        names = cls._fields  # type: ignore[attr-defined]
        return cls(*(restore(item, hints.get(name)) for name, item in zip(names, data, strict=True)))
    return cls(**{name: restore(item, hints.get(name)) for name, item in data.items()})


def hints_of_class(cls: type) -> dict[str, Any]:
    """Resolve the annotations of a class and its bases, or none of them where one cannot be."""
    try:
        return typing.get_type_hints(cls, include_extras=True)
    except Exception:  # evaluating an annotation can raise anything
        return {}


def _restore_items(value: Any, args: tuple[Any, ...]) -> Any:
    """Restore what a container holds, by the arguments of its annotation: `int, Hue` of `dict[int, Hue]`."""
    if type(value) is dict:
        of_key, of_item = args if len(args) == 2 else (Any, Any)
        return {restore(key, of_key): restore(item, of_item) for key, item in value.items()}
    if type(value) is tuple and not (len(args) == 2 and args[1] is ...):
        if len(args) != len(value):
            raise DoesNotFit(f"it has {len(value)} items and its annotation {len(args)}")
        return tuple(map(restore, value, args))
    of_item = args[0] if args else Any
    return type(value)(restore(item, of_item) for item in value)


def _holds_unbuilt(value: Any) -> bool:
    kind = type(value)
    if kind is dict:
        return any(map(_holds_unbuilt, value.keys())) or any(map(_holds_unbuilt, value.values()))
    if kind in (list, tuple, set, frozenset):
        return any(map(_holds_unbuilt, value))
    return kind is Unbuilt


def _choices(annotation: Any) -> Iterator[Any]:
    """Go through the types that an annotation allows: the members of a union, what is behind an alias."""
    origin = typing.get_origin(annotation)
    if origin is typing.Union or origin is types.UnionType:
        for member in typing.get_args(annotation):
            yield from _choices(member)
    elif origin is typing.Annotated:
        yield from _choices(typing.get_args(annotation)[0])
    elif origin is typing.Literal:
        yield from dict.fromkeys(type(member) for member in typing.get_args(annotation))
    elif isinstance(annotation, NewType):
        yield from _choices(annotation.__supertype__)
    elif isinstance(annotation, TypeVar):
        for member in annotation.__constraints__ or (annotation.__bound__,):
            yield from _choices(member)
    elif type(annotation).__name__ == "TypeAliasType":  # a `type X = ...` of Python 3.12
        yield from _choices(annotation.__value__)
    elif annotation is not None and not isinstance(annotation, str | ForwardRef):
        yield annotation
        if isinstance(origin, type) and is_model(origin):  # a generic model: Box[int]
            yield origin


def _is_pydantic(cls: type) -> bool:
    # By its methods: pydantic is no dependency, and importing it to ask would cost every producer.
    return hasattr(cls, "model_validate_json") and hasattr(cls, "model_dump_json")


def _misfit(annotation: Any, why: str) -> DoesNotFit:
    if annotation is None:
        return DoesNotFit("it has no annotation, or one that names something unknown")
    name = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    return DoesNotFit(f"the annotation {name} {why}")
