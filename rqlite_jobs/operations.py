"""Everything that can be asked of a namespace, each as a `Call`: a script, its keys, its arguments, its reader.

Nothing here talks to a server. `caller` sends a call, blocking or not; a test can look at one, or feed its reader.
"""

from collections.abc import Mapping, Sequence

from rqlite_jobs.acts import Acts
from rqlite_jobs.answers import (
    Beat,
    Crew,
    Enqueued,
    LockPage,
    Page,
    Survey,
    Turned,
    read_beat,
    read_crew,
    read_enqueued,
    read_lock_page,
    read_page,
    read_survey,
    read_turned,
    text,
)
from rqlite_jobs.call import Arg as Arg
from rqlite_jobs.call import Call as Call
from rqlite_jobs.changelog import Changes, read_changes
from rqlite_jobs.counters import UNITS, Copies, read_copies
from rqlite_jobs.ending import Ending
from rqlite_jobs.job import NewJob
from rqlite_jobs.lock import MODES
from rqlite_jobs.script import script
from rqlite_jobs.settlement import Settlement as Settlement
from rqlite_jobs.snapshot import Snapshot

FORMAT = 1
"""The version of the layout in Redis that this code reads and writes."""

INLINE_MAX = 2048
"""The largest payload that stands in its record; `lua/lib/record.lua` has the same."""

BATCH_PLAIN = 1000
BATCH_LOCKED = 200
BATCH_BYTES = 1024 * 1024
"""How much one enqueue script takes: the server answers nobody else meanwhile."""


class Operations(Acts):
    """The calls of one namespace.

    Args:
        keys: the namespace's.
        settings: bounds and times that scripts keep to.
        clock: whose time scripts go by; the server's, but for tests.

    >>> Operations(Keys("shop"), Settings.load({}), ServerClock()).survey().verb    # doctest: +SKIP
    'survey'
    """

    def open(self) -> Call[int]:
        """Open the namespace; answers with the version of its format."""
        return self._call("open", [FORMAT], int)

    # What producers ask.

    def enqueue(self, jobs: Sequence[NewJob]) -> Call[list[Enqueued]]:
        """Store new jobs. All of them must fit one script; see `batches`."""
        settings = self.settings
        if len(jobs) == 1 and jobs[0].plain and len(jobs[0].payload) <= INLINE_MAX:
            return self._push(jobs[0])
        args: list[Arg] = [self.clock.now_ms(), settings.lock_safety_ms, settings.rejected_max_count]
        args += (settings.done_max_count, settings.changelog_max)
        for job in jobs:
            if job.delay_ms is not None:
                due = f"+{job.delay_ms}"
            else:
                due = "" if job.run_at_ms is None else f"@{job.run_at_ms}"
            lock = job.lock
            args += (job.id, job.queue, job.level, due)
            if lock is None:
                args += (b"", b"", b"0", b"", job.payload)
            else:
                args += (MODES[lock.mode], lock.key, lock.ttl_ms, lock.on_conflict, job.payload)
            args += (b"1" if job.own_id else b"", b"" if job.expires_ms is None else job.expires_ms)
        return self._call("enqueue", args, lambda reply: read_enqueued(jobs, reply), "laned")

    def _push(self, job: NewJob) -> Call[list[Enqueued]]:
        """Store one plain job: what nearly every web request asks for, so it has a script of its own."""
        args = (self.clock.now_ms(), job.queue, job.level, job.id, job.payload)
        return self._call(
            "push", args, lambda now_ms: [Enqueued("enqueued", job.id, "ready", "", b"", now_ms)], "laned"
        )

    @staticmethod
    def batches(jobs: Sequence[NewJob]) -> list[Sequence[NewJob]]:
        """Cut jobs, in order, into lists that fit one script each: 1,000 plain or 200 locked ones, and by bytes."""
        cut: list[Sequence[NewJob]] = []
        start = locked = size = 0
        for at, job in enumerate(jobs):
            has_lock = job.lock is not None
            full = at - start >= BATCH_PLAIN or (has_lock and locked >= BATCH_LOCKED)
            if at > start and (full or size + len(job.payload) > BATCH_BYTES):
                cut.append(jobs[start:at])
                start, locked, size = at, 0, 0
            locked += has_lock
            size += len(job.payload)
        if start < len(jobs):
            cut.append(jobs[start:])
        return cut

    # What workers ask.

    def register(
        self, worker: str, lease_ms: int, facts: Mapping[str, str]
    ) -> Call[tuple[int, tuple[str, ...]]]:
        """Give a worker its lease; answers with the server's time in ms and the names of all queues."""
        pairs = [part for pair in facts.items() for part in pair]
        args: list[Arg] = [self.clock.now_ms(), worker, lease_ms, *pairs]
        return self._call("register", args, lambda reply: (reply[0], tuple(map(text, reply[1]))))

    def heartbeat(self, worker: str, lease_ms: int, max_crashes: int, held: Sequence[str]) -> Call[Beat]:
        """Say that a worker lives and what it holds; recovers those that do not live."""
        settings = self.settings
        head: list[Arg] = [
            self.clock.now_ms(),
            worker,
            lease_ms,
            max_crashes,
            settings.dead_max_count,
            settings.dead_max_age_ms,
        ]
        args: list[Arg] = [
            *head,
            settings.rejected_max_count,
            settings.lock_safety_ms,
            settings.changelog_max,
        ]
        args += held
        return self._call("heartbeat", args, read_beat)

    def turn(
        self,
        worker: str,
        nonce: str,
        queues: Sequence[str],
        settlements: Sequence[Settlement],
        start_max: int,
        hand_max: int = 0,
        last_idle: bool = False,
    ) -> Call[Turned]:
        """Settle what has ended and claim what is free.

        Args:
            worker: who asks.
            nonce: 16 characters of this turn's own.
            queues: where to look, in this order.
            settlements: what has ended.
            start_max: how many jobs it starts at once.
            hand_max: how many more it may hold in hand.
            last_idle: no other slot of this worker waits for a wake-up.
        """
        settings = self.settings
        done = [one for one in settlements if one.word == "done"]
        returned = [one for one in settlements if one.word == "returned"]
        args: list[Arg] = [
            nonce,
            "0",
            self.clock.now_ms(),
            worker,
            start_max,
            hand_max,
            "1" if last_idle else "0",
        ]
        args += (
            settings.done_max_count,
            settings.dead_max_count,
            settings.dead_max_age_ms,
            settings.lock_safety_ms,
        )
        args += (settings.changelog_max, len(queues), *queues, len(done))
        for one in done:
            args += (one.id, one.token)
        args.append(len(returned))
        for one in returned:
            args += (one.id, one.token, "" if one.ttl_ms is None else one.ttl_ms, one.result)
        if len(done) + len(returned) < len(settlements):
            for one in settlements:
                if one.word not in ("done", "returned"):
                    args += (one.word, one.id, one.token, one.delay_ms, one.reason, one.error, one.traceback)
        keys = self.keys.of_script(script("turn").bindings, worker)
        return Call("turn", keys, args, read_turned, "again")

    def leave(self, worker: str, queues: Sequence[str]) -> Call[tuple[int, int]]:
        """End a worker's lease and hand back what it holds: how many jobs, and how many are left to hand back."""
        args: list[Arg] = [
            self.clock.now_ms(),
            worker,
            self.settings.max_crashes,
            *self._dead_bounds(),
            *queues,
        ]
        return self._call("leave", args, lambda reply: (reply[0], reply[1]))

    def report(self, worker: str, said: Sequence[tuple[str, str, float, str]]) -> Call[list[str]]:
        """How far running jobs of a worker are: id, token, value and text of each; answers `noted` or `stale`."""
        args: list[Arg] = [self.clock.now_ms()]
        for id, token, value, told in said:
            args += (id, token, f"{value:.6g}", told)
        keys = self.keys.of_script(script("report").bindings, worker)
        return Call("report", keys, args, lambda reply: [text(word) for word in reply])

    # What readers ask.

    def wait(self, process: str, ticket: int, id: str) -> Call[Ending]:
        """How a job ended; or that it has not, and the list of this process is going to be told, with the ticket."""
        return self._call("wait", [self.clock.now_ms(), process, ticket, id], Ending.read)

    def look(self, ids: Sequence[str]) -> Call[list[Snapshot]]:
        """Look at jobs by id, with payload and traceback. At most 100."""
        return self._call("look", [*ids], lambda reply: [Snapshot.read(one) for one in reply])

    def page(self, state: str, queue: str, position: bytes = b"", limit: int = 100) -> Call[Page]:
        """Some of the jobs in one place, from the beginning or a position of an earlier page; see `lua/page.lua`."""
        args: list[Arg] = [state, queue, position, limit]
        return self._call("page", args, read_page)

    def holders(self, keys: Sequence[str] = (), position: bytes = b"", limit: int = 100) -> Call[LockPage]:
        """The locks named, or a page of all, as `page` has them."""
        return self._call("holders", [self.clock.now_ms(), position, limit, *keys], read_lock_page)

    def crew(self) -> Call[Crew]:
        """All workers. O(workers)."""
        return self._call("crew", [self.clock.now_ms()], read_crew)

    def changes(
        self, cursor: str = "", limit: int = 100, look_max: int = 100, act: str = "", job_id: str = ""
    ) -> Call[Changes]:
        """Some lines of the changelog, the newest first, among `look_max` from a cursor on. O(look_max)."""
        args: list[Arg] = [self.clock.now_ms(), cursor, limit, look_max, act, job_id]
        return self._call("changes", args, read_changes)

    def survey(self) -> Call[Survey]:
        """All numbers, read at one instant. O(queues + workers)."""
        return self._call("survey", [self.clock.now_ms()], read_survey)

    def history(self, unit: str, last: int, start: int = -1, limit: int = 120) -> Call[Copies]:
        """What the counters were when each of the `last` minutes or days began, from number `start` (-1: now) back.

        `unit` is one of `counters.UNITS`. O(limit).
        """
        minutes = UNITS[unit]
        args: list[Arg] = [self.clock.now_ms(), unit, minutes, last, start, limit]
        return self._call("history", args, lambda reply: read_copies(reply, minutes))
