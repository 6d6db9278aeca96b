"""For tests of code that enqueues: a fake server, a clock that stands still, and no worker process.

    from rqlite_jobs import App
    from rqlite_jobs.testing import FrozenClock, assert_enqueued, drain

    clock = FrozenClock(0)
    app = App("test", url="fake://test", clock=clock)

`fake://<name>` is a server inside this process (`pip install 'rqlite-jobs[testing]'`); each name is one of its own.
All of this works on a real server too.
"""

from rqlite_jobs.testing.clock import FrozenClock as FrozenClock
from rqlite_jobs.testing.drain import adrain as adrain
from rqlite_jobs.testing.drain import drain as drain
from rqlite_jobs.testing.enqueued import assert_enqueued as assert_enqueued

__all__ = ["FrozenClock", "adrain", "assert_enqueued", "drain"]
