"""Pieces of messages: a value, its type, the word that was meant."""

import difflib
from collections.abc import Iterable


def shown(value: object, limit: int = 80) -> str:
    """Show a value in a message: its repr, cut to `limit` characters, whatever the repr does.

    >>> shown("x" * 100, 12)
    "'xxxxxxxx..."
    """
    try:
        text = repr(value)
    except Exception:  # a repr may raise anything; an int of more than 4,300 digits does
        text = f"<{type(value).__name__}>"
    return text if len(text) <= limit else text[: limit - 3] + "..."


def a_type(value: object) -> str:
    """Name the type of a value with its article, for a message: `an int`.

    >>> a_type(5), a_type("x")
    ('an int', 'a str')
    """
    name = type(value).__name__
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"


def nearest(found: object, known: Iterable[str]) -> str:
    """Suggest the known word that is most like the one found, else list them all.

    >>> nearest("retrn", ["return", "raise"])
    "Did you mean 'return'?"
    """
    words = list(known)
    match = difflib.get_close_matches(str(found), words, n=1)
    if match:
        return f"Did you mean {match[0]!r}?"
    return f"Known are: {', '.join(words)}." if words else ""
