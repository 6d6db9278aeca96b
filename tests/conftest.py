"""What every test may ask for: a server of each lane, an app on it, servers of its own.

    server        an empty server; the test runs once on every lane (`--lane` chooses)
    app           an App on it
    real_server   an empty server of one real lane, for tests that do not care which
    real_app      an App on it
    fake_app      an App on a fake server
    spawn         spawn(appendonly=True) -> a server of this test's own, which it may kill and start again

`@pytest.mark.lanes("valkey", "redis")` keeps a test that asks for `server` to these lanes.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

from tests.servers import LANES, REAL_LANES, FakeServer, Server, Servers, why_missing

if TYPE_CHECKING:
    from rqlite_jobs import App

# A machine that is busy is no failure: how long one example takes says nothing about the code.
hypothesis.settings.register_profile(
    "rqj", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("rqj")

Spawn = Callable[..., Server]
_MARKS = {
    "fake": [],
    "valkey": [pytest.mark.real],
    "redis": [pytest.mark.real],
    "cluster": [pytest.mark.real, pytest.mark.cluster],
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--lane",
        action="append",
        choices=(*LANES, "all"),
        help="the kind of server that tests run on; may be given several times (default: all)",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "lanes(*names): the lanes that this test's `server` is of")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "server" not in metafunc.fixturenames:
        return
    marker = metafunc.definition.get_closest_marker("lanes")
    lanes = [lane for lane in (marker.args if marker else LANES) if lane in wanted(metafunc.config)]
    params = [pytest.param(lane, marks=_MARKS[lane]) for lane in lanes]
    metafunc.parametrize("server", params, indirect=True)


def wanted(config: pytest.Config) -> tuple[str, ...]:
    """The lanes that were asked for."""
    chosen = config.getoption("--lane") or ["all"]
    return LANES if "all" in chosen else tuple(lane for lane in LANES if lane in chosen)


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    """The servers of this test process; with xdist each has its own."""
    pool = Servers()
    yield pool
    pool.end()


@pytest.fixture
def server(request: pytest.FixtureRequest, servers: Servers) -> Server | FakeServer:
    return of_lane(servers, request.param)


@pytest.fixture
def real_server(request: pytest.FixtureRequest, servers: Servers) -> Server:
    found = of_lane(servers, real_lane(request.config))
    assert isinstance(found, Server)
    return found


@pytest.fixture
def spawn(request: pytest.FixtureRequest) -> Iterator[Spawn]:
    """`spawn(*options, lane=..., appendonly=..., port=...)`: a server of this test's own, ended with it."""
    pool = Servers()

    def start(*options: str, lane: str = "", appendonly: bool = False, port: int | None = None) -> Server:
        lane = lane or real_lane(request.config)
        if missing := why_missing(lane):
            pytest.skip(missing)
        return pool.new(lane, *options, appendonly=appendonly, port=port)

    yield start
    pool.end()


@pytest.fixture
def app(server: Server | FakeServer) -> "App":
    return app_on(server)


@pytest.fixture
def real_app(real_server: Server) -> "App":
    return app_on(real_server)


@pytest.fixture
def fake_app() -> "App":
    if missing := why_missing("fake"):
        pytest.skip(missing)
    return app_on(FakeServer())


def app_on(server: Server | FakeServer, namespace: str = "test", **options: Any) -> "App":
    """An App on a server, under the namespace `test`."""
    from rqlite_jobs import App

    return App(namespace, url=server.url, **options)


def of_lane(servers: Servers, lane: str) -> Server | FakeServer:
    """The emptied server of a lane; the test is skipped where there is none."""
    if missing := why_missing(lane):
        pytest.skip(missing)
    return servers.of(lane)


def real_lane(config: pytest.Config) -> str:
    """The one real lane for tests that do not care: the first of those asked for that is here."""
    lanes = [lane for lane in REAL_LANES if lane in wanted(config)] or list(REAL_LANES)
    return next((lane for lane in lanes if not why_missing(lane)), lanes[0])
