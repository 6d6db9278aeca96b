"""Uniqueness: which calls of a job are the same work, and what happens to the second one."""

import inspect
import re
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal, TypeAlias, get_args

from rqlite_jobs.codec import canonical
from rqlite_jobs.durations import Duration, to_ms
from rqlite_jobs.errors import BadOption, UnserializableArguments, a_type, nearest, shown

Mode: TypeAlias = Literal["until_executed", "until_expired"]
OnConflict: TypeAlias = Literal["return", "raise", "log", "reject"]
Key: TypeAlias = str | Callable[..., str] | None

MODES: dict[str, str] = {"until_executed": "d", "until_expired": "e"}
"""The letter that stands for each mode in records and locks."""

MODE_OF: dict[str, str] = {letter: mode for mode, letter in MODES.items()}

KEY_MAX_BYTES = 512
"""The longest key that a template or function may give, in UTF-8."""

HASHED_OVER_BYTES = 100
"""A key made of the arguments is hashed when it is longer than this."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class Lock:
    """What one job asks for when it is enqueued.

    Attributes:
        mode: how long the lock is held: a key of `MODES`.
        key: the job's name, a colon, and what is the same in calls that are the same work.
        ttl_ms: how long it is held at most, from the enqueue; 0: as long as its job holds it.
        on_conflict: what to do when another job holds it.
    """

    mode: str
    key: str
    ttl_ms: int = 0
    on_conflict: str = "return"


@dataclass(frozen=True, slots=True)
class LockPolicy:
    """How the calls of a handler are kept unique. Made by `until_executed` and `until_expired`.

    Attributes:
        mode: `until_executed` holds from the enqueue to the end of the job (done or dead), and
            `until_expired` for `ttl_ms`, whatever the job does.
        key: what makes two calls the same work. None: all arguments, with defaults filled in. A template
            names parameters of the handler (`"book:{book_id}"`); a function takes the arguments of the call.
            Keys are the handler's own: those of another job never meet them.
        ttl_ms: the longest time the lock is held, in ms from the enqueue; 0: as long as the job holds it.
        on_conflict: what a second call gets while the lock is held. `return`: the job that holds it; `log`:
            the same, and a line in the log; `raise`: LockConflict; `reject`: its job is stored among the
            dead, as a duplicate that can be revived.

    Raises:
        BadOption: a mode or on_conflict that does not exist, an empty key, or `until_expired` without a ttl.
    """

    mode: Mode
    key: Key = None
    ttl_ms: int = 0
    on_conflict: OnConflict = "return"

    def __post_init__(self) -> None:
        _one_of("mode", self.mode, get_args(Mode))
        _one_of("on_conflict", self.on_conflict, get_args(OnConflict))
        if self.key is not None and not isinstance(self.key, str) and not callable(self.key):
            raise BadOption(
                f"key={shown(self.key)} is {a_type(self.key)}, not a template or a function.",
                hint='Write key="book:{book_id}" or key=lambda book_id: f"book:{book_id}".',
                option="key",
            )
        if self.mode == "until_expired" and self.ttl_ms <= 0:
            raise BadOption(
                "until_expired needs a ttl above 0.", hint='Write until_expired("1h").', option="ttl"
            )

    def check(self, job_name: str, signature: inspect.Signature) -> None:
        """Refuse, at declaration, a key that no call of the handler could give.

        Args:
            job_name: the job's name, for the message.
            signature: the handler's.

        Raises:
            BadOption: a template that names no parameter, or a function that cannot take the arguments.
        """
        if isinstance(self.key, str):
            _check_template(job_name, self.key, signature)
        elif self.key is not None:
            _check_function(job_name, self.key, signature)

    def lock_for(self, job_name: str, bound: inspect.BoundArguments) -> Lock:
        """Work out the lock of one call; defaults are filled into `bound`.

        Args:
            job_name: the job's name.
            bound: the arguments of the call, bound to the handler's signature.

        Raises:
            BadOption: the key is no text, empty, longer than 512 bytes, or has control characters.
            UnserializableArguments: an argument that is part of the key can be no part of a payload.

        Cost: in proportion to the arguments.
        """
        bound.apply_defaults()
        key = (
            _key_of_arguments(job_name, bound)
            if self.key is None
            else _key_as_declared(job_name, self.key, bound)
        )
        return Lock(self.mode, key, self.ttl_ms, self.on_conflict)


def until_executed(
    *, key: Key = None, ttl: Duration | None = None, on_conflict: OnConflict = "return"
) -> LockPolicy:
    """Keep a job unique from its enqueue to its end, through every retry.

    Args:
        key: what makes two calls the same work: see `LockPolicy`.
        ttl: the longest time the lock is held, counted from the enqueue; None: as long as the job lives.
        on_conflict: what a second call gets: see `LockPolicy`.

    Raises:
        BadOption, BadDuration: a value that no lock can have.

    Example: `@app.job(lock=until_executed(key="book:{book_id}"))`.
    """
    return LockPolicy("until_executed", key, 0 if ttl is None else _ttl_ms(ttl), on_conflict)


def until_expired(ttl: Duration, /, *, key: Key = None, on_conflict: OnConflict = "return") -> LockPolicy:
    """Let a job be enqueued once in a length of time, whatever becomes of it.

    Args:
        ttl: how long the lock is held, counted from the enqueue.
        key: what makes two calls the same work: see `LockPolicy`.
        on_conflict: what a second call gets: see `LockPolicy`.

    Raises:
        BadOption, BadDuration: a value that no lock can have.

    Example: `@app.job(lock=until_expired("1h"))`.
    """
    return LockPolicy("until_expired", key, _ttl_ms(ttl), on_conflict)


def _ttl_ms(ttl: Duration) -> int:
    found = to_ms(ttl, what="the ttl of a lock")
    if found == 0:
        raise BadOption(
            "the ttl of a lock is 0, so it would hold nothing.", hint='Write ttl="1h".', option="ttl"
        )
    return found


def _one_of(option: str, value: object, words: tuple[str, ...]) -> None:
    if value not in words:
        raise BadOption(
            f"{option}={shown(value)} is none of {', '.join(words)}.",
            hint=nearest(value, words),
            option=option,
        )


def _key_of_arguments(job_name: str, bound: inspect.BoundArguments) -> str:
    """Write all arguments by name: `sync:user_id=7,full=false`."""
    parts = []
    for name, value in bound.arguments.items():
        try:
            parts.append(name.encode() + b"=" + canonical(value))
        except UnserializableArguments as error:
            raise UnserializableArguments(
                f"argument {name!r} of job {job_name!r}: {error.message}",
                hint=error.hint,
                job_name=job_name,
                argument=name,
            ) from error
    text = b",".join(parts)
    if len(job_name.encode()) + 1 + len(text) > HASHED_OVER_BYTES:
        return f"{job_name}:#{blake2b(text, digest_size=16).hexdigest()}"
    return f"{job_name}:{text.decode()}"


def _key_as_declared(job_name: str, key: str | Callable[..., str], bound: inspect.BoundArguments) -> str:
    """Fill the template, or call the function."""
    try:
        found = key.format_map(bound.arguments) if isinstance(key, str) else key(*bound.args, **bound.kwargs)
    except Exception as error:  # it runs code of the user: __format__ of an argument, or the function
        raise BadOption(
            f"the lock key of job {job_name!r} could not be made: {type(error).__name__}: {error}.",
            hint="Mend the template or function given as key=.",
            option="key",
        ) from error
    if not isinstance(found, str):
        raise _bad_key(job_name, found, f"is {a_type(found)}, not text")
    try:
        size = len(found.encode())
    except UnicodeEncodeError as error:
        raise _bad_key(job_name, found, "has half of a pair of surrogates in it") from error
    if not found:
        raise _bad_key(job_name, found, "is empty")
    if size > KEY_MAX_BYTES:
        raise _bad_key(job_name, found, f"takes {size} bytes, and the limit is {KEY_MAX_BYTES}")
    if _CONTROL.search(found):
        raise _bad_key(job_name, found, "has a control character in it")
    return f"{job_name}:{found}"


def _bad_key(job_name: str, found: object, why: str) -> BadOption:
    return BadOption(
        f"the lock key {shown(found)} of job {job_name!r} {why}.",
        hint=f"Give a short text: at most {KEY_MAX_BYTES} bytes of UTF-8, without control characters.",
        option="key",
    )


def _check_template(job_name: str, template: str, signature: inspect.Signature) -> None:
    try:
        fields = list(_fields(template))
    except ValueError as error:
        raise _bad_key(job_name, template, f"is no template: {error}") from error
    if not template:
        raise _bad_key(job_name, template, "is empty")
    for name in fields:
        if name not in signature.parameters:
            parameters = ", ".join(signature.parameters) or "none"
            raise BadOption(
                f"the lock key {template!r} of job {job_name!r} names {name!r}, which is no parameter of it.",
                hint=f"Its parameters: {parameters}.",
                option="key",
            )


def _fields(template: str) -> Iterator[str]:
    """Go through the names of a template, also those inside a format: `{price:{width}}`."""
    for _, name, spec, _ in string.Formatter().parse(template):
        if name is not None:
            yield re.split(r"[.\[]", name, maxsplit=1)[0]
            yield from _fields(spec or "")


def _check_function(job_name: str, key: Callable[..., str], signature: inspect.Signature) -> None:
    """See whether the function takes what `lock_for` will call it with: every parameter of the handler."""
    positional: list[None] = []
    named: dict[str, Any] = {}
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            positional.append(None)
        elif parameter.kind == parameter.KEYWORD_ONLY:
            named[parameter.name] = None
    try:
        inspect.signature(key).bind(*positional, **named)
    except ValueError:  # a builtin that does not tell its parameters
        return
    except TypeError as error:
        raise BadOption(
            f"the key function of job {job_name!r} cannot take the arguments of the job: {error}.",
            hint=f"It is called with the same arguments: def key{signature}.",
            option="key",
        ) from error
