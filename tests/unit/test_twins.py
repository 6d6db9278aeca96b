"""Every method that talks to the server has a twin for async code, with the prefix `a` and the same parameters."""

import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

from rqlite_jobs import App, Handler, Job
from rqlite_jobs.caller import AsyncCaller, Caller
from rqlite_jobs.control import Control
from rqlite_jobs.link import Link
from rqlite_jobs.producer import Producer

# Those that talk to no server. A method that is neither here nor has a twin fails the test, so that
# nobody can forget one.
SILENT: dict[type, set[str]] = {
    App: {"declaration", "handler", "job", "load_imports", "retry_of", "set_flags"},
    Handler: {"bind_payload", "options", "prepare", "s"},
    Job: set(),
    Producer: {"prepare"},
    Link: set(),
    Control: set(),
}


def methods(cls: type) -> Iterator[tuple[str, Any]]:
    """The public methods of a class and its bases."""
    for name, member in inspect.getmembers(cls, inspect.isfunction):
        if not name.startswith("_"):
            yield name, member


def awaited(annotation: object) -> str:
    """An annotation as text, without what makes no difference."""
    return re.sub(r"rqlite_jobs\.\w+\.|['\"]", "", str(annotation))


@pytest.mark.parametrize("cls", SILENT)
def test_every_method_that_talks_has_a_twin(cls: type) -> None:
    found = dict(methods(cls))
    twins = {name for name in found if name.startswith("a") and name[1:] in found}
    alone = {name for name in found if name not in twins and f"a{name}" not in found}
    assert alone == SILENT[cls]


@pytest.mark.parametrize("cls", SILENT)
def test_twins_take_the_same_and_give_the_same(cls: type) -> None:
    found = dict(methods(cls))
    for name, twin in found.items():
        if not name.startswith("a") or name[1:] not in found:
            continue
        method = found[name[1:]]
        assert inspect.iscoroutinefunction(twin), f"{name} is no async def"
        assert not inspect.iscoroutinefunction(method), f"{name[1:]} is an async def"
        one, other = inspect.signature(method), inspect.signature(twin)
        assert [str(p) for p in one.parameters.values()] == [str(p) for p in other.parameters.values()], name
        assert awaited(one.return_annotation) == awaited(other.return_annotation), name
        assert twin.__doc__, name


def test_the_two_callers_are_twins() -> None:
    one, other = dict(methods(Caller)), dict(methods(AsyncCaller))
    assert one.keys() == other.keys()
    for name in one.keys() & {"run", "command"}:
        parameters = (inspect.signature(found[name]).parameters.values() for found in (one, other))
        first, second = ([str(parameter) for parameter in found] for found in parameters)
        assert first == second, name


@pytest.mark.parametrize(("one", "other"), [("_drive", "_adrive"), ("enqueue", "aenqueue")])
def test_the_two_drivers_differ_by_the_word_await(one: str, other: str) -> None:
    """Logic once, input and output twice: nothing but awaiting may tell the two apart."""

    def bare(name: str) -> str:
        source = inspect.getsource(getattr(Producer, name))
        source = re.sub(r'""".*?"""', "", source, flags=re.DOTALL)
        source = re.sub(r"\basync |\bawait ", "", source)
        source = re.sub(r"\b_?a(?=(drive|run|enqueue)\b)", lambda found: found[0][:-1], source)
        return re.sub(r"[\s()]", "", source)

    assert bare(one) == bare(other)
