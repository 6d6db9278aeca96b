"""Who waits for what: the law that no wake-up is swallowed, whatever happens to tokens, pauses and due times.

A waiter sleeps until a token lies in one of its queues, or until the time that it was told. So, wherever something is
to be done, now or later, there must be a token, or somebody who owes a turn, or a waiter that will look by then.
"""

from collections.abc import Iterator, Sequence

from rqlite_jobs.answers import Pause, Turned
from tests.world import World


class Waiters:
    """What workers were told by their turns, and which queues somebody owes a turn."""

    def __init__(self) -> None:
        self._told: dict[tuple[str, str], int] = {}
        self._owed: set[str] = set()

    def turned(self, worker: str, queues: Sequence[str], answer: Turned | None) -> None:
        """A turn was answered, or its answer never came, and then it will be asked again, or its lease runs out."""
        if answer is None or not answer.registered:
            self._owed.update(queues)
            return
        for queue in queues:
            self._owed.discard(queue)
            due_ms = answer.now_ms if answer.left else answer.next_due_ms
            self._told.pop((worker, queue), None)
            if due_ms:
                self._told[worker, queue] = due_ms

    def owes(self, queue: str) -> None:
        """A waiter took the token of a queue, and its turn is still to come."""
        self._owed.add(queue)

    def ended(self, worker: str, *, politely: bool) -> None:
        """A worker waits no more; one that said so has left tokens, else the others look by themselves."""
        for one, queue in list(self._told):
            if one == worker:
                del self._told[one, queue]
                if not politely:
                    self._owed.add(queue)

    def faults(self, world: World, now_ms: int) -> list[str]:
        """The queues of which nobody would learn in time that there is something to do, in words."""
        return [
            f"nobody is woken for {queue} at {when_ms}: told {self._told}, owed {sorted(self._owed)}"
            for queue, when_ms in _work(world, now_ms)
            if f"wake:{queue}" not in world and queue not in self._owed
            if not any(due_ms <= when_ms for (_, name), due_ms in self._told.items() if name == queue)
        ]


def pauses(world: World, now_ms: int) -> dict[str, int]:
    """The queues that are paused, each with the end of its pause in ms; 0: without an end."""
    found = {name: Pause.read(entry.encode(), now_ms) for name, entry in world.get("queues", {}).items()}
    return {name: pause.until_ms for name, pause in found.items() if pause}


def _work(world: World, now_ms: int) -> Iterator[tuple[str, int]]:
    """The queues in which something is to be done, and when, or as soon as it may be."""
    paused = pauses(world, now_ms)
    for queue in world.get("queues", {}):
        line = world.get(f"ready:{queue}:0", [])
        if not isinstance(line, list) or paused.get(queue) == 0:
            continue  # not ours, or paused till somebody resumes it, who leaves a token
        moments = list(world.get(f"scheduled:{queue}", {}).values())
        if len(line) > len(world.get(f"tombs:{queue}", {})):
            moments.append(now_ms)
        if moments:
            yield queue, max(min(moments), paused.get(queue, 0), now_ms)
