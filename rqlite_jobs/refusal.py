"""What the errors mean that a request ends with: each as an error of ours, with what to do about it."""

import re
from typing import TYPE_CHECKING, Any, NoReturn

from rqlite_jobs.call import Call
from rqlite_jobs.errors import RqjError, ScriptFailed, ServerFull, ServerReadOnly, Unreachable
from rqlite_jobs.script import script

if TYPE_CHECKING:
    import redis

_LINE = re.compile(r"(?:user_script|\[string \"[^\"]*\"\]):(\d+)")
_FOREIGN = " (`rqj doctor` names a key that is not of the type it should be.)"
SOON = ("LOADING", "BUSY", "TRYAGAIN", "CLUSTERDOWN", "MASTERDOWN")
READ_ONLY = ("READONLY", "MISCONF", "NOREPLICAS")
"""First words of the errors by which a server says that it takes no writes."""


class Refusals:
    """Raises what an answer of the server means that is an error.

    Args:
        server: its address as it is shown to people.
    """

    def __init__(self, server: str) -> None:
        self._server = server

    def of_call(self, call: Call[Any], error: "redis.RedisError") -> NoReturn:
        """Raise what an error reply to a call means, with what to do about it."""
        self._any(error)
        text = said(error)
        if text.startswith("RQJ_"):
            raise RqjError(text.partition(" ")[2].partition(" script: ")[0] + ".") from error
        found = _LINE.search(text)
        at = script(call.verb).origin(int(found[1])) if found else script(call.verb).lines[0]
        raise ScriptFailed(
            f"lua/{call.verb}.lua failed at {at.file}:{at.number}: {text.partition(' script: ')[0]}",
            hint=f"There it says: {at.text.strip()}" + (_FOREIGN if "WRONGTYPE" in text else ""),
            script=call.verb,
            file=at.file,
            line=at.number,
            text=at.text,
        ) from error

    def of_command(self, words: tuple[str | int, ...], error: "redis.RedisError") -> NoReturn:
        """Raise what an error reply to a plain command means."""
        self._any(error)
        raise RqjError(f"the server {self._server} refused {words[0]}: {_first_words(error)}.") from error

    def of_connection(self, error: "redis.RedisError") -> NoReturn:
        """Raise what an error reply means that came before anything was asked."""
        self._any(error)
        raise Unreachable(
            f"the server {self._server} refuses the connection: {_first_words(error)}.",
            hint="Mend the URL: its user, password or db does not fit this server.",
        ) from error

    def _any(self, error: "redis.RedisError") -> None:
        """Raise what an error means whatever was asked; return if it is none of these."""
        text = said(error)
        word = text.partition(" ")[0]
        where = self._server
        if text.startswith("OOM") or "maxmemory" in text:
            raise ServerFull(
                f"the server {where} is over its memory limit and takes no new jobs.",
                hint="Workers go on and will make room; raise maxmemory, or purge what is not needed.",
            ) from error
        if word in READ_ONLY:
            raise ServerReadOnly(
                f"the server {where} takes no writes now ({word}).",
                hint="Look at its log: a replica, a full disk or too few replicas; nothing was changed.",
            ) from error
        if word in SOON:
            raise Unreachable(f"the server {where} is not ready ({word}).", hint="Try again soon.") from error
        if word == "NOPERM":
            raise RqjError(
                f"the user of the server {where} may not do this: {text}.",
                hint="Give the user the rights that scripts need: +eval +evalsha and the commands they call.",
            ) from error
        if word in ("NOAUTH", "WRONGPASS"):
            raise Unreachable(
                f"the server {where} refuses these credentials ({word}).",
                hint="Mend the user and password in the URL."
                if word == "WRONGPASS"
                else "Give a password in the URL.",
            ) from error

    def unreachable(self, error: BaseException, *, sent: bool) -> NoReturn:
        """Raise that the server was not reached, and whether the request may have been carried out."""
        unsure = "the answer was lost, so it may have been carried out" if sent else "nothing was sent"
        raise Unreachable(
            f"the server {self._server} cannot be reached ({_first_words(error)}); {unsure}.",
            hint="Is it running, and is the address right? `rqj doctor` looks closer.",
        ) from error


def refusal(error: BaseException) -> "redis.RedisError | None":
    """The answer of the server that an error is, or None if it is one of the connection.

    The client library has two such answers among the errors of connections; and while it connects for an event
    loop, it wraps all of them in one.
    """
    import redis

    for one in (error, error.__cause__):
        if isinstance(one, redis.ResponseError | redis.AuthenticationError | redis.BusyLoadingError):
            return one
    return None


def said(error: BaseException) -> str:
    """What the server said, its first word included: the client library takes it off the errors it has a class for."""
    text = str(error)
    if text.startswith(
        "Protocol error: unauthenticated"
    ):  # a long command without a password is not even read
        return f"NOAUTH {text}"
    for one in type(error).__mro__:
        word = _TAKEN_OFF.get(one.__name__)
        if word:
            word = "NOAUTH" if text.startswith("Authentication required") else word
            return text if text.startswith(word) else f"{word} {text}"
    return text


_TAKEN_OFF = {
    "BusyLoadingError": "LOADING",
    "NoScriptError": "NOSCRIPT",
    "ReadOnlyError": "READONLY",
    "OutOfMemoryError": "OOM",
    "NoPermissionError": "NOPERM",
    "AuthenticationError": "WRONGPASS",
    "TryAgainError": "TRYAGAIN",
    "ClusterDownError": "CLUSTERDOWN",
    "MasterDownError": "MASTERDOWN",
}


def _first_words(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
