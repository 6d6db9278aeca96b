"""One worker's turn at the server: what it asks, kept until it is answered, and what the answer changes. No I/O."""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from rqlite_jobs.answers import Claim, Turned
from rqlite_jobs.operations import Call, Operations, Settlement
from rqlite_jobs.worker.heart import Heart
from rqlite_jobs.worker.holdings import Holdings

log = logging.getLogger("rqlite_jobs.worker")


@dataclass(slots=True)
class _Asked:
    number: int
    call: Call[Turned]
    settlements: list[Settlement]
    worker: str
    era: int
    asked_s: float
    start_max: int


class Turn:
    """Turns of one asker, one after the other. A request that was not answered stays and is asked again.

    Args:
        operations: of the namespace.
        holdings: what the child has.
        heart: who the worker is, and which queues it serves.
        nonce: makes 16 random characters.
    """

    def __init__(
        self, operations: Operations, holdings: Holdings, heart: Heart, nonce: Callable[[], str]
    ) -> None:
        self._operations = operations
        self._holdings = holdings
        self._heart = heart
        self._nonce = nonce
        self._asked: _Asked | None = None
        self.next_due_ms = -1
        """In how many ms the next scheduled job is due, as of the last answer; -1 if there is none."""
        self.void = False
        """Was the last answer for a lease that is gone? Then it does not say that there is nothing to do."""

    @property
    def owes(self) -> bool:
        """Are outcomes on their way whose answer has not come?"""
        asked = self._asked
        return asked is not None and bool(asked.settlements) and asked.worker == self._heart.worker

    def ask(self, start_max: int, hand_max: int = 0, last_idle: bool = False) -> Call[Turned]:
        """The call to send: a new one, or the one that was not answered yet.

        Args:
            start_max: how many jobs are started at once.
            hand_max: how many more may lie in hand.
            last_idle: no other slot of this worker waits for a wake-up.
        """
        # First whose turn it is, then the era: in between the lease may be lost, and then the server gives nothing.
        worker, era, asked = self._heart.worker, self._holdings.era, self._asked
        if asked is not None and asked.worker != worker:
            self._holdings.end_turn(asked.number)  # its lease is lost, and its outcomes with it
            asked = None
        if asked is None:
            asked_s = self._heart.now_s
            number, settlements = self._holdings.begin_turn()
            call = self._operations.turn(
                worker, self._nonce(), self._heart.queues, settlements, start_max, hand_max, last_idle
            )
            self._asked = asked = _Asked(number, call, settlements, worker, era, asked_s, start_max)
        return asked.call

    def unanswered(self) -> None:
        """The answer did not come: the same will be asked again, marked as such."""
        if self._asked is not None:
            self._asked.call = self._asked.call.again()

    def answered(self, turned: Turned) -> tuple[list[Claim], bool]:
        """Take in the answer: the jobs to start at once, and whether more could be claimed right away."""
        asked, found_nothing = self._asked, False
        assert asked is not None
        try:
            for id_, word in turned.refused.items():
                if word == "stale":
                    log.warning(
                        "job %s ended here, but its lease was lost before: the outcome is not recorded", id_
                    )
            self._holdings.settled(asked.settlements)
            self.void = not turned.registered or asked.worker != self._heart.worker
            if not turned.registered:
                self._heart.lose(asked.worker)
            if self.void:
                return [], False
            self.next_due_ms = max(turned.next_due_ms - turned.now_ms, 0) if turned.next_due_ms else -1
            if not self._heart.recent(asked.asked_s):
                # A beat of ours may have given them back meanwhile, as claims that nobody had heard of.
                self._holdings.refuse(turned.claims, asked.era)
                return [], True
            found_nothing = asked.start_max > 0 and not turned.claims and not turned.left
            return self._holdings.receive(turned.claims, asked.start_max, asked.era), turned.left
        finally:
            self._asked = None
            self._holdings.end_turn(asked.number, found_nothing)
