"""One call of a script, as a value: what is sent, and how the reply is read."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, Literal, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from rqlite_jobs.keys import ScriptKeys

T = TypeVar("T")
Arg = str | bytes | int


class Call(Struct, Generic[T], frozen=True):
    """One call of a script.

    Attributes:
        verb: the script.
        keys: its keys, in order.
        args: its arguments, in order; a lane and a nonce come before them where `repeat` is `laned`.
        read: makes the answer of the raw reply.
        repeat: what makes it safe to send again when its answer was lost. `free`: it may be done twice. `laned`:
            the script keeps its answer for the asker's lane. `again`: the second argument says so, see `again`.
    """

    verb: str
    keys: ScriptKeys
    args: Sequence[Arg]
    read: Callable[[Any], T]
    repeat: Literal["free", "laned", "again"] = "free"

    def again(self) -> "Call[T]":
        """The call to send when the answer to this one was lost."""
        if self.repeat != "again" or self.args[1] == "1":
            return self
        return replace(self, args=[self.args[0], "1", *self.args[2:]])
