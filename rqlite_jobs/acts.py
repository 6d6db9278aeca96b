"""What operators ask of a namespace: acts on jobs and queues, each as a `Call`; see `operations`."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar

from rqlite_jobs.answers import read_words, text
from rqlite_jobs.call import Arg, Call
from rqlite_jobs.clock import Clock
from rqlite_jobs.config import Settings
from rqlite_jobs.identity import named
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

    What changes something takes `by`, who asks, for the changelog; None: the user of this process and its host.
    """

    def __init__(self, keys: Keys, settings: Settings, clock: Clock) -> None:
        self.keys = keys
        self.settings = settings
        self.clock = clock

    def cancel(self, ids: Sequence[str], by: str | None = None) -> Call[list[str]]:
        """Cancel waiting jobs; a word for each id. At most 1,000."""
        head = [self.clock.now_ms(), self.settings.lock_safety_ms, self.settings.done_max_count]
        return self._call("cancel", [*head, *self._told(by), *ids], read_words, "laned")

    def delete(self, ids: Sequence[str], by: str | None = None) -> Call[list[str]]:
        """Delete jobs wherever they are, running ones apart; a word for each id. At most 1,000."""
        head = [self.clock.now_ms(), self.settings.lock_safety_ms]
        return self._call("delete", [*head, *self._told(by), *ids], read_words, "laned")

    def bury(self, ids: Sequence[str], reason: str, by: str | None = None) -> Call[list[str]]:
        """Put waiting jobs among the dead; a word for each id. At most 1,000."""
        settings = self.settings
        head: list[Arg] = [
            self.clock.now_ms(),
            settings.lock_safety_ms,
            settings.dead_max_count,
            settings.dead_max_age_ms,
            reason,
        ]
        return self._call("bury", [*head, *self._told(by), *ids], read_words, "laned")

    def revive(self, ids: Sequence[str], by: str | None = None) -> Call[list[tuple[str, str]]]:
        """Bring dead jobs back; for each id a word, and who holds its lock where that is in the way. At most 1,000."""
        head = [self.clock.now_ms(), self.settings.lock_safety_ms, self.settings.done_max_count]
        return self._call("revive", [*head, *self._told(by), *ids], _read_pairs, "laned")

    def retry(self, ids: Sequence[str], by: str | None = None) -> Call[list[str]]:
        """Let jobs that wait for their next attempt go now; a word for each id. At most 1,000."""
        head = [self.clock.now_ms(), self.settings.lock_safety_ms]
        return self._call("retry", [*head, *self._told(by), *ids], read_words, "laned")

    def release(
        self, lock_keys: Sequence[str], force: bool = False, by: str | None = None
    ) -> Call[list[tuple[str, str]]]:
        """Free locks; for each key a word, and who held it. At most 1,000."""
        head: list[Arg] = [self.clock.now_ms(), self.settings.lock_safety_ms, b"1" if force else b"0"]
        return self._call("release", [*head, *self._told(by), *lock_keys], _read_pairs, "laned")

    def purge(self, queue: str, limit: int = STEP_MAX, by: str | None = None) -> Call[tuple[int, int, int]]:
        """Delete what waits in a queue, `limit` jobs at most: how many were ready, scheduled, and still wait."""
        args: list[Arg] = [self.clock.now_ms(), self.settings.lock_safety_ms, queue, limit, *self._told(by)]
        return self._call("purge", args, lambda reply: (reply[0], reply[1], reply[2]), "laned")

    def pause(self, queue: str, for_ms: int | None, by: str | None = None) -> Call[str]:
        """Start no more jobs of a queue: for a while, or (0) until it is resumed; None resumes it. A word."""
        head: list[Arg] = [self.clock.now_ms(), queue, b"" if for_ms is None else for_ms]
        return self._call("pause", [*head, *self._told(by)], text, "laned")

    def recover(
        self, max_crashes: int, workers: Sequence[str] = (), by: str | None = None
    ) -> Call[tuple[int, int]]:
        """Give back the jobs of the workers named, or of all whose lease is over: how many, and workers left to do."""
        args: list[Arg] = [self.clock.now_ms(), max_crashes, *self._dead_bounds(), *self._told(by), *workers]
        return self._call("recover", args, lambda reply: (reply[0], reply[1]))

    def _told(self, by: str | None) -> tuple[int, str]:
        """What every act says for the changelog."""
        return self.settings.changelog_max, named(by)

    def _dead_bounds(self) -> tuple[int, int, int]:
        settings = self.settings
        return settings.dead_max_count, settings.dead_max_age_ms, settings.lock_safety_ms

    def _call(
        self,
        verb: str,
        args: Sequence[Arg],
        read: Callable[[Any], T],
        repeat: Literal["free", "laned", "again"] = "free",
    ) -> Call[T]:
        return Call(verb, self.keys.of_script(script(verb).bindings), args, read, repeat)


def _read_pairs(reply: list[tuple[bytes, bytes]]) -> list[tuple[str, str]]:
    """A word for each, and an id or nothing."""
    return [(word.decode(), text(id)) for word, id in reply]
