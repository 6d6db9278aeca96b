"""What is asked on a lane: done once, however often it is asked."""

from collections.abc import Callable
from typing import Any

from rqlite_jobs.answers import Enqueued
from tests.model.picture import record
from tests.model.state import State


class Requests(State):
    """The answers kept for lanes."""

    def laned(self, lane: str, nonce: str, perform: Callable[[], Any]) -> Any:
        """A request on a lane: done once, and answered alike when asked again with the same nonce."""
        if lane in self.lanes and self.lanes[lane][0] == nonce:
            self.note("lane: asked again")
        else:
            self.lanes[lane] = (nonce, perform())
        return self._told(self.lanes[lane][1])

    def _told(self, answer: Any) -> Any:
        # Who is answered with a holder sees the holder's record as it is now.
        if not isinstance(answer, list) or not all(isinstance(one, Enqueued) for one in answer):
            return answer
        return [self._with_record(one) for one in answer]

    def _with_record(self, one: Enqueued) -> Enqueued:
        holder = self.jobs.get(one.holder_id)
        raw = record(holder) if one.outcome == "duplicate" and holder else b""
        return Enqueued(one.outcome, one.id, one.state, one.holder_id, raw, one.now_ms)
