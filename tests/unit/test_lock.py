"""Lock policies: which calls get one key (G01), and keys that are refused at declaration or at the call."""

import inspect
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rqlite_jobs.errors import BadDuration, BadOption, UnserializableArguments
from rqlite_jobs.lock import (
    HASHED_OVER_BYTES,
    KEY_MAX_BYTES,
    MODE_OF,
    MODES,
    Lock,
    LockPolicy,
    until_executed,
    until_expired,
)


def sync(user_id: int, opts: Any = None, *, full: bool = False) -> None: ...


def many(first: int, /, *rest: Any, **more: Any) -> None: ...


SYNC = inspect.signature(sync)
MANY = inspect.signature(many)


def key_of(policy: LockPolicy, signature: inspect.Signature, *args: Any, **kwargs: Any) -> str:
    return policy.lock_for("sync", signature.bind(*args, **kwargs)).key


def test_g01_one_call_in_other_spelling_has_one_key() -> None:
    policy = until_executed()
    keys = [
        key_of(policy, SYNC, 7, {"a": 1, "b": 2}),
        key_of(policy, SYNC, 7, {"b": 2, "a": 1}),
        key_of(policy, SYNC, user_id=7, opts={"a": 1, "b": 2}),
        key_of(policy, SYNC, 7, opts={"b": 2, "a": 1}, full=False),
    ]
    assert keys == ['sync:user_id=7,opts={"a":1,"b":2},full=false'] * 4
    assert key_of(policy, SYNC, 7, {"a": 1, "b": 2}, full=True) not in keys


def test_g01_the_key_is_one_under_every_hash_seed() -> None:
    code = (
        "import inspect; from rqlite_jobs.lock import until_executed\n"
        "def sync(user_id, opts=None): ...\n"
        "bound = inspect.signature(sync).bind(8, {'x': {'p': 1, 'q': 2}, 'y': {'a', 'b', 'c', 'd'}})\n"
        "print(until_executed().lock_for('sync', bound).key)"
    )
    root = str(Path(__file__).parents[2])
    found = set()
    for seed in ("1", "2", "3"):
        environ = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": root}
        done = subprocess.run(
            [sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True
        )
        found.add(done.stdout)
    assert len(found) == 1


def test_values_of_other_types_have_other_keys() -> None:
    calls: list[Any] = [1, 1.0, "1", True, b"1", [1], (1,), {1}, None]
    assert len({key_of(until_executed(), SYNC, value) for value in calls}) == len(calls)


def test_arguments_of_every_kind_are_part_of_the_key() -> None:
    keys = {
        key_of(until_executed(), MANY, *args, **kwargs)
        for args, kwargs in (
            ((1,), {}), ((1, 2), {}), ((1, 2, 3), {}), ((1,), {"a": 2}), ((1,), {"first": 2}),
            ((1,), {"rest": [2]}),
        )
    }  # fmt: skip
    assert len(keys) == 6
    assert key_of(until_executed(), MANY, 1, b=2, a=3) == key_of(until_executed(), MANY, 1, a=3, b=2)


@given(st.text(max_size=200))
def test_a_long_key_is_hashed_and_stays_that_of_its_call(text: str) -> None:
    key = key_of(until_executed(), SYNC, 7, text)
    assert key == key_of(until_executed(), SYNC, 7, opts=text)
    assert len(key.encode()) <= HASHED_OVER_BYTES
    assert key != key_of(until_executed(), SYNC, 7, text + "x")
    assert "\0" not in key


def test_a_template_or_function_gives_a_readable_key_of_the_job() -> None:
    for key in ("user:{user_id}", lambda user_id, opts=None, *, full=False: f"user:{user_id}"):
        policy = until_executed(key=key)
        policy.check("sync", SYNC)
        assert key_of(policy, SYNC, 7) == key_of(policy, SYNC, user_id=7, full=True) == "sync:user:7"


@pytest.mark.parametrize(
    ("template", "key"),
    [
        ("nightly", "sync:nightly"),
        ("{user_id:05d}/{full}", "sync:00007/False"),
        ("{opts[a]}", "sync:1"),
        ("{opts[a]:{user_id}}!", "sync:      1!"),
        ("{{{user_id}}}", "sync:{7}"),
        ("größe {user_id}", "sync:größe 7"),
    ],
)
def test_templates_are_those_of_format(template: str, key: str) -> None:
    policy = until_executed(key=template)
    policy.check("sync", SYNC)
    assert key_of(policy, SYNC, 7, {"a": 1}) == key


def test_a_function_that_takes_anything_is_called_with_the_whole_call() -> None:
    seen: list[Any] = []

    def key(*args: Any, **kwargs: Any) -> str:
        seen.append((args, kwargs))
        return "k"

    policy = until_executed(key=key)
    policy.check("sync", SYNC)
    policy.check("many", MANY)
    assert key_of(policy, SYNC, 7) == "sync:k"
    assert seen == [((7, None), {"full": False})]


@pytest.mark.parametrize(
    ("key", "says"),
    [
        ("user:{user}", "names 'user', which is no parameter"),
        ("{}", "names '', which"),
        ("{0}", "names '0', which"),
        ("{user_id:{width}}", "names 'width', which"),
        ("{user_id", "is no template"),
        ("}", "is no template"),
        ("", "is empty"),
        (lambda: "k", "cannot take the arguments"),
        (lambda user_id, opts: "k", "cannot take the arguments"),
        (lambda user_id, opts, extra, *, full: "k", "cannot take the arguments"),
    ],
)
def test_a_key_that_no_call_could_give_is_refused_at_declaration(key: Any, says: str) -> None:
    with pytest.raises(BadOption, match="'sync'") as caught:
        until_executed(key=key).check("sync", SYNC)
    assert says in caught.value.message
    assert caught.value.hint


def test_a_builtin_as_key_function_is_tried_at_the_call() -> None:
    policy = until_executed(key=dict)
    policy.check("sync", SYNC)
    with pytest.raises(BadOption, match="could not be made: TypeError"):
        key_of(policy, SYNC, 7)


class Rude:
    def __format__(self, spec: str) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("key", "opts", "says"),
    [
        ("{opts.name}", None, "could not be made: AttributeError"),
        ("{opts[a]}", {}, "could not be made: KeyError: 'a'"),
        ("{opts:d}", "x", "could not be made: ValueError"),
        ("{opts}", Rude(), "could not be made: RuntimeError: no"),
        ("{opts}", "", "is empty"),
        ("{opts}", "a\0b", "control character"),
        ("{opts}", "a\nb", "control character"),
        ("{opts}", "\x85", "control character"),
        ("{opts}", "\ud800", "surrogates"),
        ("{opts}", "é" * 257, "takes 514 bytes, and the limit is 512"),
        (lambda *args, **kwargs: 5, None, "is an int, not text"),
        (lambda *args, **kwargs: b"k", None, "is a bytes, not text"),
        (lambda *args, **kwargs: 1 / 0, None, "could not be made: ZeroDivisionError"),
    ],
)
def test_a_key_that_cannot_be_one_is_refused_at_the_call(key: Any, opts: Any, says: str) -> None:
    with pytest.raises(BadOption, match="of job 'sync'") as caught:
        key_of(until_executed(key=key), SYNC, 7, opts)
    assert says in caught.value.message
    assert isinstance(caught.value, ValueError)
    assert caught.value.hint


def test_the_longest_key_is_accepted() -> None:
    assert len(key_of(until_executed(key="{opts}"), SYNC, 7, "x" * KEY_MAX_BYTES)) == KEY_MAX_BYTES + 5


def test_an_argument_that_no_payload_carries_is_named() -> None:
    with pytest.raises(
        UnserializableArguments, match=r"argument 'opts' of job 'sync'.*is a function"
    ) as caught:
        key_of(until_executed(), SYNC, 7, [lambda: 0])
    assert (caught.value.job_name, caught.value.argument) == ("sync", "opts")


@pytest.mark.parametrize(
    ("make", "lock"),
    [
        (lambda: until_executed(), Lock("until_executed", "sync:k", 0, "return")),
        (
            lambda: until_executed(ttl="1m", on_conflict="raise"),
            Lock("until_executed", "sync:k", 60_000, "raise"),
        ),
        (lambda: until_expired("6s"), Lock("until_expired", "sync:k", 6_000, "return")),
        (lambda: until_expired(0.25, on_conflict="reject"), Lock("until_expired", "sync:k", 250, "reject")),
    ],
)
def test_the_lock_of_a_call_carries_the_policy(make: Callable[[], LockPolicy], lock: Lock) -> None:
    policy = make()
    found = LockPolicy(policy.mode, "k", policy.ttl_ms, policy.on_conflict).lock_for("sync", SYNC.bind(7))
    assert found == lock
    assert hash(policy) == hash(make())


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: until_executed(on_conflict="retrun"), BadOption, "Did you mean 'return'?"),
        (lambda: until_executed(on_conflict="rerun"), BadOption, "is none of return, raise, log, reject"),
        (lambda: until_executed(on_conflict=None), BadOption, "is none of"),
        (lambda: until_executed(key=5), BadOption, "key=5 is an int, not a template or a function"),
        (lambda: until_executed(ttl=0), BadOption, "the ttl of a lock is 0"),
        (lambda: until_executed(ttl=-1), BadDuration, "the ttl of a lock -1 is negative"),
        (lambda: until_expired("soon"), BadDuration, "the ttl of a lock 'soon'"),
        (lambda: until_expired(None), BadDuration, "the ttl of a lock None"),
        (lambda: LockPolicy("until_expired"), BadOption, "needs a ttl"),
        (lambda: LockPolicy("forever"), BadOption, "mode='forever' is none of"),
        (lambda: LockPolicy([]), BadOption, "mode=[] is none of"),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(
    make: Callable[[], Any], error: type[ValueError], says: str
) -> None:
    with pytest.raises(error) as caught:
        make()
    assert says in str(caught.value)


def test_every_mode_has_a_letter_of_its_own() -> None:
    assert {MODE_OF[letter]: letter for letter in MODES.values()} == MODES
