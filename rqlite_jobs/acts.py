"""What operators ask of a namespace: acts on jobs and queues, each as a `Call`; see `operations`."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar

from rqlite_jobs.answers import read_words, text
from rqlite_jobs.call import Arg, Call
from rqlite_jobs.clock import Clock
from rqlite_jobs.config import Settings
from rqlite_jobs.keys import Keys
from rqlite_jobs.script import script

T = TypeVar("T")

STEP_MAX = 1000
"""How many jobs one act touches at most: the server answers nobody else meanwhile."""


class Acts:
    """The calls of one namespace that its operators make.

    Args:
        keys: the namespace's.
        settings: bounds and times that scripts keep to.
        clock: whose time scripts go by; the server's, but for tests.
    """

    def __init__(self, keys: Keys, settings: Settings, clock: Clock) -> None:
        self.keys = keys
        self.settings = settings
        self.clock = clock

    def cancel(self, ids: Sequence[str]) -> Call[list[str]]:
        """Cancel waiting jobs; a word for each id. At most 1,000."""
        head: list[Arg] = [self.clock.now_ms(), self.settings.lock_safety_ms, self.settings.done_max_count]
        return self._call("cancel", [*head, *ids], read_words, "laned")

    def delete(self, ids: Sequence[str]) -> Call[list[str]]:
        """Delete jobs wherever they are, running ones apart; a word for each id. At most 1,000."""
        return self._call(
            "delete", [self.clock.now_ms(), self.settings.lock_safety_ms, *ids], read_words, "laned"
        )

    def bury(self, ids: Sequence[str], reason: str) -> Call[list[str]]:
        """Put waiting jobs among the dead; a word for each id. At most 1,000."""
        settings = self.settings
        head: list[Arg] = [
            self.clock.now_ms(),
            settings.lock_safety_ms,
            settings.dead_max_count,
            settings.dead_max_age_ms,
            reason,
        ]
        return self._call("bury", [*head, *ids], read_words, "laned")

    def revive(self, ids: Sequence[str]) -> Call[list[tuple[str, str]]]:
        """Bring dead jobs back; for each id a word, and who holds its lock where that is in the way. At most 1,000."""
        settings = self.settings
        args: list[Arg] = [self.clock.now_ms(), settings.lock_safety_ms, settings.done_max_count, *ids]
        return self._call("revive", args, lambda reply: [(w.decode(), text(h)) for w, h in reply], "laned")

    def retry(self, ids: Sequence[str]) -> Call[list[str]]:
        """Let jobs that wait for their next attempt go now; a word for each id. At most 1,000."""
        return self._call(
            "retry", [self.clock.now_ms(), self.settings.lock_safety_ms, *ids], read_words, "laned"
        )

    def release(self, lock_keys: Sequence[str], force: bool = False) -> Call[list[tuple[str, str]]]:
        """Free locks; for each key a word, and who held it. At most 1,000."""
        args: list[Arg] = [
            self.clock.now_ms(),
            self.settings.lock_safety_ms,
            b"1" if force else b"0",
            *lock_keys,
        ]
        return self._call("release", args, lambda reply: [(w.decode(), text(h)) for w, h in reply], "laned")

    def purge(self, queue: str, limit: int = STEP_MAX) -> Call[tuple[int, int, int]]:
        """Delete what waits in a queue, `limit` jobs at most: how many were ready, scheduled, and still wait."""
        args: list[Arg] = [self.clock.now_ms(), self.settings.lock_safety_ms, queue, limit]
        return self._call("purge", args, lambda reply: (reply[0], reply[1], reply[2]), "laned")

    def pause(self, queue: str, for_ms: int | None, by: str) -> Call[str]:
        """Start no more jobs of a queue: for a while, or (0) until it is resumed; None resumes it. A word."""
        args: list[Arg] = [self.clock.now_ms(), queue, b"" if for_ms is None else for_ms, by]
        return self._call("pause", args, text, "laned")

    def _call(
        self,
        verb: str,
        args: Sequence[Arg],
        read: Callable[[Any], T],
        repeat: Literal["free", "laned", "again"] = "free",
    ) -> Call[T]:
        return Call(verb, self.keys.of_script(script(verb).bindings), args, read, repeat)
