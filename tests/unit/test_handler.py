"""Handlers: still functions, calls that fit or are refused, options, and what many calls are made of."""

import asyncio
import functools
import inspect
import string
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rqlite_jobs import App, AsyncHandler, Handler, Retry, SyncHandler, until_executed, until_expired
from rqlite_jobs.binding import Binder
from rqlite_jobs.errors import (
    BadDuration,
    BadName,
    BadOption,
    RqjError,
    UnknownOption,
    UnserializableArguments,
    WrongArguments,
)
from rqlite_jobs.foreign import HANDLER_VERBS
from rqlite_jobs.options import OPTIONS, JobOptions


def crunch_sales(book_id: int, *, full: bool = False) -> float:
    """Add up the sales of a book."""
    return book_id * (2.0 if full else 1.0)


async def send_mail(to: str) -> str:
    return f"sent to {to}"


@pytest.fixture
def crunch(fake_app: App) -> SyncHandler[[int], float]:
    return fake_app.job(crunch_sales)


# A handler is still its function.


def test_calling_a_handler_runs_the_function(crunch: Any) -> None:
    assert isinstance(crunch, SyncHandler)
    assert crunch(3) == 3.0
    assert crunch(3, full=True) == 6.0


def test_calling_an_async_handler_gives_its_coroutine(fake_app: App) -> None:
    mail = fake_app.job(send_mail)
    assert isinstance(mail, AsyncHandler)
    assert mail.is_async
    assert asyncio.run(mail("a@b.c")) == "sent to a@b.c"


def test_a_handler_looks_like_its_function(crunch: Any) -> None:
    assert crunch.__name__ == crunch.name == "crunch_sales"
    assert crunch.__doc__ == "Add up the sales of a book."
    assert crunch.__module__ == __name__
    assert crunch.__wrapped__ is crunch.fn is crunch_sales
    assert inspect.signature(crunch) == crunch.signature == inspect.signature(crunch_sales)
    assert repr(crunch) == "<job 'crunch_sales'>"


def test_parameters_may_have_any_name(fake_app: App) -> None:
    @fake_app.job
    def odd(self: int, fn: int, args: int, kwargs: int, delay: int, id: int, name: int = 0) -> int:
        return self + fn + args + kwargs + delay + id + name

    job = odd.enqueue(self=1, fn=2, args=3, kwargs=4, delay=5, id=6, name=7)
    assert job.kwargs == {"self": 1, "fn": 2, "args": 3, "kwargs": 4, "delay": 5, "id": 6, "name": 7}
    assert odd(self=1, fn=2, args=3, kwargs=4, delay=5, id=6) == 21
    assert odd.s(self=1, fn=2, args=3, kwargs=4, delay=5, id=6).prepare().kwargs["self"] == 1


# A call that does not fit is refused there and then.


def kinds(a: int, b: int = 0, /, c: int = 0, *, d: int, e: int = 0) -> None: ...


def many(*numbers: int, **named: int) -> None: ...


@pytest.mark.parametrize(
    ("fn", "args", "kwargs", "said"),
    [
        (crunch_sales, (), {}, "job 'crunch_sales' needs argument 'book_id'"),
        (crunch_sales, (1, 2), {}, "takes 1 positional argument, and argument 2 of 2 is too many"),
        (crunch_sales, (1,), {"ful": 1}, "has no argument 'ful'.\nDid you mean 'full'?"),
        (crunch_sales, (1,), {"xyz": 1}, "has no argument 'xyz'.\nIt is declared as crunch_sales(book_id"),
        (crunch_sales, (1,), {"book_id": 1}, "was given argument 'book_id' twice"),
        (crunch_sales, (1,), {"delay": 5}, "As an option of the call: crunch_sales.options(delay=...)"),
        (kinds, (), {"d": 1}, "needs argument 'a'"),
        (kinds, (), {"a": 1, "d": 1}, "has no argument 'a'"),
        (kinds, (1, 2, 3), {}, "needs argument 'd'"),
        (kinds, (1, 2, 3, 4), {"d": 1}, "takes 3 positional arguments, and argument 4 of 4 is too many"),
        (kinds, (1, 2, 3), {"c": 3, "d": 1}, "was given argument 'c' twice"),
        (send_mail, (), {}, "needs argument 'to'"),
    ],
)
def test_a_call_that_does_not_fit(
    fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[Any, Any], said: str
) -> None:
    handler = App("t", url="redis://nowhere.invalid").job(fn)
    for call in (handler.enqueue, handler.s):
        with pytest.raises(WrongArguments) as caught:
            call(*args, **kwargs)
        assert said in str(caught.value)
        assert caught.value.job_name == fn.__name__
        assert isinstance(caught.value, TypeError)
    with pytest.raises(WrongArguments):
        asyncio.run(handler.aenqueue(*args, **kwargs))


def test_a_long_signature_is_cut_in_the_message() -> None:
    parameters = [inspect.Parameter(f"p{n}", inspect.Parameter.KEYWORD_ONLY) for n in range(100)]

    def wide(**kwargs: Any) -> None: ...

    wide.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    with pytest.raises(WrongArguments) as caught:
        Binder("wide", wide).bind((), {})
    assert len(str(caught.value)) < 320


def test_a_name_that_only_position_gives_may_be_any_named_argument() -> None:
    def fn(a: int = 0, /, **named: int) -> None: ...

    assert Binder("fn", fn).bind((), {"a": 1}) == {"a": 0, "named": {"a": 1}}


names = st.text(string.ascii_lowercase, min_size=1, max_size=1)


@st.composite
def signatures(draw: st.DrawFn) -> inspect.Signature:
    """Any order of parameters that Python allows."""
    P = inspect.Parameter
    drawn = draw(st.lists(st.tuples(names, st.integers(0, 4), st.booleans())))
    kinds = [P.POSITIONAL_ONLY, P.POSITIONAL_OR_KEYWORD, P.VAR_POSITIONAL, P.KEYWORD_ONLY, P.VAR_KEYWORD]
    made: dict[str, inspect.Parameter] = {}
    defaulted = False
    seen = set()
    for name, kind, has_default in sorted(drawn, key=lambda one: one[1]):
        if name in made or (kinds[kind] in (P.VAR_POSITIONAL, P.VAR_KEYWORD) and kind in seen):
            continue
        seen.add(kind)
        default: Any = P.empty
        if kind <= 1:
            defaulted = defaulted or has_default
            default = "default" if defaulted else P.empty
        elif kinds[kind] is P.KEYWORD_ONLY and has_default:
            default = "default"
        made[name] = P(name, kinds[kind], default=default)
    return inspect.Signature(list(made.values()))


@given(signatures(), st.lists(st.integers(), max_size=4), st.dictionaries(names, st.integers(), max_size=4))
def test_calls_are_bound_as_python_binds_them(
    signature: inspect.Signature, args: list[int], kwargs: dict[str, int]
) -> None:
    def fn() -> None: ...

    kinds = {one.name: one.kind for one in signature.parameters.values()}
    if inspect.Parameter.VAR_KEYWORD in kinds.values():
        # There `Signature.bind` refuses, before Python 3.13, what a call takes: f(a=1) for def f(a=0, /, **named).
        kwargs = {
            name: one for name, one in kwargs.items() if kinds.get(name) != inspect.Parameter.POSITIONAL_ONLY
        }
    fn.__signature__ = signature  # type: ignore[attr-defined]
    try:
        wanted = signature.bind(*args, **kwargs)
    except TypeError:
        with pytest.raises(WrongArguments, match="job 'fn'"):
            Binder("fn", fn).bind(tuple(args), kwargs)
        return
    wanted.apply_defaults()
    found = Binder("fn", fn).bind(tuple(args), kwargs)
    assert list(found.items()) == list(wanted.arguments.items())


# Options.


def test_options_make_a_new_handler_of_the_same_kind(fake_app: App) -> None:
    mail = fake_app.job(send_mail)
    slow = mail.options(queue="slow")
    assert type(slow) is AsyncHandler
    assert slow is not mail
    assert (mail.queue, slow.queue) == ("default", "slow")
    assert asyncio.run(slow("x")) == "sent to x"
    assert fake_app.handler("send_mail") is mail


def test_later_options_are_added_to_earlier_ones(crunch: Any) -> None:
    job = crunch.options(queue="slow", delay="10m").options(queue="slower").prepare((1,), {})
    assert (job.queue, job.delay_ms) == ("slower", 600_000)


def test_options_that_are_none_change_nothing_but_the_lock(fake_app: App) -> None:
    @fake_app.job(queue="sales", lock=until_executed())
    def locked() -> None: ...

    same = locked.options(queue=None, delay=None, run_at=None, retry=None).prepare((), {})
    assert (same.queue, same.delay_ms, same.run_at_ms) == ("sales", None, None)
    assert same.payload == b'["locked"]'
    assert same.lock is not None
    assert locked.options(lock=None).prepare((), {}).lock is None


def test_the_options_are_documented_and_all_there() -> None:
    assert set(OPTIONS) == set(JobOptions.__annotations__)
    source = inspect.getsource(JobOptions)
    for name in OPTIONS:
        assert f"    {name}: " in source
        assert source.split(f"    {name}: ")[1].split("\n")[1].startswith('    """')


@pytest.mark.parametrize("delay", [0, -5, -1e13, "0s", "-10m", timedelta(days=-1)])
def test_a_delay_that_is_over_is_none(crunch: Any, delay: Any) -> None:
    assert crunch.options(delay=delay).prepare((1,), {}).delay_ms is None


def test_a_time_is_an_instant_wherever_it_was_named(crunch: Any) -> None:
    sydney = datetime(2031, 7, 1, 12, tzinfo=ZoneInfo("Australia/Sydney"))
    for when in (sydney, sydney.astimezone(UTC)):
        assert crunch.options(run_at=when).prepare((1,), {}).run_at_ms == 1_940_637_600_000


def test_an_id_and_an_end_of_its_own(crunch: Any) -> None:
    job = crunch.options(id="night ☃", expires_in="1h").prepare((1,), {})
    assert (job.id, job.own_id, job.expires_ms, job.plain) == ("night ☃", True, 3_600_000, False)
    made = crunch.prepare((1,), {})
    assert (len(made.id), made.own_id, made.expires_ms, made.plain) == (20, False, None, True)


def test_what_would_expire_before_it_is_due_is_refused(crunch: Any) -> None:
    soon = crunch.options(expires_in="1h")
    assert soon.options(delay="59m").prepare((1,), {}).delay_ms == 3_540_000
    with pytest.raises(BadOption, match="job 'crunch_sales' would expire before it is due"):
        soon.options(delay="1h").prepare((1,), {})


def test_tags_travel_with_the_call_each_once(crunch: Any) -> None:
    tagged = crunch.options(tags=["night", "b", "night"])
    assert tagged.prepare((1,), {}).tags == ("night", "b")
    assert tagged.prepare((1,), {}).payload == b'["crunch_sales",[1],{},{"g":["night","b"]}]'
    both = tagged.options(retry=Retry(5)).prepare((1,), {}).payload
    assert both == b'["crunch_sales",[1],{},{"r":{"n":5},"g":["night","b"]}]'
    assert tagged.options(tags=()).prepare((1,), {}).payload == b'["crunch_sales",[1]]'


def test_what_a_declaration_says_holds_for_all_its_calls(fake_app: App) -> None:
    @fake_app.job(expires_in="1h", tags=["night"])
    def f() -> None: ...

    one, other = f.prepare((), {}), f.options(expires_in="2h", tags=["day"]).prepare((), {})
    assert (one.expires_ms, one.tags, other.expires_ms, other.tags) == (
        3_600_000,
        ("night",),
        7_200_000,
        ("day",),
    )

    def plain_of_this_test() -> None: ...

    with pytest.raises(BadDuration, match="is negative"):
        fake_app.job(expires_in=-1)(plain_of_this_test)
    with pytest.raises(UnknownOption, match="It is an option of a call"):
        fake_app.job(id="x")(f.fn)


def test_a_retry_travels_with_the_call(crunch: Any) -> None:
    assert (
        crunch.options(retry=Retry(5)).prepare((1,), {}).payload == b'["crunch_sales",[1],{},{"r":{"n":5}}]'
    )
    assert crunch.options(retry=Retry()).prepare((1,), {}).payload == b'["crunch_sales",[1],{},{"r":{}}]'


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"dely": 5}, UnknownOption, "Did you mean 'delay'?"),
        ({"max_retries": 1}, UnknownOption, "Here it is 'retry'."),
        ({"zzz": 1}, UnknownOption, "lock, id, expires_in, tags, result_ttl."),
        ({"priority": 3}, UnknownOption, "no option 'priority'"),
        ({"delay": float("nan")}, BadDuration, "not a finite number"),
        ({"delay": float("inf")}, BadDuration, "not a finite number"),
        ({"delay": "abc"}, BadDuration, "not a duration"),
        ({"delay": True}, BadDuration, "is a bool"),
        ({"delay": "200000d"}, BadDuration, "more than 100 years"),
        ({"run_at": datetime(2031, 7, 1, 12)}, BadOption, "has no zone"),
        ({"run_at": "2031-07-01"}, BadOption, "has to be a datetime"),
        ({"run_at": 1_940_637_600}, BadOption, "has to be a datetime"),
        ({"delay": 5, "run_at": datetime(2031, 7, 1, tzinfo=UTC)}, BadOption, "exclude each other"),
        ({"delay": 0, "run_at": datetime(2031, 7, 1, tzinfo=UTC)}, BadOption, "exclude each other"),
        ({"queue": "a b"}, BadName, "cannot be the name of a queue"),
        ({"queue": 3}, BadName, "the name of a queue is 3"),
        ({"retry": 3}, BadOption, "Write retry=Retry(max_attempts=3)"),
        ({"retry": Retry(only=ValueError)}, BadOption, "cannot have only="),
        ({"id": ""}, BadOption, "id: '' is empty."),
        ({"id": "x" * 101}, BadOption, "has 101 characters"),
        ({"id": "a{b"}, BadOption, "no braces"),
        ({"id": "a\nb"}, BadOption, "has characters that it may not have"),
        ({"id": "a\ud800"}, BadOption, "has characters that it may not have"),
        ({"id": 7}, BadOption, "id: 7 is an int, not text"),
        ({"expires_in": 0}, BadDuration, "would never let a job start"),
        ({"expires_in": -1}, BadDuration, "is negative"),
        ({"expires_in": "soon"}, BadDuration, "not a duration"),
        ({"tags": "night"}, BadOption, "Write tags=['night']."),
        ({"tags": {"night"}}, BadOption, "not a list of texts"),
        ({"tags": ["a", 7]}, BadOption, "tags: 7 is an int, not text"),
        ({"tags": ["a", ""]}, BadOption, "is empty"),
        ({"tags": ["a\0"]}, BadOption, "no control characters."),
        ({"tags": [str(n) for n in range(21)]}, BadOption, "21 tags are too many"),
        ({"lock": True}, BadOption, "Write lock=until_executed()"),
        ({"lock": until_executed}, BadOption, "not a lock policy"),
        ({"lock": until_executed(key="{book}")}, BadOption, "names 'book', which is no parameter"),
    ],
)
def test_bad_options_are_refused(
    crunch: Any, options: dict[str, Any], error: type[RqjError], said: str
) -> None:
    with pytest.raises(error) as caught:
        crunch.options(**options)
    assert said in str(caught.value)


def test_a_delay_and_a_time_exclude_each_other_in_two_steps_too(crunch: Any) -> None:
    with pytest.raises(BadOption, match="exclude each other"):
        crunch.options(delay="1s").options(run_at=datetime(2031, 7, 1, tzinfo=UTC))


# Other libraries' verbs.


@pytest.mark.parametrize("verb", HANDLER_VERBS)
def test_verbs_of_other_libraries_get_a_hint(crunch: Any, verb: str) -> None:
    assert not hasattr(crunch, verb)
    with pytest.raises(AttributeError) as caught:
        getattr(crunch, verb)(1)
    assert f"here it is crunch_sales.{HANDLER_VERBS[verb]}" in str(caught.value)


def test_other_names_get_none(crunch: Any) -> None:
    with pytest.raises(AttributeError, match=r"^SyncHandler has no attribute 'nothing'$"):
        _ = crunch.nothing


# Many calls.


def test_many_calls_may_be_tuples_mappings_and_signatures(crunch: Any) -> None:
    calls = [(1,), {"book_id": 2}, crunch.s(3, full=True), crunch.options(queue="slow").s(4)]
    jobs = crunch.options(queue="fast").enqueue_many(iter(calls))
    assert [(job.args, dict(job.kwargs), job.queue) for job in jobs] == [
        ((1,), {}, "fast"),
        ((), {"book_id": 2}, "fast"),
        ((3,), {"full": True}, "default"),
        ((4,), {}, "slow"),
    ]
    assert {job.outcome for job in jobs} == {"enqueued"}


@pytest.mark.parametrize("bad", [7, "text", b"bytes", None, [1], {1}, 1.5, crunch_sales])
def test_what_is_no_call_is_refused(fake_app: App, crunch: Any, bad: Any) -> None:
    with pytest.raises(WrongArguments, match=f"is an? {type(bad).__name__}") as caught:
        crunch.enqueue_many([(1,), bad])
    assert caught.value.__notes__ == ["This is item 1 of enqueue_many; nothing was sent."]
    assert fake_app.run(fake_app.operations.survey()).records == 0


def test_a_text_is_not_many_calls(crunch: Any) -> None:
    with pytest.raises(WrongArguments, match="'a' is a str"):
        crunch.enqueue_many("abc")


def test_a_call_of_another_job_is_refused(fake_app: App, crunch: Any) -> None:
    mail = fake_app.job(send_mail)
    with pytest.raises(WrongArguments, match="is a call of job 'send_mail', given to job 'crunch_sales'"):
        crunch.enqueue_many([mail.s("a@b.c")])


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        ((1, 2), WrongArguments),
        ({1: 2}, WrongArguments),
        ((object(),), UnserializableArguments),
        ({"id": 1}, WrongArguments),
    ],
)
def test_a_bad_item_leaves_nothing(fake_app: App, crunch: Any, bad: Any, error: type[RqjError]) -> None:
    calls: Iterator[Any] = iter([*((n,) for n in range(2000)), bad])
    with pytest.raises(error) as caught:
        crunch.enqueue_many(calls)
    assert caught.value.__notes__ == ["This is item 2000 of enqueue_many; nothing was sent."]
    assert fake_app.run(fake_app.operations.survey()).records == 0


def test_no_calls_are_no_trip() -> None:
    handler = App("t", url="redis://nowhere.invalid").job(crunch_sales)
    assert handler.enqueue_many([]) == []


def test_a_payload_is_bound_to_the_signature_it_meets(crunch: Any) -> None:
    from rqlite_jobs.codec import decode

    assert crunch.bind_payload(decode(b'["crunch_sales",[1],{"full":true}]')) == ((1,), {"full": True})
    with pytest.raises(WrongArguments, match="has no argument 'gone'"):
        crunch.bind_payload(decode(b'["crunch_sales",[1],{"gone":true}]'))


def test_a_decorated_function_keeps_the_parameters_it_shows(fake_app: App) -> None:
    def traced(fn: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fn)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return fn(*args, **kwargs)

        return wrapper

    handler: Handler[..., Any] = fake_app.job(traced(crunch_sales))
    assert handler.name == "crunch_sales"
    with pytest.raises(WrongArguments, match="needs argument 'book_id'"):
        handler.enqueue()


def test_a_lock_of_time_may_be_given_with_a_call(crunch: Any) -> None:
    job = crunch.options(lock=until_expired("1h", key="book:{book_id}")).enqueue(5)
    assert job.lock_key == "crunch_sales:book:5"
