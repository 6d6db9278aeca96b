"""Acts by `app.control`: what it asks, and what it makes of the answers."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from rqlite_jobs.config import Settings
from rqlite_jobs.control import Control
from rqlite_jobs.operations import Call
from tests.model import readers
from tests.model.stage import Stage, agree

T = TypeVar("T")

CONTROLS = ("cancel", "delete", "revive", "retry", "purge", "pause", "resume", "release")


class Controls:
    """The control of the namespace on a stage, beside its model."""

    def __init__(self, stage: Stage) -> None:
        self.operations = stage.ops
        self.settings = cast(Settings, stage.model.bounds)
        self._stage = stage
        self._control = Control(self)
        self._perform: Callable[[], Any] = lambda: None

    def run(self, call: Call[T]) -> T:
        """Send what it asks, to both."""
        if call.verb == "survey":
            return cast(T, self._stage.read(self.operations.survey(), readers.survey(self._stage.model)))
        seen = _words if call.verb in ("revive", "release") else None
        return cast(T, self._stage.ask(lambda: call, lambda again: self._perform(), seen=seen))

    async def arun(self, call: Call[T]) -> T:
        """The same, for a control that is asked from an event loop."""
        return self.run(call)

    def on_jobs(self, verb: str, ids: list[str]) -> None:
        once = list(dict.fromkeys(ids))
        self._perform = lambda: getattr(self._stage.model, verb)(once)
        words = getattr(self._control, verb)(ids)
        agree(list(words) == once, f"{verb} of {ids} answers about {list(words)}")

    def release(self, keys: list[str]) -> None:
        once = list(dict.fromkeys(keys))
        self._perform = lambda: self._stage.model.release(once, False)
        agree(list(self._control.release(keys)) == once, f"release of {keys}")

    def purge(self, queue: str) -> None:
        model = self._stage.model
        waiting = model.ready_count(queue) + len(model.scheduled(queue))
        self._perform = lambda: model.purge(queue, 1000)
        if queue not in model.foreign:
            agree(self._control.purge(queue) == waiting, f"purge of {queue}: not {waiting}")

    def pause(self, queue: str) -> None:
        self._perform = lambda: self._stage.model.pause(queue, 2_000, "ann")
        self._control.pause(queue, for_="2s", by="ann")

    def resume(self, queue: str) -> None:
        self._perform = lambda: self._stage.model.pause(queue, None, "")
        self._control.resume(queue)


def _words(pairs: Sequence[tuple[str, str]]) -> list[str]:
    return [word for word, _ in pairs]
