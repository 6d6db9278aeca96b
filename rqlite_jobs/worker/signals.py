"""What the signals of a process mean to a worker; only where the process has them, and only in its main thread."""

import _thread
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def handled(stop: Callable[[], None], quiet: Callable[[], None]) -> Iterator[None]:
    """While this lasts, TERM and INT call `stop`, and TSTP calls `quiet`; afterwards all is as before.

    Off the main thread it does nothing: Python delivers signals to the main thread only.

    Each is called in a thread of its own. A signal comes between any two steps of the main thread, which may hold
    the very lock that `stop` takes: two signals in one instant would leave it waiting for itself. (`_thread`, for
    `threading.Thread` takes such a lock too.)
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def on_stop(number: int, frame: FrameType | None) -> None:
        _thread.start_new_thread(stop, ())

    def on_quiet(number: int, frame: FrameType | None) -> None:
        _thread.start_new_thread(quiet, ())

    wanted = {"SIGTERM": on_stop, "SIGINT": on_stop, "SIGTSTP": on_quiet}
    before = {
        getattr(signal, name): signal.signal(getattr(signal, name), handler)
        for name, handler in wanted.items()
        if hasattr(signal, name)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
