"""What a worker tells the server of a job that it had."""

from msgspec import Struct


class Settlement(Struct, frozen=True):
    """How a claimed job ended.

    Attributes:
        word: `done retry bury snooze putoff back`; `returned` is done, with something that is not None.
        id, token: which job, and the right to say so.
        delay_ms: when to try again, from now.
        reason: why it is buried, a word.
        error, traceback: what went wrong, text.
        result: what it returned, encoded.
        ttl_ms: how long that is kept: None as long as the job is among the last finished ones, 0 not at all, -1
            until it is deleted.
    """

    word: str
    id: str
    token: str
    delay_ms: int = 0
    reason: str = ""
    error: str = ""
    traceback: str = ""
    result: bytes = b""
    ttl_ms: int | None = None
