"""Values that JSON does not know, as JSON that says what they are: {"$": "tuple", "v": [1, 2]}.

Whatever `dump` takes, `load` gives back with the type and value it had; anything else is refused.
A dict of the user that has a key "$" is written as pairs, so it can never be taken for a tag.
"""

import base64
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec

from rqlite_jobs import models
from rqlite_jobs.errors import shown

MAX_DEPTH = 100
"""How deep lists, dicts and models may be nested in one argument."""

_INT_MIN, _INT_MAX = -(2**63), 2**64 - 1
_SUBCLASSED = (str, int, float, bytes, list, tuple, dict, set, frozenset, datetime, date, Decimal)
_sorted_json = msgspec.json.Encoder(order="sorted").encode


class Unencodable(TypeError):
    """A value that has no place in a payload.

    `why` completes the sentence "argument 'out' ..."; `remedy` says what to pass instead; `deep` is true
    where the nesting is at fault, and not one part of the value.
    """

    def __init__(self, why: str, remedy: str, *, deep: bool = False) -> None:
        super().__init__(why)
        self.why = why
        self.remedy = remedy
        self.deep = deep


def is_plain(value: Any, room: int = MAX_DEPTH) -> bool:
    """Tell whether JSON carries a value exactly as it is, so that `dump` has nothing to do.

    This is the fast path of every enqueue: exact types only, since a subclass would come back as its base.
    """
    kind = type(value)
    if kind is str or value is None or kind is bool:
        return True
    if kind is int:
        return bool(_INT_MIN <= value <= _INT_MAX)
    if kind is float:
        return bool(value - value == 0.0)  # false for NaN and the infinities
    if kind is list:
        if not room:
            return False
        for item in value:  # noqa: SIM110 (all() over a generator takes twice the time)
            if not is_plain(item, room - 1):
                return False
        return True
    if kind is dict:
        if not room:
            return False
        for key, item in value.items():
            if type(key) is not str or key == "$" or not is_plain(item, room - 1):
                return False
        return True
    return False


def dump(value: Any, *, canonical: bool = False, room: int = MAX_DEPTH) -> Any:
    """Make a value of JSON types from which `load` makes an equal value of the same type.

    Args:
        value: what a caller passed.
        canonical: True puts the items of sets and dicts in an order of their own, so that equal values give
            equal JSON (the keys of plain dicts are left to the encoder).
        room: levels of nesting that are left.

    Raises:
        Unencodable: a type that no payload carries, or nesting beyond `MAX_DEPTH` levels.
    """
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return value
    if kind is int:
        return value if _INT_MIN <= value <= _INT_MAX else _tag("int", format(value, "x"))
    if kind is float:
        return value if value - value == 0.0 else _tag("float", repr(value))
    if not room:
        why = f"is nested more than {MAX_DEPTH} levels deep, or holds itself"
        raise Unencodable(why, "Pass it in a flatter form", deep=True)
    room -= 1
    if kind is list or kind is tuple:
        items = [dump(item, canonical=canonical, room=room) for item in value]
        return items if kind is list else _tag("tuple", items)
    if kind is dict:
        pairs = [[dump(part, canonical=canonical, room=room) for part in item] for item in value.items()]
        if all(type(key) is str and key != "$" for key in value):
            return dict(pairs)
        return _tag("dict", sorted(pairs, key=_first_as_json) if canonical else pairs)
    if kind is set or kind is frozenset:
        items = [dump(item, canonical=canonical, room=room) for item in value]
        return _tag(kind.__name__, sorted(items, key=_sorted_json) if canonical else items)
    scalar = _DUMPERS.get(kind)
    if scalar is not None:
        return scalar(value)
    if models.is_model(kind):
        try:
            data = models.data_of(value)
        except Exception as error:  # whatever the code of a model raises
            raise Unencodable(
                f"is a {kind.__name__} that cannot be read: {error!r}", "Mend the object"
            ) from error
        return _tag("model", dump(data, canonical=canonical, room=room))
    raise _refusal(value)


def load(data: Any) -> Any:
    """Make the value from what `dump` gave; where a model stood there is a `models.Unbuilt`.

    Raises:
        ValueError, TypeError, LookupError, ArithmeticError, AttributeError: what `dump` never writes.
    """
    kind = type(data)
    if kind is list:
        return [load(item) for item in data]
    if kind is not dict:
        return data
    if "$" not in data:
        return {key: load(item) for key, item in data.items()}
    return _LOADERS[data["$"]](data)


def path_to_fault(value: Any) -> str:
    """Say where in a value the part lies that `dump` refuses: `['b'][0]`, or nothing if it is all of it.

    Cost: a `dump` for each level of nesting; for a message only.
    """
    parts: list[tuple[str, Any]] = []
    if type(value) is dict:
        parts = [(f"[{shown(key, 30)}]", item) for key, item in value.items()]
    elif type(value) in (list, tuple):
        parts = [(f"[{place}]", item) for place, item in enumerate(value)]
    for label, item in parts:
        try:
            dump(item)
        except Unencodable:
            return label + path_to_fault(item)
    return ""


def _tag(name: str, data: Any) -> dict[str, Any]:
    return {"$": name, "v": data}


def _first_as_json(pair: list[Any]) -> bytes:
    return _sorted_json(pair[0])


def _dump_zoned(value: datetime | time) -> dict[str, Any]:
    """A datetime or time: its ISO form, its zone by name where it has one, and fold, which ISO leaves out."""
    zone, name = value.tzinfo, type(value).__name__
    if (
        isinstance(value, time)
        and zone is not None
        and value.utcoffset() is None
        and type(zone) is not ZoneInfo
    ):
        raise Unencodable(f"is a time in the zone {zone}, which has no fixed offset", "Pass a datetime")
    data = _tag(name, value.isoformat())
    if type(zone) is ZoneInfo and zone.key is not None:
        data["z"] = zone.key
    if value.fold:
        data["f"] = 1
    return data


def _load_datetime(data: dict[str, Any]) -> datetime:
    """The time in its named zone, if this host knows it and agrees about the offset; else at that offset."""
    found = datetime.fromisoformat(data["v"]).replace(fold=data.get("f", 0))
    if "z" in data:
        try:
            zoned = found.replace(tzinfo=ZoneInfo(data["z"]))
        except (ValueError, LookupError, OSError):
            return found
        if zoned.utcoffset() == found.utcoffset():
            return zoned
    return found


def _load_time(data: dict[str, Any]) -> time:
    found = time.fromisoformat(data["v"]).replace(fold=data.get("f", 0))
    return found.replace(tzinfo=ZoneInfo(data["z"])) if "z" in data else found


def _load_float(data: dict[str, Any]) -> float:
    if data["v"] not in ("nan", "inf", "-inf"):
        raise ValueError(f"no such float: {data['v']!r}")
    return float(data["v"])


_DUMPERS: dict[type, Callable[[Any], Any]] = {
    bytes: lambda value: _tag("bytes", base64.b64encode(value).decode("ascii")),
    datetime: _dump_zoned,
    time: _dump_zoned,
    date: lambda value: _tag("date", value.isoformat()),
    timedelta: lambda value: _tag("timedelta", [value.days, value.seconds, value.microseconds]),
    Decimal: lambda value: _tag("decimal", str(value)),
    UUID: lambda value: _tag("uuid", value.hex),
}

_LOADERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "tuple": lambda data: tuple(map(load, data["v"])),
    "dict": lambda data: {load(key): load(item) for key, item in data["v"]},
    "set": lambda data: set(map(load, data["v"])),
    "frozenset": lambda data: frozenset(map(load, data["v"])),
    "int": lambda data: int(data["v"], 16),
    "float": _load_float,
    "bytes": lambda data: base64.b64decode(data["v"], validate=True),
    "datetime": _load_datetime,
    "time": _load_time,
    "date": lambda data: date.fromisoformat(data["v"]),
    "timedelta": lambda data: timedelta(*data["v"]),
    "decimal": lambda data: Decimal(data["v"]),
    "uuid": lambda data: UUID(data["v"]),
    "model": lambda data: models.Unbuilt(load(data["v"])),
}


def _refusal(value: Any) -> Unencodable:
    """Say what a value is and what to pass instead; asks only its type, because the value may be a proxy."""
    kind = type(value)
    name = (
        kind.__qualname__
        if kind.__module__ in ("builtins", "_io")
        else f"{kind.__module__}.{kind.__qualname__}"
    )
    what, remedy = "", "Pass plain data, such as an id, and build the object in the handler"
    base = next((base for base in _SUBCLASSED if issubclass(kind, base)), None)
    if hasattr(kind, "fileno"):
        what, remedy = " (an open file or socket)", "Pass its path and open it in the handler"
    elif callable(value):
        what, remedy = " (something to call)", "Pass the data it needs and choose it in the handler"
    elif hasattr(kind, "__await__"):
        what, remedy = " (not awaited yet)", "Await it, and pass what it yields"
    elif hasattr(kind, "__next__"):
        what, remedy = " (an iterator)", "Pass list(...) of it"
    elif hasattr(kind, "dtype") and hasattr(kind, "tolist"):
        remedy = "Pass value.tolist(), which makes plain numbers and lists"
    elif kind in (bytearray, memoryview):
        remedy = "Pass bytes(...) of it"
    elif hasattr(kind, "__fspath__"):
        remedy = "Pass str(...) of it"
    elif base is not None:
        what = f" (a subclass of {base.__name__})"
        remedy = f"Pass a plain {base.__name__}: a subclass would not come back as what it was"
    article = "an" if name[0] in "AEIOUaeiou" else "a"
    return Unencodable(f"is {article} {name}{what}, which no payload can carry", remedy)
