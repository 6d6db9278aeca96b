"""Words as a server reads them (RESP): packed in C where hiredis is installed, which takes half the time."""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

Word = str | bytes | int


def pack(words: Sequence[Word]) -> bytes:
    """The words one behind the other, each with its length; without the count that a whole command begins with.

    >>> pack(["GET", b"x", 7])
    b'$3\\r\\nGET\\r\\n$1\\r\\nx\\r\\n$1\\r\\n7\\r\\n'
    """
    if _in_c is not None:
        try:
            return _in_c(tuple(words))
        except UnicodeEncodeError:
            pass  # an id that is no UTF-8
    return _in_python(words)


def command(count: int, *parts: bytes) -> bytes:
    """A whole command of `count` words, given in packed parts."""
    return b"*%d\r\n%b" % (count, b"".join(parts))


def _in_python(words: Sequence[Word]) -> bytes:
    parts = []
    for word in words:
        raw = word if type(word) is bytes else str(word).encode("utf-8", "surrogateescape")
        parts.append(b"$%d\r\n%b\r\n" % (len(raw), raw))
    return b"".join(parts)


def _hiredis() -> Callable[[tuple[Word, ...]], bytes] | None:
    try:
        pack_command: Any = import_module("hiredis").pack_command
    except (ImportError, AttributeError):
        return None

    def packed(words: tuple[Word, ...]) -> bytes:
        whole: bytes = pack_command(words)
        return whole[whole.index(b"\n") + 1 :]  # behind the count

    return packed


_in_c = _hiredis()
