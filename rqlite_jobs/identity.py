"""Who does something to a namespace, as the changelog and a paused queue tell it."""

from rqlite_jobs.errors import BadOption, a_type, shown

BY_MAX = 100
"""The longest name of somebody, in characters; what is longer is cut."""


def who() -> str:
    """The user of this process and its host, for those who wonder later: `ann@shop-1`."""
    import getpass  # here, since a producer that only enqueues needs neither
    import platform

    try:
        user = getpass.getuser()
    except (OSError, KeyError, ImportError):  # a user id without a name, as containers have
        user = "somebody"
    return f"{user}@{platform.node() or 'unknown'}"[:BY_MAX]


def named(by: str | None) -> str:
    """What is written down for `by`: itself, cut to 100 characters; `who()` where nobody is named.

    Raises:
        BadOption: it is no text.

    >>> named("night shift")
    'night shift'
    """
    if by is None:
        return who()
    if not isinstance(by, str):
        raise BadOption(
            f"by={shown(by)} is {a_type(by)}, not text.", hint='Say who asks: by="ann".', option="by"
        )
    return by.strip()[:BY_MAX] or who()
