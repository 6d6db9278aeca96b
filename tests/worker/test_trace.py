"""Exceptions as text: bounded, whatever they do when they are asked."""

import doctest
from collections.abc import Callable

import pytest

from rqlite_jobs.worker import trace
from rqlite_jobs.worker.trace import ERROR_MAX, TRACEBACK_MAX, cut, describe


def caught(raise_it: Callable[[], object]) -> BaseException:
    try:
        raise_it()
    except BaseException as error:
        return error
    raise AssertionError("it raised nothing")


def boom(error: BaseException) -> Callable[[], object]:
    def raise_it() -> None:
        raise error

    return raise_it


def test_the_examples_in_it_hold() -> None:
    assert doctest.testmod(trace).failed == 0


def test_an_error_is_its_repr_and_its_traceback() -> None:
    error, text = describe(caught(boom(ValueError("bad data"))))
    assert error == "ValueError('bad data')"
    lines = text.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-1] == "ValueError: bad data"
    assert text.endswith("\n")


def test_frames_that_are_ours_are_left_out_but_never_the_last() -> None:
    error = caught(boom(ValueError("x")))
    assert "in caught" in describe(error)[1]
    assert "in caught" not in describe(error, skip=1)[1]
    assert "in raise_it" in describe(error, skip=1)[1]
    assert "in raise_it" in describe(error, skip=50)[1]


def test_an_error_that_was_never_raised_has_no_frames() -> None:
    assert describe(ValueError("x"), skip=3) == ("ValueError('x')", "ValueError: x\n")


def test_cause_and_notes_are_told() -> None:
    def both() -> None:
        try:
            raise KeyError("first")
        except KeyError as error:
            second = ValueError("second")
            second.add_note("look at the invoice")
            raise second from error

    text = describe(caught(both))[1]
    assert "KeyError: 'first'" in text
    assert text.splitlines()[-1] == "look at the invoice"


@pytest.mark.parametrize("length", [0, 1, 1000, 1024, 4000, 4096, 4097, 5000, 1_000_000])
@pytest.mark.parametrize("letter", ["x", "é", "☃", "\U0001d518"])
def test_a_cut_text_is_within_its_limit_and_has_both_ends(letter: str, length: int) -> None:
    text = "<" + letter * length + ">"
    for limit in (100, 4096):
        found = cut(text, limit)
        assert len(found.encode()) <= limit
        assert (found[0], found[-1]) == ("<", ">")
        assert (found == text) == (len(text.encode()) <= limit)
        if found != text:
            assert f"{len(text) - found.count(letter) - 2} characters left out" in found


def test_what_utf8_cannot_carry_is_replaced() -> None:
    assert cut("a\ud800b", 100) == "a?b"
    assert cut("\ud800" * 5000, 100).encode()


class Bad(Exception):
    """Its texts are made by `act`."""

    def __init__(self, act: Callable[[], object]) -> None:
        super().__init__()
        self.act = act

    def __repr__(self) -> str:
        return self.act()  # type: ignore[return-value]

    __str__ = __repr__


@pytest.mark.parametrize(
    "act",
    [
        boom(RuntimeError("no")),
        boom(SystemExit(2)),
        boom(KeyboardInterrupt()),
        boom(RecursionError()),
        lambda: None,
        lambda: 7,
        lambda: b"bytes",
    ],
)
def test_one_whose_texts_raise_or_are_none_gives_its_class(act: Callable[[], object]) -> None:
    error, text = describe(caught(boom(Bad(act))))
    assert error == "Bad"
    assert "Bad" in text.splitlines()[-1]


def test_texts_that_call_themselves_end() -> None:
    def again() -> object:
        return repr(bad)

    bad = Bad(again)
    assert describe(caught(boom(bad)))[0] == "Bad"


def test_both_are_bounded_however_large_the_error_is() -> None:
    def deep(n: int) -> None:
        if n:
            deep(n - 1)
        try:
            raise KeyError("k" * 3_000_000)
        except KeyError as error:
            raise ValueError("x" * 5_000_000) from error

    error, text = describe(caught(lambda: deep(200)))
    assert len(error.encode()) <= ERROR_MAX
    assert len(text.encode()) <= TRACEBACK_MAX
    assert error.startswith("ValueError('xxx")
    assert error.endswith("xxx')")
    assert text.startswith("Traceback")
    assert text.splitlines()[-1].startswith("ValueError: xxx")


def test_a_message_of_many_lines_keeps_its_last() -> None:
    text = describe(caught(boom(ValueError("one\ntwo\nthree"))))[1]
    assert text.splitlines()[-3:] == ["ValueError: one", "two", "three"]


def test_a_group_is_told_with_its_members() -> None:
    text = describe(caught(boom(ExceptionGroup("many", [ValueError(n) for n in range(500)]))))[1]
    assert "ValueError: 0" in text
    assert len(text.encode()) <= TRACEBACK_MAX
