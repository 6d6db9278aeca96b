"""Model and scripts side by side: whatever is asked is asked of both, and must be answered alike."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, TypeVar, cast

import redis

from rqlite_jobs.address import Address
from rqlite_jobs.answers import Beat, Survey, Turned
from rqlite_jobs.caller import Caller
from rqlite_jobs.config import Settings
from rqlite_jobs.errors import RqjError, Unreachable
from rqlite_jobs.keys import Keys
from rqlite_jobs.operations import Call, Operations
from tests.model import changelog, readers
from tests.model.counting import Counting
from tests.model.facts import Bounds
from tests.model.laws import broken, unbalanced, unfair
from tests.model.model import Model, Refused
from tests.model.picture import lanes, picture, read_lane, same_lane
from tests.model.waiters import Waiters, pauses
from tests.model.wire import ANSWERED, LOST, MISSED, Wire
from tests.world import World, changes, world

T = TypeVar("T")

START_MS = 1_700_000_000_000
Make = Callable[[], Call[Any]]
"""Makes a request: anew for each copy, for in simulated time it carries the time."""
Perform = Callable[[bool], Any]
"""What the model does for one copy of a request that arrives; told whether that copy says `again`."""

WAYS: dict[str, tuple[str, ...]] = {
    "answered": (ANSWERED,),
    "answer lost": (LOST, ANSWERED),
    "never arrived": (MISSED, ANSWERED),
    "answer lost twice": (LOST, LOST, ANSWERED),
    "never arrived, then answer lost": (MISSED, LOST, ANSWERED),
    "cut off after it": (LOST,),
    "cut off before it": (MISSED,),
}
"""How a request fares. Those that are cut off stay unanswered: they may be sent again at any later time."""


class Disagreement(AssertionError):
    """Model and scripts differ, or what lies in Redis breaks a law."""


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A request whose sender does not know what became of it."""

    make: Make
    perform: Perform
    lane: str
    nonce: str


class Stage:
    """One namespace on one server, and its model.

    Args:
        client: a plain client, for looking on.
        url: where the server is; it is emptied.
        bounds: what scripts keep to.
        taken: where the model counts the branches that it takes.
    """

    def __init__(self, client: Any, url: str, bounds: Bounds, taken: Counter[str]) -> None:
        client.flushdb()
        self.client = client
        self.keys = Keys("größe")
        self.model = Model(bounds, START_MS, taken)
        self.wire = Wire(Address.parse(url))
        self.caller = Caller(self.wire, random.Random(1), sleep=lambda seconds: None)
        self.ops = Operations(self.keys, cast(Settings, bounds), _Clock(self.model))
        self.unanswered: list[Unanswered] = []
        self.waiters = Waiters()
        self.history = Counting()
        self._lines: dict[str, list[changelog.Line]] = {"changelog": [], "events": []}
        self._read = Counter[str]()
        self._found: World = {}
        self._numbers = count(1)
        assert self.caller.run(self.ops.open()) == 1

    def new_id(self) -> str:
        """An id that was not there before; ids do not sort by age, so that ties are seen."""
        number = next(self._numbers)
        return f"{number * 7919 % 9973:04d}-{number}"

    def ask(
        self, make: Make, perform: Perform, way: str = "answered", *, seen: Callable[[Any], Any] | None = None
    ) -> Any:
        """Ask both, over a line that loses what `way` says, and compare what they answer.

        Args:
            make, perform, way: what to ask of both, and how it fares.
            seen: what the asker sees of the model's answer; None: all.

        Returns the script's answer; None where it was lost, or the script refused.
        """
        call, fates = make(), WAYS[way]
        self.wire.fates, self.wire.arrived = list(fates), []
        try:
            answer: Any = self.caller.run(call, patient=fates[-1] == ANSWERED)
        except Unreachable:
            answer = None
        except RqjError as error:
            answer = error
        said = [self._perform(call, perform, args) for args in self.wire.arrived]
        if fates[-1] != ANSWERED:
            assert answer is None
            self._remember(make, perform, laned=call.repeat == "laned")
            return None
        assert said, "answered, and nothing arrived"
        self._compare(answer, seen(said[-1]) if seen else said[-1])
        if isinstance(answer, Turned):
            faults = unfair(answer, pauses(self._found, self.model.now_ms))
            agree(not faults, "\n".join(faults))
        return None if isinstance(answer, RqjError) else answer

    def resend(self, one: Unanswered, *, again: bool) -> None:
        """Let one more copy of a request arrive: sent again by who asked, or the first one, late."""
        call = one.make()
        packed = self.caller.pack(call.again() if again else call, one.lane, one.nonce, whole=True)
        self.wire.fates, self.wire.arrived = [], []
        reply = self.wire.ask(packed)
        said = self._perform(call, one.perform, self.wire.arrived[0])
        answer = RqjError(str(reply)) if isinstance(reply, redis.ResponseError) else call.read(reply)
        self._compare(answer, said)
        if again:
            self.unanswered.remove(one)

    def check(self) -> None:
        """Compare the whole keyspace with the model, and hold it to the laws."""
        self._found = found = world(self.client, self.keys)
        kept = {key: found.pop(key) for key in list(found) if key.startswith("lane:")}
        faults = self.history.check(found, self.model.now_ms)
        self._check_lines(found)
        different = changes(picture(self.model), found)
        agree(not different, f"each (model, scripts): {different}")
        said = lanes(self.model)
        agree(sorted(kept) == sorted(said), f"lanes: {sorted(kept)}, the model has {sorted(said)}")
        for lane, value in said.items():
            same = same_lane(read_lane(kept[lane], value[0]), value)
            agree(same, f"{lane} keeps {kept[lane]}, the model {value}")
        survey = self.read(self.ops.survey(), readers.survey(self.model))
        faults += [*broken(found), *unbalanced(survey), *self.waiters.faults(found, self.model.now_ms)]
        agree(not faults, "\n".join(faults))

    def read(self, call: Call[T], said: T) -> T:
        """Ask a reader, and compare its answer with what the model says."""
        self.wire.fates = []
        answer = self.caller.run(call)
        self._compare(answer, said)
        return answer

    def _perform(self, call: Call[Any], perform: Perform, args: Sequence[bytes]) -> Any:
        def act(again: bool) -> Any:
            before = changelog.Before.of(self.model)
            answer = perform(again)
            for stream, lines in changelog.told(call, answer, before, self.model).items():
                self._lines[stream] += lines
            return answer

        try:
            if call.repeat == "laned":
                return self.model.laned(args[0].decode(), args[1].decode(), lambda: act(False))
            return act(call.repeat == "again" and args[1] == b"1")
        except Refused as refused:
            return refused

    def _check_lines(self, found: World) -> None:
        """Compare what was written into the changelog since the last look, and leave it out of the world."""
        for stream, wanted in self._lines.items():
            lines = found.pop(stream, [])
            different = changelog.differing(lines[self._read[stream] :], wanted)
            agree(not different, different)
            self._read[stream] = len(lines)
            wanted.clear()

    def _remember(self, make: Make, perform: Perform, *, laned: bool) -> None:
        sent = self.wire.last
        lane, nonce = (sent[0].decode(), sent[1].decode()) if laned else ("", "")
        self.unanswered = [*self.unanswered[-3:], Unanswered(make, perform, lane, nonce)]

    def _compare(self, answer: Any, said: Any) -> None:
        if isinstance(said, Refused):
            agree(isinstance(answer, RqjError), f"the model refuses ({said}), the script answers {answer}")
            agree(str(said) in str(answer), f"the model refuses ({said}), the script: {answer}")
            return
        if isinstance(answer, RqjError):
            raise AssertionError(f"the script fails, the model answers {said}") from answer
        found, wanted = _ordered(answer), _ordered(said)
        agree(found == wanted, f"the script answers\n{found}\nthe model\n{wanted}")


def agree(held: bool, about: str) -> None:
    """See that something holds, or say that model and scripts disagree about it."""
    if not held:
        raise Disagreement(about)


def _ordered(answer: Any) -> Any:
    """The answer with what comes in no order sorted: the names of queues."""
    if isinstance(answer, Beat):
        return replace(answer, queues=tuple(sorted(answer.queues)))
    if isinstance(answer, Survey):
        return replace(answer, queues=sorted(answer.queues, key=lambda queue: queue.name))
    if isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[1], tuple):
        return answer[0], tuple(sorted(answer[1]))
    return answer


class _Clock:
    def __init__(self, model: Model) -> None:
        self._model = model

    def now_ms(self) -> int:
        return self._model.now_ms
