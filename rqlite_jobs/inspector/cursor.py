"""Cursors: where a listing goes on, as text that says nothing to anybody else."""

import base64
import binascii
import re
from dataclasses import dataclass

from rqlite_jobs.errors import BadOption, shown

_POSITION = {
    "ready": rb"\d{1,15} \d{1,15} .*",
    "scheduled": rb"\d{1,15} -?[0-9.e+]{1,30} .*",
    "kept": rb"\d{1,15} (?:-?[0-9.e+]{1,30}|inf) .*",
    "locks": rb"\d{1,15} (?:-?[0-9.e+]{1,30}|inf) .*",
}
_ANY = rb"\d{1,15} .*"  # running: an id; what has ended: nothing


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a listing goes on.

    Attributes:
        state: the place in which it does: `ready scheduled running dead rejected done kept`, or `locks`.
        queue: the queue of that place, if it has one.
        looked: how many records were looked at on the pages before.
        position: from where on in that place, as `lua/page.lua` and `lua/holders.lua` have it; empty: its beginning.
    """

    state: str
    queue: str = ""
    looked: int = 0
    position: bytes = b""

    def text(self) -> str:
        """The cursor as a caller gets it: letters, digits, `-` and `_`."""
        parts = (self.state.encode(), self.queue.encode(), b"%d" % self.looked, self.position)
        return base64.urlsafe_b64encode(b"\0".join(parts)).decode().rstrip("=")

    @classmethod
    def read(cls, text: str) -> "Cursor":
        """Read what `text` has made.

        Raises:
            BadOption: it is nothing of the kind.

        >>> Cursor.read(Cursor("dead", "", 20, b"7 ").text())
        Cursor(state='dead', queue='', looked=20, position=b'7 ')
        """
        try:
            raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
            state, queue, looked, position = raw.split(b"\0", 3)
            found = cls(state.decode(), queue.decode(), int(looked), position)
        except (ValueError, TypeError, binascii.Error):
            raise bad_cursor(text) from None
        pattern = _POSITION.get(found.state, _ANY)
        if found.looked < 0 or (position and not re.fullmatch(pattern, position, re.DOTALL)):
            raise bad_cursor(text)
        return found


def bad_cursor(text: object) -> BadOption:
    """The error about a cursor that is none, or none of this listing."""
    hint = "Take it, as it is, from `next` of the page before, with the same filters."
    return BadOption(f"{shown(text)} is not the cursor of a next page.", hint=hint, option="cursor")
