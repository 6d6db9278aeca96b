"""Parts for unit tests of the worker: claims, a clock moved by hand, a server that answers what it is told."""

import random
from collections.abc import Callable
from typing import Any

from rqlite_jobs.answers import Beat, Claim, Turned
from rqlite_jobs.clock import ServerClock
from rqlite_jobs.config import Settings
from rqlite_jobs.errors import Unreachable
from rqlite_jobs.keys import Keys
from rqlite_jobs.operations import Call, Operations, Settlement
from rqlite_jobs.worker.heart import Heart
from rqlite_jobs.worker.holdings import Holdings
from rqlite_jobs.worker.outage import Outage


class Clock:
    """Seconds, moved by hand."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


class Wire:
    """What a child sends, and what it is answered: `answers` by verb, each a value or an error to be raised."""

    def __init__(self) -> None:
        self.sent: list[Call[Any]] = []
        self.answers: dict[str, Any] = {}

    def __call__(self, call: Call[Any]) -> Any:
        self.sent.append(call)
        answer = self.answers[call.verb]
        if callable(answer):
            answer = answer(call)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    @property
    def verbs(self) -> list[str]:
        """What was sent so far; forgotten by asking."""
        verbs, self.sent = [call.verb for call in self.sent], []
        return verbs


AWAY = Unreachable("the server cannot be reached.")


def settings(**given: Any) -> Settings:
    """Settings of nowhere but here."""
    return Settings.load({"lease": "15s", **given}, environ={})


def operations() -> Operations:
    """The operations of a namespace."""
    return Operations(Keys("test"), settings(), ServerClock())


def claim(name: str, number: int = 1, **given: Any) -> Claim:
    """A claimed job."""
    facts = {"attempts": 0, "crashes": 0, "putoffs": 0, **given}
    return Claim(name, f"{number}-nonce", b"", b"", **facts)


def turned(*claims: Claim, **given: Any) -> Turned:
    """The answer to a turn."""
    facts = {"registered": True, "now_ms": 1000, "next_due_ms": 0, "left": False, "refused": {}, **given}
    return Turned(claims=claims, **facts)


def beat(**given: Any) -> Beat:
    """The answer to a heartbeat."""
    facts = {"lost": False, "now_ms": 1000, "next_end_ms": 0, "recovered": 0, "queues": (), **given}
    return Beat(**facts)


def done(one: Claim) -> Settlement:
    """It returned."""
    return Settlement("done", one.id, one.token)


def heart(
    wire: Wire,
    holdings: Holdings,
    clock: Clock,
    flush: Callable[[], bool] = lambda: True,
    all_queues: bool = True,
    **given: Any,
) -> Heart:
    """A heart that beats on a wire."""
    rng = random.Random(1)
    return Heart(
        operations(), holdings, settings(**given), ["default"], all_queues, ["a", "b"], wire, Outage(rng, clock),
        flush, clock, rng,
    )  # fmt: skip


def nonces() -> Callable[[], str]:
    """Makes a new one each time."""
    count = iter(range(10**6))
    return lambda: f"nonce-{next(count):05}"
