"""Keeping passwords out of sight: an address of a server in a text for people loses its credentials."""

import re

# Greedy: a password that was not written as %xx may hold an @ itself.
_CREDENTIALS = re.compile(r"\b((?:redis|valkey|unix)[\w+.-]*://)\S*@", re.IGNORECASE)
_PARAMETER = re.compile(r"([?&](?:ssl_)?password=)[^\s&'\")]*", re.IGNORECASE)


def masked(text: str) -> str:
    """A text in which no address shows its credentials, for words that were typed in the wrong place.

    >>> masked("there is no 'redis://ann:secret@localhost:6379'")
    "there is no 'redis://***@localhost:6379'"
    """
    return _PARAMETER.sub(r"\1***", _CREDENTIALS.sub(r"\1***@", text))
