"""A duty that comes round: a tick, a wait that can be interrupted, a tick."""

import threading
from collections.abc import Callable


class Loop:
    """Calls `tick` again and again in a thread of its own.

    Args:
        name: of the thread.
        tick: does the duty once, and answers in how many seconds it wants to be called again. It must not raise.
    """

    def __init__(self, name: str, tick: Callable[[], float]) -> None:
        self._tick = tick
        self._wake = threading.Event()
        self._stopping = False
        # A daemon: a handler's process must be able to end even when the server hangs.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin; the first tick comes at once."""
        self._thread.start()

    def wake(self) -> None:
        """Tick now rather than later."""
        self._wake.set()

    def stop(self, timeout_s: float = 5.0) -> None:
        """End after the tick that is under way; waits for that, but not for ever."""
        self._stopping = True
        self._wake.set()
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._stopping:
            wait_s = self._tick()
            self._wake.wait(wait_s)
            self._wake.clear()
