"""How a job ended, as whoever waits for it is told."""

from typing import Any

from msgspec import Struct


class Ending(Struct, frozen=True):
    """How a job ended.

    Attributes:
        word: `done`, `dead`; `lost`, done, and its result is not kept; `waiting`, it has not ended; the word of one
            that is gone; or `unknown`.
        text: the encoded result of a finished job, the error of a dead one.
    """

    word: str
    text: bytes

    @classmethod
    def read(cls, reply: Any) -> "Ending":
        """Read the answer of `lua/wait.lua`."""
        return cls(reply[0].decode(), reply[1])
