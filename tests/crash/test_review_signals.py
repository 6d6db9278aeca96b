"""Signals that come in the middle of another, and what a worker refuses to serve."""

import os
import signal
import threading

import pytest

from rqlite_jobs import App
from rqlite_jobs.errors import BadOption
from rqlite_jobs.worker import Worker
from rqlite_jobs.worker.signals import handled
from tests.worker.site import until


def test_a_signal_that_comes_while_another_is_handled_waits_for_nobody() -> None:
    """The second comes while the first holds a lock, the third while it goes on."""
    lock, calls = threading.Lock(), []

    def stop() -> None:
        with lock:
            calls.append(threading.current_thread())
            if len(calls) < 3:
                os.kill(os.getpid(), signal.SIGTERM if len(calls) == 1 else signal.SIGINT)

    with handled(stop, stop):
        os.kill(os.getpid(), signal.SIGTERM)
        until(lambda: len(calls) == 3, "all three are heard")
    assert threading.main_thread() not in calls


def test_one_text_is_no_list_of_queues() -> None:
    with pytest.raises(BadOption, match="one text") as refused:
        Worker(App("test", url="redis://nowhere:1"), "mail")
    assert refused.value.hint == "Write queues=['mail']."
