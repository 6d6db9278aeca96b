"""What a child has of the queue's: jobs in hand, jobs that run, outcomes not yet settled."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from rqlite_jobs.answers import Claim
from rqlite_jobs.operations import Settlement
from rqlite_jobs.worker import outcome

HAND_S = 0.005
"""How much work, in seconds, may lie in a hand: so little that no idle worker elsewhere waits for it."""
HAND_MAX = 96
"""The most jobs in a hand, however short they are: a turn stays a small script."""
TURN_BYTES = 16 * 1024 * 1024
"""How much a turn takes along of what jobs returned: the server answers nobody else meanwhile."""
STALE_S = 0.05
"""A hand untouched for so long lies behind a job that took longer than was thought."""


class Holdings:
    """The jobs of one child, shared by its slots. Safe from any thread.

    Args:
        clock: seconds, monotonic.
        on_hand: called when jobs were laid into the hand.

    A job is held from its claim until its settlement is confirmed; the heartbeat names all that are held.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, on_hand: Callable[[], None] = lambda: None
    ) -> None:
        self._clock = clock
        self._on_hand = on_hand
        self._guard = threading.Lock()
        self._held: dict[str, Claim] = {}
        self._hand: deque[Claim] = deque()
        self._ended: list[Settlement] = []
        self._bytes = 0  # of the results in there
        self._turns = 0  # ever begun; a turn's number is how many began before it
        self._under_way: set[int] = set()
        self._found_nothing: int | None = None  # turns from this one on began after one had found nothing
        self.era = 0
        """Counts the leases that were lost: what was claimed in an earlier era is not received any more."""
        self._touched_s = 0.0
        self._mean_s = 1.0

    def receive(self, claims: Sequence[Claim], to_start: int = 1, era: int | None = None) -> list[Claim]:
        """Take over claimed jobs: the first `to_start` are answered, to be started at once, the rest lies in hand.

        Args:
            claims: the jobs.
            to_start: how many are to be started.
            era: the one in which they were asked for; in a later one they are somebody else's. None: this one.
        """
        with self._guard:
            if era is not None and era != self.era:
                return []
            for claim in claims:
                self._held[claim.id] = claim
                self._found_nothing = None
            self._hand.extend(claims[to_start:])
            self._touched_s = self._clock()
        if len(claims) > to_start:
            self._on_hand()
        return list(claims[:to_start])

    def refuse(self, claims: Sequence[Claim], era: int) -> None:
        """Take over jobs that were asked for in an era, but too long ago, only to hand them back."""
        with self._guard:
            if era == self.era:
                self._held.update((claim.id, claim) for claim in claims)
                # The last first, so that at the head of the queue the first of them is first again.
                self._ended.extend(outcome.handed_back(claim) for claim in reversed(claims))

    def next_in_hand(self) -> Claim | None:
        """A job from the hand, to be started now; None if it is empty."""
        if not self._hand:
            return None
        with self._guard:
            self._touched_s = self._clock()
            return self._hand.popleft() if self._hand else None

    def holds(self, claim: Claim) -> bool:
        """Is this claimed job still ours? Not if its lease was lost meanwhile, whatever lease there is now."""
        return self._held.get(claim.id) is claim

    def holds_token(self, id: str, token: str) -> bool:
        """The same, asked with an id and a token."""
        claim = self._held.get(id)
        return claim is not None and claim.token == token

    def end(self, claim: Claim, settlement: Settlement, took_s: float | None = None) -> bool:
        """Note how a job ended; False if it is not ours any more.

        Args:
            claim: the job as it was claimed.
            settlement: how it ended.
            took_s: how long it ran, if it did: the hand is sized by it.
        """
        with self._guard:
            if took_s is not None:
                # Quick to believe that jobs got longer, slow to believe that they got shorter.
                self._mean_s += (took_s - self._mean_s) * (0.5 if took_s > self._mean_s else 0.1)
            if self._held.get(claim.id) is not claim:
                return False
            self._ended.append(settlement)
            if settlement.result:
                self._bytes += len(settlement.result)
            return True

    def begin_turn(self) -> tuple[int, list[Settlement]]:
        """Begin a turn: its number, and the outcomes not yet on their way; they stay held until `settled`.

        All of them, but where their results come to more than `TURN_BYTES` some are left for the next turn.
        """
        with self._guard:
            number, ended, self._ended = self._turns, self._ended, []
            if self._bytes > TURN_BYTES:
                count = _fitting(ended)
                ended, self._ended = ended[:count], ended[count:]
            self._bytes = sum(len(one.result) for one in self._ended)
            self._turns += 1
            self._under_way.add(number)
            return number, ended

    def end_turn(self, number: int, found_nothing: bool = False) -> None:
        """End a turn, one way or the other.

        Args:
            number: from `begin_turn`.
            found_nothing: it asked for jobs, and there was none.
        """
        with self._guard:
            self._under_way.discard(number)
            # With a job held it says nothing: that may enqueue the next one.
            if found_nothing and not self._held and self._found_nothing is None:
                self._found_nothing = self._turns

    def settled(self, settlements: Iterable[Settlement]) -> None:
        """The server has recorded these."""
        with self._guard:
            for one in settlements:
                claim = self._held.get(one.id)
                if claim is not None and claim.token == one.token:
                    del self._held[one.id]

    def hand_back_stale(self) -> int:
        """Hand back what lies in hand behind a job that takes long; answers how many jobs."""
        with self._guard:
            if not self._hand or self._clock() - self._touched_s < STALE_S:
                return 0
            return self._return_hand()

    def hand_back_all(self) -> int:
        """Hand back all that lies in hand."""
        with self._guard:
            return self._return_hand()

    def drop(self) -> list[Claim]:
        """Forget everything: the lease is lost, and what is still running here is somebody else's now."""
        with self._guard:
            dropped = list(self._held.values())
            self._held, self._hand, self._ended, self._bytes = {}, deque(), [], 0
            self.era += 1
            return dropped

    def hand_room(self) -> int:
        """How many jobs more a turn may claim for the hand, by how long jobs have taken lately."""
        if self._hand or self._mean_s * 2 > HAND_S:
            return 0
        return min(HAND_MAX, int(HAND_S / max(self._mean_s, 1e-6)))

    def ids(self) -> list[str]:
        """The ids of all held jobs, for the heartbeat."""
        with self._guard:
            return list(self._held)

    @property
    def in_hand(self) -> bool:
        """Does something lie in hand?"""
        return bool(self._hand)

    @property
    def waiting(self) -> bool:
        """Are there outcomes that no turn has taken along yet?"""
        return bool(self._ended)

    @property
    def idle(self) -> bool:
        """Is nothing held, and was there nothing to claim?

        A turn that began before the one that found nothing may still bring a job, so it is waited for. Not those that
        began later: where slots ask again every few milliseconds, one or another is always under way.
        """
        with self._guard:
            quiet = self._found_nothing
            return quiet is not None and not self._held and all(number >= quiet for number in self._under_way)

    def _return_hand(self) -> int:
        count = len(self._hand)
        # The last of the hand first, so that at the head of the queue the first of it is first again.
        while self._hand:
            self._ended.append(outcome.handed_back(self._hand.pop()))
        return count


def _fitting(ended: Sequence[Settlement]) -> int:
    """How many of these outcomes, from the first on, fit into a turn; one at least."""
    size = 0
    for at, one in enumerate(ended):
        size += len(one.result)
        if size > TURN_BYTES and at:
            return at
    return len(ended)
