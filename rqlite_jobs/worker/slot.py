"""A slot runs one job at a time: it takes a turn at the server, runs what it was given, and takes the next turn."""

import logging
import time
from collections.abc import Callable
from typing import Any

from rqlite_jobs.answers import Claim
from rqlite_jobs.operations import Call, Settlement
from rqlite_jobs.worker import outcome
from rqlite_jobs.worker.heart import Heart
from rqlite_jobs.worker.holdings import Holdings
from rqlite_jobs.worker.outage import Outage
from rqlite_jobs.worker.turn import Turn

log = logging.getLogger("rqlite_jobs.worker")


class Slot:
    """One slot of a child, as a state machine: each `step` does one thing and says how long to wait after it.

    Args:
        turn: its turns at the server.
        holdings: what the child has, shared with the other slots.
        heart: whether the lease is sure.
        execute: runs a claimed job to its end and says what the server is told.
        call: sends a call and answers.
        outage: where failures are told.
        open: may it still claim?
        last_idle: is there no other slot of the child that waits?
        clock: seconds, monotonic.

    It does no I/O but through `call` and `execute`, so a simulation can drive the very steps that a thread does.
    """

    def __init__(
        self,
        turn: Turn,
        holdings: Holdings,
        heart: Heart,
        execute: Callable[[Claim], Settlement],
        call: Callable[[Call[Any]], Any],
        outage: Outage,
        open: Callable[[], bool],
        last_idle: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._turn = turn
        self._holdings = holdings
        self._heart = heart
        self._execute = execute
        self._call = call
        self._outage = outage
        self._open = open
        self._last_idle = last_idle
        self._clock = clock
        self._failures = 0
        self._begin: list[Claim] = []
        self.due_s = float("inf")
        """In how many seconds the next scheduled job is due, as of the last turn; infinite if there is none."""
        self.idle = False
        """Did the last step find nothing to do?"""

    @property
    def begins(self) -> bool:
        """Was it given a job that the next step begins with?"""
        return bool(self._begin)

    @property
    def owes(self) -> bool:
        """Are outcomes on their way in a turn of this slot that is not answered yet? It must not end before."""
        return self._turn.owes

    def step(self) -> float:
        """Do one thing; answers in how many seconds to be called again, 0 for at once.

        A job given to it is started if the lease is sure, else handed back; without one it takes from the hand;
        and with an empty hand it takes a turn.
        """
        self.idle = False
        claim = self._begin.pop() if self._begin else self._holdings.next_in_hand()
        if claim is None:
            return self._take_turn()
        if not self._heart.sure or not self._open():
            # The rest of the hand first: what goes back last is at the head of its queue.
            self._holdings.hand_back_all()
            self._holdings.end(claim, outcome.handed_back(claim))
            return 0.0
        if not self._holdings.holds(claim):
            return 0.0  # the lease is sure, but it is a new one: this job runs elsewhere
        began_s = self._clock()
        settlement = self._execute(claim)
        if not self._holdings.end(claim, settlement, self._clock() - began_s):
            log.warning(
                "job %s ended here, but its lease was lost before: the outcome is not recorded", claim.id
            )
        return 0.0

    def _take_turn(self) -> float:
        claims_wanted = self._open()
        if claims_wanted and not self._heart.sure:
            # Whatever it claimed now it could not start. The heart is told, and beats as soon as it can.
            return self._wait_for_heart()
        hand_max = self._holdings.hand_room() if claims_wanted else 0
        call = self._turn.ask(1 if claims_wanted else 0, hand_max, claims_wanted and self._last_idle())
        sent_s = self._outage.now_s
        try:
            turned = self._call(call)
        except Exception as error:  # away, read-only, a script that failed: nothing of it may end a slot
            self._turn.unanswered()
            self._outage.failed(error, sent_s)
            self._failures += 1
            return self._outage.pause_s(self._failures - 1)
        self._outage.over()
        self._failures = 0
        self._begin, left = self._turn.answered(turned)
        # What is left is for others, if this one may not claim.
        more = claims_wanted and (left or self._turn.void)
        self.idle = not (self._begin or more or self._holdings.waiting)
        due_ms = self._turn.next_due_ms
        self.due_s = max(due_ms, 1) / 1000 if due_ms >= 0 else float("inf")
        if not self.idle:
            return 0.0
        return self.due_s if claims_wanted else float("inf")

    def _wait_for_heart(self) -> float:
        self._failures += 1
        return self._outage.pause_s(min(self._failures - 1, 3))
