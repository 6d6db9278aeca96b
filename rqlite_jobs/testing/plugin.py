"""The plugin of pytest: one fixture. It imports nothing until a test asks for it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

import pytest

if TYPE_CHECKING:
    from rqlite_jobs.app import App
    from rqlite_jobs.clock import Clock


class Isolate(Protocol):
    """What the fixture `rqj_isolated` gives."""

    def __call__(self, app: "App", *, clock: "Clock | None" = None) -> "App":
        """Point an app at an empty fake server until the test ends; see `rqlite_jobs.testing.isolated`."""
        ...


@pytest.fixture
def rqj_isolated() -> Iterator[Isolate]:
    """Point apps at empty fake servers until the test ends: `rqj_isolated(app, clock=FrozenClock(0))`."""
    from contextlib import ExitStack

    from rqlite_jobs.testing.isolation import isolated

    with ExitStack() as stack:

        def isolate(app: "App", *, clock: "Clock | None" = None) -> "App":
            return stack.enter_context(isolated(app, clock=clock))

        yield isolate
