"""What unit tests begin with, where a file says nothing else: an app on an empty fake server, and its clock."""

import pytest

from rqlite_jobs import App
from rqlite_jobs.testing import FrozenClock
from tests.servers import FakeServer


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock(1000)


@pytest.fixture
def app(clock: FrozenClock) -> App:
    pytest.importorskip("fakeredis", reason="fakeredis is not installed")
    return App("test", url=FakeServer().url, clock=clock)
