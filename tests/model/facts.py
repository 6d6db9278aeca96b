"""The values of the model: bounds, a job, what went wrong with it, a lock."""

from dataclasses import dataclass

from rqlite_jobs.lock import Lock


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds that scripts keep to: settings, small here so that they are met, and constants of the scripts."""

    lock_safety_ms: int = 30 * 86_400_000
    dead_max_count: int = 3
    dead_max_age_ms: int = 60_000
    rejected_max_count: int = 2
    done_max_count: int = 3
    changelog_max: int = 10_000
    max_crashes: int = 2
    recover_max: int = 500
    due_max: int = 100
    rounds_max: int = 20
    trim_max: int = 100
    sweep_max: int = 100


@dataclass(frozen=True, slots=True)
class Trouble:
    """What went wrong with a job so far."""

    attempts: int = 0
    crashes: int = 0
    putoffs: int = 0
    died_ms: int = 0
    started_ms: int = 0
    reason: str = ""
    error: str = ""


@dataclass(slots=True)
class Job:
    """A stored job. `trouble` and `traceback` are None until something is written there; `expires_ms` 0: never.

    `result` is '' for None, or what is not kept; `forgets`: it returned something that is not.

    `since_ms`: since when it waits, if that is not since its enqueue; 0: it is.
    """

    id: str
    queue: str
    payload: bytes
    lock: Lock | None
    enqueued_ms: int
    state: str
    due_ms: int = 0
    since_ms: int = 0
    worker: str = ""
    token: str = ""
    to_start: bool = False
    expires_ms: int = 0
    trouble: Trouble | None = None
    traceback: str | None = None
    ended: tuple[int, int] | None = None
    result: str = ""
    forgets: bool = False

    @property
    def fence(self) -> int:
        return int(self.token.partition("-")[0])

    @property
    def started_ms(self) -> int:
        return self.fence // 1000


@dataclass(frozen=True, slots=True)
class Pointer:
    """A lock: which job holds it, and until when; 0: it lives with its job."""

    mode: str
    until_ms: int
    holder: str
