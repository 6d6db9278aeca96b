"""An exception as text: its repr and its traceback, both bounded, whatever they do when asked."""

import traceback
from types import TracebackType

ERROR_MAX = 4 * 1024
TRACEBACK_MAX = 32 * 1024


def describe(error: BaseException, skip: int = 0) -> tuple[str, str]:
    """The repr of an exception, and its traceback ending in the usual last line.

    Args:
        error: what was raised.
        skip: how many of the outermost frames are ours and tell the reader nothing.

    Returns:
        At most 4 KiB and 32 KiB, cut in the middle. An exception whose repr raises gives its class name.

    >>> describe(ValueError("bad data"))[0]
    "ValueError('bad data')"
    """
    return cut(_repr(error), ERROR_MAX), _traceback(error, skip)


def cut(text: str, limit: int) -> str:
    """Text of at most `limit` UTF-8 bytes: the beginning and the end of a longer one, and how much is left out.

    >>> cut("x" * 1000, 60)
    'xxxxxxxxxxxxx ... 974 characters left out ... xxxxxxxxxxxxx'
    """
    if len(text) * 4 <= limit or len(text.encode("utf-8", "replace")) <= limit:
        return text.encode("utf-8", "replace").decode()
    keep = max((limit - len(f" ... {len(text)} characters left out ... ")) // 2, 0)
    raw_head = text[:keep].encode("utf-8", "replace")[:keep].decode("utf-8", "ignore")
    raw_tail = text[-keep:].encode("utf-8", "replace")[-keep:].decode("utf-8", "ignore") if keep else ""
    left_out = len(text) - len(raw_head) - len(raw_tail)
    return f"{raw_head} ... {left_out} characters left out ... {raw_tail}"


def _repr(error: BaseException) -> str:
    try:
        return repr(error)
    except BaseException:  # a repr is anybody's code, and must not end the slot that asks for it
        return type(error).__name__


def _traceback(error: BaseException, skip: int) -> str:
    frames: TracebackType | None = error.__traceback__
    for _ in range(skip):
        if frames is not None and frames.tb_next is not None:
            frames = frames.tb_next
    try:
        made = traceback.TracebackException(type(error), error, frames, compact=True)
        # A message of megabytes stands in one of the lines, so each is cut before they are joined.
        lines = [cut(line, ERROR_MAX) for line in made.format()]
    except BaseException:  # formatting asks the exception for its text, its notes, its cause
        return f"{type(error).__name__}: (its traceback cannot be shown)\n"
    last = lines[-1] if lines[-1].endswith("\n") else lines[-1] + "\n"
    return cut("".join(lines[:-1]), TRACEBACK_MAX - len(last.encode("utf-8", "replace"))) + last
