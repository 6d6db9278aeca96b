"""Arguments come out with the type and value they went in with, or are refused by name (G10, G21-G24)."""

import contextlib
import enum
import math
import sys
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, Optional, TypeVar, Union
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rqlite_jobs import models
from rqlite_jobs.codec import Malformed, Payload, Shape, canonical, check_size, decode, encode
from rqlite_jobs.errors import PayloadTooLarge, UnserializableArguments, shown

PARIS = ZoneInfo("Europe/Paris")


class Colour(enum.Enum):
    RED = "red"
    BLUE = (1, Decimal("2.5"))


class Size(enum.IntEnum):
    S = 1
    L = 3


class Tone(enum.Enum):
    RED = "red"


class Rights(enum.Flag):
    READ = 1
    WRITE = 2


class Point(NamedTuple):
    x: int
    tone: Colour


@dataclass
class Order:
    id: int
    sizes: list[Size]
    when: datetime
    note: str = ""
    point: "Point | None" = None
    total: int = field(init=False, default=7)


class Item(msgspec.Struct):
    name: str
    order: Order | None = None
    tags: dict[Size, Colour] = {}


ORDER = Order(1, [Size.S, Size.L], datetime(2031, 1, 2, tzinfo=PARIS), "x", Point(1, Colour.BLUE))

T = TypeVar("T", bound=Colour)


@dataclass
class Box(Generic[T]):
    of: Colour


class Celsius(float):
    pass


class _Odd(tzinfo):
    """A zone whose offset depends on the date."""

    def utcoffset(self, when: datetime | None) -> timedelta | None:
        return timedelta(hours=1) if when else None


class Fake:
    """What of pydantic the codec asks for."""

    def __init__(self, **data: Any) -> None:
        self.data = data

    def model_dump_json(self, *, by_alias: bool, round_trip: bool) -> str:
        return msgspec.json.encode(self.data).decode()

    @classmethod
    def model_validate_json(cls, text: bytes) -> "Fake":
        return cls(**msgspec.json.decode(text))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fake) and self.data == other.data

    __hash__ = None  # type: ignore[assignment]


PLAIN: list[Any] = [
    None, True, False, 0, -1, 1.5, -0.0, 5e-324, sys.float_info.max, "", "\x00\u00e9\u2603\U0001d518",
    [1, 2], [], {}, {"1": "a"}, {"a": {"b": [None]}}, 130775545883395173, 2**63 + 1, -(2**63), 2**64 - 1,
    {"__type__": "datetime", "__value__": "x"},
]  # fmt: skip
TAGGED: list[Any] = [
    (1, 2), (), {1: "a"}, {None: 1, True: 2, (1, 2): [3]}, {1, 2}, set(), frozenset({1}),
    frozenset({frozenset()}), Decimal("1.10"), Decimal("NaN"), Decimal("-Infinity"), UUID(int=5), b"\x00\xff",
    b"",     datetime(2031, 1, 2, 3, 4, 5, 678901), datetime(2031, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
    datetime(2031, 1, 2, 3, 4, 5, 678901, tzinfo=PARIS), datetime(2031, 10, 26, 2, 30, fold=1, tzinfo=PARIS),
    datetime(2031, 10, 26, 2, 30, fold=1), datetime.min, datetime.max,
    datetime(2031, 1, 1, tzinfo=timezone(timedelta(hours=-3, seconds=7))),
    date(2031, 1, 2), time(3, 4, 5, 6), time(3, 4, tzinfo=UTC), time(3, 4, fold=1, tzinfo=PARIS),
    timedelta(seconds=90, microseconds=1), timedelta.min, timedelta.max, math.nan, math.inf, -math.inf,
    2**64, -(2**63) - 1, 10**4000, {"a": [(1,)]}, {"$": "tuple", "v": [1]}, {"$": {"$": 1}},
    [{"$": 1, "b": (2,)}],
]  # fmt: skip
MODELS: list[tuple[Any, Any]] = [
    (Colour.RED, Colour), (Colour.BLUE, Colour), (Size.S, Size), (Rights.READ | Rights.WRITE, Rights),
    (Colour.RED, Optional[Colour]), (None, Optional[Colour]), (Size.L, Union[Colour, Size]),  # noqa: UP007, UP045
    (Colour.RED, Colour | None), (1, Size | int), (Size.S, int | Size),
    (Colour.RED, Annotated[Colour, "of it"]),
    (Colour.RED, Literal[Colour.RED]), (Colour.RED, NewType("Shade", Colour)), (Colour.RED, T),
    ([Colour.RED], list[Colour]), ([Colour.RED], Sequence[Colour]),
    ((Colour.RED, Size.S), tuple[Colour, Size]), ((Size.S, Size.L), tuple[Size, ...]),
    ({Size.S: [Colour.RED]}, dict[Size, list[Colour]]),
    ({"a": Colour.RED}, Mapping[str, Colour]), ({Colour.RED}, set[Colour]),
    (frozenset({Size.S}), frozenset[Size]), ([Size.S], list[Colour] | list[Size]),
    (Point(1, Colour.RED), Point), (ORDER, Order), ([ORDER], list[Order]),
    (Item("a", ORDER, {Size.S: Colour.RED}), Item), (Box(Colour.RED), Box[Colour]), (Fake(a=1), Fake),
    ("red", Colour), ({"id": 1}, Order | dict[str, int]),
]  # fmt: skip


def back(value: Any, annotation: Any = None) -> tuple[Any, Any]:
    """Send a value as a positional and as a keyword argument, and answer what the handler gets."""

    def echo(x: Any, *, y: Any = None) -> Any:
        return x, y

    echo.__annotations__ = {} if annotation is None else {"x": annotation, "y": annotation}
    shape = Shape(echo)
    args, kwargs = shape.restore(decode(encode("echo", (value,), {"y": value}, shape=shape)))
    result: tuple[Any, Any] = echo(*args, **kwargs)
    return result


@pytest.mark.parametrize("value", PLAIN + TAGGED, ids=lambda value: shown(value, 40))
def test_values_come_back_equal_and_of_their_type(value: Any) -> None:
    for found in back(value):
        assert models.same(found, value)
        if isinstance(value, float):
            assert math.copysign(1, found) == math.copysign(1, value)
        if isinstance(value, datetime | time):
            facts = [(x.utcoffset(), x.fold, str(x.tzinfo)) for x in (found, value)]
            assert facts[0] == facts[1]


@pytest.mark.parametrize(("value", "annotation"), MODELS, ids=lambda value: shown(value, 40))
def test_models_come_back_through_the_annotation(value: Any, annotation: Any) -> None:
    for found in back(value, annotation):
        assert models.same(found, value)


keys = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.binary(), st.uuids(),
    st.dates(), st.timedeltas(), st.decimals(allow_nan=False), st.just("$"),
)  # fmt: skip
scalars = st.one_of(
    keys, st.floats(), st.decimals(), st.times(), st.datetimes(),
    st.datetimes(timezones=st.timezones()), st.times(timezones=st.timezones()),
)  # fmt: skip
hashables = st.recursive(
    keys, lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3), max_leaves=5
)
values = st.recursive(
    scalars | hashables,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(hashables, inner, max_size=4),
        st.dictionaries(st.text(max_size=3) | st.just("$"), inner, max_size=4),
        st.sets(hashables, max_size=4),
    ),
    max_leaves=20,
)


@settings(max_examples=200, deadline=None)
@given(st.lists(values, max_size=3), st.dictionaries(st.text(max_size=5), values, max_size=3))
def test_whatever_is_accepted_comes_back(args: list[Any], kwargs: dict[str, Any]) -> None:
    found = decode(encode("f", args, kwargs))
    assert models.same(list(found.args), args)
    assert models.same(found.kwargs, kwargs)
    assert (found.name, found.options) == ("f", {})


@settings(max_examples=200, deadline=None)
@given(values, values)
def test_canonical_bytes_are_equal_for_the_same_value_only(one: Any, other: Any) -> None:
    assert canonical(one) == canonical(_turned(one))
    if canonical(one) == canonical(other):
        assert models.same(_sorted(one), _sorted(other))


def _turned(value: Any) -> Any:
    """The same value with its dicts and sets built in another order."""
    if type(value) in (list, tuple):
        return type(value)(map(_turned, value))
    if type(value) is dict:
        return {key: _turned(item) for key, item in reversed(value.items())}
    if type(value) in (set, frozenset):
        return type(value)(reversed(list(value)))
    return value


def _sorted(value: Any) -> Any:
    """A value in which the order of dicts does not matter."""
    if type(value) in (list, tuple):
        return type(value)(map(_sorted, value))
    if type(value) is dict:
        return {key: _sorted(value[key]) for key in sorted(value, key=canonical)}
    return value


def test_canonical_bytes_tell_types_apart() -> None:
    alike: list[Any] = [
        1, 1.0, "1", True, [1], (1,), {1}, frozenset({1}), {"1": 1}, {1: 1}, {True: 1}, Decimal(1), b"1",
        None, [], {}, (), 0.0, -0.0, {"$": "tuple", "v": [1]}, Size.S, Colour.RED, "red", date(2031, 1, 1),
        datetime(2031, 1, 1), "2031-01-01",
    ]  # fmt: skip
    assert len({canonical(value) for value in alike}) == len(alike)
    assert canonical({"b": 1, "a": {2, 1}}) == canonical({"a": {1, 2}, "b": 1})
    assert canonical({2: "b", 1: "a"}) == canonical({1: "a", 2: "b"})
    for junk in (object(), "\ud800", [lambda: 0]):
        with pytest.raises(UnserializableArguments, match="the value"):
            canonical(junk)


def f(a: Any, /, out: Any = None, *rest: Any, b: Any = 1, **more: Any) -> None:
    """Take arguments of every kind."""


LOOP: list[Any] = []
LOOP.append(LOOP)


@pytest.mark.parametrize(
    ("value", "says", "remedy"),
    [
        (lambda: 0, "is a function (something to call)", "choose it in the handler"),
        (object(), "is an object, which no payload can carry", "such as an id"),
        (sys.__stdout__, "is a TextIOWrapper (an open file or socket)", "Pass its path and open it"),
        (Colour, "is an enum.EnumType (something to call)", ""),
        (iter([]), "is a list_iterator (an iterator)", "list(...)"),
        ((x for x in ()), "is a generator (an iterator)", "list(...)"),
        (bytearray(b"x"), "is a bytearray", "bytes(...)"),
        (memoryview(b"x"), "is a memoryview", "bytes(...)"),
        (1j, "is a complex", ""),
        (range(3), "is a range", ""),
        (Path("x"), "is a pathlib.PosixPath", "str(...)"),
        (OrderedDict(a=1), "OrderedDict (a subclass of dict)", "a plain dict"),
        (Celsius(3), "Celsius (a subclass of float)", "a plain float"),
        (SimpleNamespace(), "is a types.SimpleNamespace", ""),
        (Colour.RED, "is a Colour, and the annotation Any names no class", "Annotate the parameter"),
        ([ORDER], "holds a model, and the annotation Any does not say", "Annotate the parameter"),
        ("a\ud800", "half of a pair", "Pass bytes"),
        ({"a": {"\udfff": 1}}, "half of a pair", "Pass bytes"),
        (LOOP, "more than 100 levels deep, or holds itself", "flatter"),
        (time(1, tzinfo=_Odd()), "a time in the zone", "datetime"),
    ],
    # Not the value: many show the address they lie at, and every process that shares the tests must name them alike.
    ids=lambda value: value if isinstance(value, str) and value.isascii() else type(value).__name__,
)
def test_what_no_payload_can_carry_is_refused_by_name(value: Any, says: str, remedy: str) -> None:
    shape = Shape(f)
    calls: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
        ((value,), {}, "'a'"), ((1, value), {}, "'out'"), ((1, 2, 3, value), {}, "'rest'"),
        ((1,), {"b": value}, "'b'"), ((1,), {"x": value}, "'x'"),
    ]  # fmt: skip
    for args, kwargs, name in calls:
        with pytest.raises(UnserializableArguments) as caught:
            encode("send_report", args, kwargs, shape=shape)
        assert f"argument {name}" in caught.value.message
        assert "of job 'send_report'" in caught.value.message
        assert says in caught.value.message
        assert remedy in caught.value.hint
        assert "docs/arguments.md" in caught.value.hint
        assert (caught.value.job_name, caught.value.argument) == ("send_report", name.strip("'"))
        assert isinstance(caught.value, TypeError)


def test_a_part_that_cannot_be_sent_is_shown_where_it_is() -> None:
    with pytest.raises(
        UnserializableArguments, match=r"argument 'out' at \['rows'\]\[1\]\[2\] of job 'f' is a"
    ):
        encode("f", (1, {"rows": [[], [1, 2, lambda: 0]]}), shape=Shape(f))
    with pytest.raises(UnserializableArguments, match="argument 2 of job 'f' is an object"):
        encode("f", (1, object()))


@pytest.mark.parametrize(
    ("value", "annotation", "says"),
    [
        (Colour.RED, Colour | Tone, None),
        (Tone.RED, Colour | Tone, "would come back as <Colour.RED: 'red'>"),
        (Tone.RED, Colour, "would come back as"),
        (Colour.RED, Any, "the annotation Any names no class"),
        (Colour.RED, int, "the annotation int names no class"),
        (Colour.RED, "NoSuchName", "names something unknown"),
        ([Colour.RED], list, "does not say"),
        ([Colour.RED], list[int], "does not say"),
        ((Size.S, Size.L), tuple[Size], "does not say"),
        (Size.S, Order, "the annotation Order names no class"),
    ],
)
def test_a_model_that_its_annotation_would_not_bring_back_is_refused(
    value: Any, annotation: Any, says: Any
) -> None:
    if says is None:
        assert back(value, annotation) == (value, value)
        return
    with pytest.raises(UnserializableArguments, match="argument 'x'") as caught:
        back(value, annotation)
    assert says in caught.value.message


def test_a_model_that_was_changed_behind_its_constructor_is_refused() -> None:
    order = Order(1, [], datetime(2031, 1, 1))
    order.total = 8
    with pytest.raises(UnserializableArguments, match="would come back as"):
        back(order, Order)
    del order.id
    with pytest.raises(UnserializableArguments, match="cannot be read"):
        back(order, Order)


def test_annotations_may_name_what_comes_later_and_one_bad_name_hides_no_other() -> None:
    def echo(x: "Colour", y: "NoSuchName") -> None: ...  # type: ignore[name-defined]  # noqa: F821

    shape = Shape(echo)
    assert shape.restore(decode(encode("echo", (Colour.RED, 1), shape=shape))) == ((Colour.RED, 1), {})


def test_models_in_a_star_argument_follow_its_annotation() -> None:
    def echo(*all: Colour, **named: Size) -> None: ...

    shape = Shape(echo)
    payload = encode("echo", (Colour.RED, Colour.BLUE), {"all": Size.S}, shape=shape)
    assert shape.restore(decode(payload)) == ((Colour.RED, Colour.BLUE), {"all": Size.S})


def test_a_handler_whose_class_has_changed_gets_a_clear_error() -> None:
    def before(x: Colour) -> None: ...
    def after(x: Size) -> None: ...

    payload = decode(encode("echo", (Colour.RED,), shape=Shape(before)))
    with pytest.raises(Malformed, match=r"argument 'x' of job 'echo': .*Size"):
        Shape(after).restore(payload)


def test_no_class_is_named_in_a_payload() -> None:
    payload = encode("echo", (Colour.RED, ORDER), shape=Shape(_two))
    assert b"Colour" not in payload
    assert b"Order" not in payload


def _two(x: Colour, y: Order) -> None: ...


def test_a_zone_this_host_does_not_know_leaves_the_instant_and_offset() -> None:
    text = b'["f",[{"$":"datetime","v":"2031-01-02T03:04:05+05:45","z":"Mars/Base"}]]'
    assert decode(text).args[0] == datetime(
        2031, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=5, minutes=45))
    )
    changed = text.replace(b"Mars/Base", b"Europe/Paris")
    assert decode(changed).args[0].utcoffset() == timedelta(hours=5, minutes=45)


@pytest.mark.parametrize(
    ("call", "payload"),
    [
        (("f",), b'["f"]'),
        (("f", (1,)), b'["f",[1]]'),
        (("f", (), {"a": 1}), b'["f",[],{"a":1}]'),
        (("f", (), {}, {"r": {"n": 5}}), b'["f",[],{},{"r":{"n":5}}]'),
        (("größe", ("\u2603",)), '["größe",["\u2603"]]'.encode()),
    ],
)
def test_empty_parts_at_the_end_are_left_out(call: Any, payload: bytes) -> None:
    assert encode(*call) == payload
    name, args, kwargs, options = (*call, *[(), {}, {}][len(call) - 1 :])
    assert decode(payload) == Payload(name, args, kwargs, options)


G22 = {
    "timeout": 5, "ttl": 9, "delay": 3, "at": "x", "queue": "x", "retry": 1, "max_retries": 1, "unique": 1,
    "priority": 1, "id": "i", "job_id": "j", "name": "n", "description": "d", "meta": {},
    "args": 1, "kwargs": 2,
}  # fmt: skip


def test_keywords_that_look_like_options_are_arguments() -> None:
    found = decode(encode("f", (), G22, {"r": {}}))
    assert (found.name, found.args, found.kwargs, found.options) == ("f", (), G22, {"r": {}})


@pytest.mark.parametrize(
    "payload",
    [
        b"", b"[", b"[]", b"{}", b"null", b"5", b'"f"', b"[5]", b'["f",{}]', b'["f",[],[]]',
        b'["f",[],{},[]]', b'["f",[],{},{},1]', b"\xff\x00", b'["f",[NaN]]', b'["f",["\xff"]]',
        b'["f",[1e999]]', b"[" * 100_000, b'["f",' + b"[" * 100_000,
        b'["f",[{"$":"nope","v":1}]]', b'["f",[{"$":"tuple"}]]', b'["f",[{"$":[],"v":1}]]',
        b'["f",[{"$":"set","v":[[]]}]]', b'["f",[{"$":"dict","v":[1]}]]', b'["f",[{"$":"int","v":"zz"}]]',
        b'["f",[{"$":"float","v":"1.5"}]]', b'["f",[{"$":"bytes","v":"?"}]]',
        b'["f",[{"$":"datetime","v":5}]]', b'["f",[{"$":"date","v":"2031-13-01"}]]',
        b'["f",[{"$":"time","v":"1","z":"../x"}]]',
        b'["f",[{"$":"decimal","v":"x"}]]', b'["f",[{"$":"timedelta","v":[1e300]}]]',
        b'["f",[{"$":"timedelta","v":{"a":1}}]]', b'["f",[{"$":"uuid","v":"1"}]]',
        b'["f",[],{"a":{"$":"int","v":null}}]', b'["f",[{"$":"datetime","v":"2031-01-01","f":7}]]',
    ],
    ids=lambda payload: repr(payload[:40]),
)  # fmt: skip
def test_a_planted_payload_is_malformed_and_nothing_else(payload: bytes) -> None:
    with pytest.raises(Malformed):
        decode(payload)


@settings(deadline=None)
@given(st.binary() | values.map(lambda value: msgspec.json.encode(["f", [repr(value)]])))
def test_any_bytes_are_a_payload_or_malformed(payload: bytes) -> None:
    with contextlib.suppress(Malformed):
        assert isinstance(decode(payload), Payload)


def test_a_payload_above_the_limit_is_refused_with_both_numbers() -> None:
    payload = encode("f", ("x" * 8 * 1024 * 1024,))
    check_size("f", payload, len(payload))
    with pytest.raises(
        PayloadTooLarge, match=r"job 'f' take 8,388,618 bytes, and payload_max is 262,144"
    ) as caught:
        check_size("f", payload, 262_144)
    assert (caught.value.size, caught.value.limit) == (len(payload), 262_144)


def test_eight_mib_of_text_or_bytes_come_back() -> None:
    for value in ("\u2603" * 2_796_203, bytes(range(256)) * 32_768):
        assert decode(encode("f", (value,))).args == (value,)
