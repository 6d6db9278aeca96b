"""The errors: each is what a Python reader expects, says its remedy, and can be sent between processes."""

import pickle

import pytest

from rqlite_jobs import errors
from rqlite_jobs.errors import Bury, RetryIn, RqjError, Signal, Snooze, shown

BUILTINS = {
    TypeError: ["WrongArguments", "UnserializableArguments", "UnknownOption"],
    ValueError: ["BadDuration", "BadOption", "BadUrl", "BadName", "PayloadTooLarge"],
    LookupError: ["UnknownJob", "JobNotFound", "QueueNotFound", "LockNotFound"],
    ConnectionError: ["Unreachable"],
}
CLASSES = [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, RqjError | Signal)]


@pytest.mark.parametrize(("builtin", "name"), [(b, n) for b, names in BUILTINS.items() for n in names])
def test_each_error_is_also_the_builtin_a_reader_expects(builtin: type[Exception], name: str) -> None:
    assert issubclass(getattr(errors, name), builtin)


@pytest.mark.parametrize("cls", [c for c in CLASSES if issubclass(c, RqjError)])
def test_an_error_shows_its_message_then_its_remedy_and_pickles(cls: type[RqjError]) -> None:
    error = cls("tried this, found that.", hint="Do so.")
    assert str(error) == "tried this, found that.\nDo so."
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.hint) == (cls, str(error), "Do so.")
    assert str(cls("only this")) == "only this"
    assert str(cls()) == (cls.__doc__ or "").split("\n")[0]


@pytest.mark.parametrize("cls", CLASSES)
def test_the_tree_at_the_top_of_the_module_has_every_class_at_its_place(cls: type[Exception]) -> None:
    drawing = errors.__doc__ or ""
    lines = [line for line in drawing.splitlines() if cls.__name__ in line.split("(")[0].split()]
    assert len(lines) == 1, cls
    for builtin, names in BUILTINS.items():
        if cls.__name__ in names:
            assert f"({builtin.__name__})" in lines[0]


def test_facts_are_attributes_and_only_those_that_the_class_declares() -> None:
    error = errors.LockConflict("held", holder_id="a1", lock_key="book:1")
    assert (error.holder_id, error.lock_key, error.answers) == ("a1", "book:1", ())
    assert pickle.loads(pickle.dumps(error)).holder_id == "a1"
    with pytest.raises(TypeError, match="holdr"):
        errors.LockConflict("held", holdr="a1")


def test_signals_carry_their_delay_or_reason_and_are_no_errors_of_ours() -> None:
    assert RetryIn("30s").delay_ms == 30_000
    assert Snooze(-5).delay_ms == 0
    assert (Bury("why").reason, str(Bury("why"))) == ("why", "why")
    assert not issubclass(Signal, RqjError)
    for signal in (RetryIn("1m"), Snooze(2), Bury("no")):
        again = pickle.loads(pickle.dumps(signal))
        assert (type(again), vars(again)) == (type(signal), vars(signal))


@pytest.mark.parametrize("signal", [RetryIn, Snooze])
def test_a_signal_with_a_bad_delay_is_refused_where_it_is_raised(signal: type[RetryIn]) -> None:
    with pytest.raises(errors.BadDuration, match=f"the delay of {signal.__name__} 'soon'"):
        raise signal("soon")


def test_a_value_is_shown_short_whatever_its_repr_does() -> None:
    class Rude:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    assert shown(Rude()) == "<Rude>"
    assert shown(10**5000) == "<int>"
    assert len(shown("x" * 1000)) == 80
