"""The options of a call: a closed list, read and checked where they are written."""

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal, Self, TypedDict

from rqlite_jobs.backoff import Retry
from rqlite_jobs.durations import Duration, instant_ms, to_ms
from rqlite_jobs.errors import BadDuration, BadOption, UnknownOption, a_type, nearest, shown
from rqlite_jobs.foreign import OPTION_WORDS
from rqlite_jobs.keys import check_queue
from rqlite_jobs.lock import LockPolicy


class JobOptions(TypedDict, total=False):
    """What `handler.options(...)` takes. None is as if it were not given, but for `lock`."""

    queue: str | None
    """The queue that the job goes to, instead of the handler's."""

    delay: Duration | None
    """How long from now it becomes due, by the server's clock. 0 and negative: now. Not together with `run_at`.
    Example: `delay="10m"`."""

    run_at: datetime | None
    """When it becomes due. It has to have a zone; what is past is now. Not together with `delay`."""

    retry: Retry | None
    """When it is tried again, instead of the handler's policy. It travels as data: no functions, `only`, `never`."""

    lock: LockPolicy | None
    """What keeps it unique, instead of the handler's policy. None: nothing does."""

    id: str | None
    """Its id, instead of one made for it: 1 to 100 characters, no control characters, no braces. If a job of this id
    is still known, nothing is enqueued, and the answer is that job, as a `duplicate`."""

    expires_in: Duration | None
    """How long from now it may wait. What a worker has not started by then is not started any more: it ends as
    `expired`. Longer than `delay`. Example: `expires_in="1h"`."""

    tags: list[str] | tuple[str, ...] | None
    """Words about it, for those who look at it: at most 20, of at most 100 characters, instead of the handler's."""

    result_ttl: Duration | Literal["forever"] | None
    """How long what it returns is kept at least, instead of the handler's. 0: not at all.
    Example: `result_ttl="1h"`."""


OPTIONS: tuple[str, ...] = (
    "queue",
    "delay",
    "run_at",
    "retry",
    "lock",
    "id",
    "expires_in",
    "tags",
    "result_ttl",
)
"""The names of all options of a call."""

DECLARED: tuple[str, ...] = ("queue", "retry", "lock", "expires_in", "tags", "result_ttl")
"""Those that make sense for all calls of a job, and so in its declaration too."""

WORD_MAX = 100
TAGS_MAX = 20


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms on which calls of a handler are enqueued: its declaration, and the options given since.

    Attributes:
        queue: where the job goes; None: to the default queue.
        delay_ms: when it is due, from now; None: now, or at `run_at_ms`.
        run_at_ms: when it is due, in ms since 1970.
        retry: when it is tried again, instead of the handler's policy, as it travels in the payload.
        lock: what keeps it unique.
        id: its id; empty: one is made for it.
        expires_ms: how long from now it may wait to be started; None: for ever.
        tags: words about it.
        result_ttl_ms: how long what it returns is kept, instead of the handler's; -1: for ever.
    """

    queue: str | None = None
    delay_ms: int | None = None
    run_at_ms: int | None = None
    retry: Mapping[str, Any] | None = None
    lock: LockPolicy | None = None
    id: str = ""
    expires_ms: int | None = None
    tags: tuple[str, ...] = ()
    result_ttl_ms: int | None = None

    @property
    def payload(self) -> dict[str, Any] | None:
        """What of this travels in the payload, under short keys; None without any."""
        if self.retry is None and not self.tags and self.result_ttl_ms is None:
            return None
        told: dict[str, Any] = {} if self.retry is None else {"r": self.retry}
        if self.tags:
            told["g"] = self.tags
        if self.result_ttl_ms is not None:
            told["t"] = self.result_ttl_ms
        return told

    def but(self, options: Mapping[str, Any]) -> Self:
        """The same terms with these options.

        Args:
            options: see `JobOptions`.

        Raises:
            UnknownOption: there is no option of this name.
            BadOption, BadDuration, BadName: a value that the option cannot have.

        >>> Terms().but({"delay": "10m"}).delay_ms
        600000
        """
        changes: dict[str, Any] = {}
        for name, value in options.items():
            if name not in OPTIONS:
                hint = (
                    f"Here it is {OPTION_WORDS[name]!r}." if name in OPTION_WORDS else nearest(name, OPTIONS)
                )
                raise UnknownOption(f"there is no option {name!r} of a call.", hint=hint, option=name)
            if name == "lock":
                changes["lock"] = check_lock(value)
            elif value is None:
                continue
            elif name == "queue":
                changes["queue"] = check_queue(value)
            elif name == "retry":
                changes["retry"] = check_retry(value).to_wire()
            elif name == "id":
                changes["id"] = check_word(value, "id", "{}")
            elif name == "expires_in":
                changes["expires_ms"] = check_expiry(value)
            elif name == "tags":
                changes["tags"] = check_tags(value)
            elif name == "result_ttl":
                changes["result_ttl_ms"] = ttl_ms(value)
            elif name == "delay":
                # Not 0: a job that is due now needs no look at the clock, and is answered more shortly.
                changes["delay_ms"] = max(0, to_ms(value, what="delay", signed=True)) or None
            else:
                changes["run_at_ms"] = instant_ms(value)
        made = replace(self, **changes)
        both = options.get("delay") is not None and options.get("run_at") is not None
        if both or (made.delay_ms is not None and made.run_at_ms is not None):
            raise BadOption("delay and run_at exclude each other.", hint="Give one of them.", option="run_at")
        return made


def check_expiry(value: Any) -> int:
    """A time that a job may wait, in ms.

    Raises:
        BadDuration: no duration, or one that is over at once.
    """
    if found := to_ms(value, what="expires_in"):
        return found
    raise BadDuration(
        "expires_in=0 would never let a job start.",
        hint='Give it a time: expires_in="1h"; without the option it waits as long as it takes.',
    )


def check_tags(tags: object) -> tuple[str, ...]:
    """The tags, each once.

    Raises:
        BadOption: no list of short texts.
    """
    if not isinstance(tags, list | tuple):
        hint = f"Write tags=[{shown(tags)}]." if isinstance(tags, str) else 'Write tags=["import", "night"].'
        raise BadOption(
            f"tags={shown(tags)} is {a_type(tags)}, not a list of texts.", hint=hint, option="tags"
        )
    found = tuple(dict.fromkeys(check_word(tag, "tags") for tag in tags))
    if len(found) > TAGS_MAX:
        raise BadOption(f"{len(found)} tags are too many.", hint=f"Give {TAGS_MAX} at most.", option="tags")
    return found


def check_word(word: object, option: str, forbidden: str = "") -> str:
    """A short text of one line.

    Args:
        word: what was given.
        option: for which option, to be named in an error.
        forbidden: characters that it may not have.

    Raises:
        BadOption: it is no text, empty, too long, or has characters that it may not have.

    >>> check_word("import-7", "id")
    'import-7'
    """
    why = ""
    if not isinstance(word, str):
        why = f"is {a_type(word)}, not text"
    elif not 1 <= len(word) <= WORD_MAX:
        why = f"has {len(word):,} characters" if word else "is empty"
    elif any(letter in forbidden or unicodedata.category(letter) in _UNSEEN for letter in word):
        why = "has characters that it may not have"
    else:
        return word
    braces = ", no control characters, no braces" if forbidden else ", no control characters"
    raise BadOption(
        f"{option}: {shown(word)} {why}.",
        hint=f"Give a text of 1 to {WORD_MAX} characters{braces}.",
        option=option,
    )


_UNSEEN = frozenset({"Cc", "Cs", "Zl", "Zp"})  # control characters, halves of surrogate pairs, ends of lines


def ttl_ms(value: Any, what: str = "result_ttl") -> int:
    """How long a result is kept, in ms; -1 for `forever`.

    Raises:
        BadDuration: it is neither a duration nor `forever`.

    >>> ttl_ms("1h"), ttl_ms("forever")
    (3600000, -1)
    """
    return -1 if value == "forever" else to_ms(value, what=what)


def check_lock(lock: object) -> LockPolicy | None:
    """The policy itself, if it is one, or None.

    Raises:
        BadOption: it is something else.
    """
    if lock is None or isinstance(lock, LockPolicy):
        return lock
    found = f"lock={shown(lock)} is {a_type(lock)}, not a lock policy."
    raise BadOption(found, hint="Write lock=until_executed(), or lock=None for none.", option="lock")


def check_retry(retry: object) -> Retry:
    """The policy itself, if it is one.

    Raises:
        BadOption: it is something else.
    """
    if isinstance(retry, Retry):
        return retry
    found = f"retry={shown(retry)} is {a_type(retry)}, not a Retry."
    attempts = retry if type(retry) is int and retry > 0 else 5
    raise BadOption(found, hint=f"Write retry=Retry(max_attempts={attempts}).", option="retry")
