"""A job on its way to the server, and as it lies there."""

import os
import random
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from msgspec import Struct, field

from rqlite_jobs.lock import MODE_OF, Lock

_LAST_MS = 253_402_300_799_999  # the end of the year 9999, beyond which no datetime goes


class NewJob(Struct, frozen=True):
    """A call that was bound and encoded, ready to be sent.

    Attributes:
        id: its id.
        queue: where it goes.
        payload: what `codec.encode` made of the call.
        level: its place among the levels of its queue; 0 without priorities.
        delay_ms: how long from the server's now until it is due; None: now.
        run_at_ms: when it is due, in ms since 1970; None: now. Never together with `delay_ms`.
        lock: the lock it asks for.
        name, args, kwargs, tags: the call itself, for the handle that the caller gets.
        own_id: its id was chosen by the caller, so one that is known already is a duplicate and no fault.
        expires_ms: how long from the server's now it may wait to be started; None: for ever.
    """

    id: str
    queue: str
    payload: bytes
    level: int = 0
    delay_ms: int | None = None
    run_at_ms: int | None = None
    lock: Lock | None = None
    name: str = ""
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    own_id: bool = False
    expires_ms: int | None = None
    tags: tuple[str, ...] = ()

    @property
    def plain(self) -> bool:
        """Is it due now, without a lock, an id of its own and an end?"""
        due_now = self.delay_ms is None and self.run_at_ms is None
        return due_now and self.lock is None and not self.own_id and self.expires_ms is None


@dataclass(frozen=True, slots=True)
class Record:
    """A job as it lies in the hash `jobs`; lua/lib/record.lua reads and writes the same.

        1 NUL queue NUL level NUL enqueued_ms NUL {tag value NUL} NUL payload

    Attributes:
        queue: the queue it belongs to.
        level: its level in that queue, 0-9.
        enqueued_at_ms: when the server took it.
        mode: the mode of its lock, a key of `lock.MODES`; empty without a lock.
        lock_key: the key of its lock; empty without a lock.
        lock_ttl_ms: the ttl of its lock; 0: it lives with the job.
        payload: empty where it lies in the hash `bodies`.
        expires_at_ms: when it is too late to start it; 0: never.
    """

    queue: str
    level: int
    enqueued_at_ms: int
    mode: str = ""
    lock_key: str = ""
    lock_ttl_ms: int = 0
    payload: bytes = b""
    expires_at_ms: int = 0

    @classmethod
    def read(cls, raw: bytes) -> Self | None:
        """Read a record; None where it is not one of ours.

        >>> Record.read(bytes(1).join([b"1", b"sales", b"0", b"1700000000000", b"", b'["mail"]'])).queue
        'sales'
        """
        head = _HEAD.match(raw)
        if head is None:
            return None
        queue, level, enqueued_ms, tag_text = head.groups()
        payload = raw[head.end() :]
        tags = {tag[:1]: tag[1:] for tag in tag_text.split(b"\0")} if tag_text else {}
        try:
            expires_at_ms = int(tags.get(b"x", b"0"))
            found = cls(queue.decode(), int(level), int(enqueued_ms), *_lock_of(tags), payload, expires_at_ms)
        except ValueError:  # not UTF-8, not a number, or a lock with half of its facts
            return None
        return found if found.enqueued_at_ms <= _LAST_MS else None


_HEAD = re.compile(
    rb"1\0([^\0]+)\0([0-9])\0([0-9]{1,15})\0((?:[a-z][^\0]*\0)*)\0"  # queue, level, enqueued_ms, tags
)

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_PAIRS = [one + two for one in _DIGITS for two in _DIGITS]
_random = random.Random()  # our own: random.seed() in an application must not make ids repeat
_last_prefix = (0, "")
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_random.seed)


def new_id() -> str:
    """Make an id: 20 characters of base 62; 8 tell the time in ms, 2 the partition, and 10 are random.

    As text they sort by time. They differ between threads, processes and forks, whatever `random.seed` does.

    Cost: about 1 us.
    """
    global _last_prefix
    now_ms = time.time_ns() // 1_000_000
    prefix_ms, prefix = _last_prefix
    if now_ms != prefix_ms:
        prefix = _base62(now_ms, 4) + "00"
        _last_prefix = (now_ms, prefix)
    return prefix + _base62(_random.getrandbits(64), 5)


def _base62(number: int, pairs: int) -> str:
    """The last digits of a number: `pairs` times two."""
    text = ""
    for _ in range(pairs):
        number, rest = divmod(number, 3844)
        text = _PAIRS[rest] + text
    return text


def _lock_of(tags: Mapping[bytes, bytes]) -> tuple[str, str, int]:
    """Mode, key and ttl of the lock that the tags tell of."""
    if not tags:
        return "", "", 0
    letter, key = tags.get(b"m", b"").decode(), tags.get(b"k", b"").decode()
    if bool(letter) != bool(key):
        raise ValueError("a lock with a mode and no key, or the other way round")
    return MODE_OF.get(letter, letter), key, int(tags.get(b"t", b"0"))
