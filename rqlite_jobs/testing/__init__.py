"""For tests of code that enqueues: a fake server, a clock that stands still, and no worker process.

    from rqlite_jobs.testing import FrozenClock, assert_enqueued, drain, isolated
    from shop.jobs import app, send_email

    with isolated(app, clock=FrozenClock(0)) as app:
        send_email.enqueue("ada@example.org")
        assert_enqueued(send_email, "ada@example.org")
        assert drain(app) == 1

`isolated` needs fakeredis (`pip install 'rqlite-jobs[testing]'`); the rest works on a real server too. Every name is
loaded when it is first asked for, so the plugin of pytest, which lives here too, costs a run nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rqlite_jobs.testing.clock import FrozenClock as FrozenClock
    from rqlite_jobs.testing.draining import adrain as adrain
    from rqlite_jobs.testing.draining import drain as drain
    from rqlite_jobs.testing.enqueued import assert_enqueued as assert_enqueued
    from rqlite_jobs.testing.enqueued import assert_not_enqueued as assert_not_enqueued
    from rqlite_jobs.testing.isolation import isolated as isolated

# No module has the name of a thing in it: the module would stand in the place of the thing once it is loaded.
_HOMES = {
    "FrozenClock": "clock",
    "adrain": "draining",
    "assert_enqueued": "enqueued",
    "assert_not_enqueued": "enqueued",
    "drain": "draining",
    "isolated": "isolation",
}

__all__ = ["FrozenClock", "adrain", "assert_enqueued", "assert_not_enqueued", "drain", "isolated"]


def __getattr__(name: str) -> Any:
    """Load a name from the module it lives in, once."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Everything in the kit, loaded or not."""
    return sorted(__all__)
