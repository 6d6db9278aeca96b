"""The ladder of attempts in simulated time: done, done at the third, dead; nothing early, nothing twice.

`max_attempts=3`, no jitter, and a clock moved by hand over t = 0..11 s. docs/retries.md shows the same ladder.
"""

import pytest

from rqlite_jobs import App, Retry
from rqlite_jobs.answers import Turned
from rqlite_jobs.job import Job
from rqlite_jobs.operations import Settlement
from rqlite_jobs.testing import FrozenClock, drain
from tests.servers import FakeServer, Server

LADDER = Retry(max_attempts=3, jitter=False)


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock(0)


@pytest.fixture
def app(server: Server | FakeServer, clock: FrozenClock) -> App:
    return App("ladder", url=server.url, clock=clock)


def test_done_done_at_the_third_dead(app: App, clock: FrozenClock) -> None:
    provider_calls = []

    @app.job(retry=LADDER)
    def email() -> None: ...

    @app.job(retry=LADDER)
    def flaky() -> None:
        provider_calls.append(clock.now_ms())
        if len(provider_calls) <= 2:
            raise ConnectionError("provider timeout")

    @app.job(retry=LADDER)
    def broken() -> None:
        raise ValueError("bad data")

    jobs = {handler.name: handler.enqueue() for handler in (email, flaky, broken)}
    seen: dict[int, dict[str, tuple[str, int]]] = {}
    ran: dict[int, int] = {}
    for t in range(12):
        ran[t] = drain(app)
        now = {name: job.refresh() for name, job in jobs.items()}
        seen[t] = {name: (job.state, job.attempts) for name, job in now.items()}
        clock.advance("1s")

    assert ran == {t: {0: 3, 2: 2, 6: 2}.get(t, 0) for t in range(12)}
    assert {t: seen[t]["email"] for t in seen} == dict.fromkeys(range(12), ("done", 1))
    first, second = dict.fromkeys(range(2), ("scheduled", 1)), dict.fromkeys(range(2, 6), ("scheduled", 2))
    assert {t: seen[t]["flaky"] for t in seen} == first | second | dict.fromkeys(range(6, 12), ("done", 3))
    assert {t: seen[t]["broken"] for t in seen} == first | second | dict.fromkeys(range(6, 12), ("dead", 3))
    assert provider_calls == [0, 2000, 6000]

    dead = jobs["broken"].refresh()
    assert dead.last_error == "ValueError('bad data')"
    assert dead.traceback is not None
    assert dead.traceback.splitlines()[-1] == "ValueError: bad data"
    assert (dead.finished_at and dead.finished_at.timestamp()) == 6
    stats = app.inspect.stats()
    assert (stats.done, stats.dead, stats.attempts, stats.failed) == (2, 1, 7, 5)
    assert (stats.ready, stats.scheduled, stats.running) == (0, 0, 0)


def test_waiting_shows_the_error_and_when_it_goes_on(app: App, clock: FrozenClock) -> None:
    @app.job(retry=LADDER)
    def flaky() -> None:
        raise ConnectionError("provider timeout")

    job = flaky.enqueue()
    for at, due in [(0, 2), (2, 6)]:
        assert clock.now_ms() == at * 1000
        assert drain(app) == 1
        waiting = job.refresh()
        assert waiting.last_error == "ConnectionError('provider timeout')"
        assert (waiting.run_at and waiting.run_at.timestamp()) == due
        clock.advance(due - at)


def test_revived_begins_at_zero_again(app: App, clock: FrozenClock) -> None:
    mended = []

    @app.job(retry=LADDER)
    def broken() -> None:
        if not mended:
            raise ValueError("bad data")

    job = broken.enqueue()
    for _ in range(12):
        drain(app)
        clock.advance("1s")
    assert job.refresh().state == "dead"
    mended.append(True)
    assert app.run(app.operations.revive([job.id])) == [("revived", "")]
    assert job.refresh().attempts == 0
    assert drain(app) == 1
    assert (job.refresh().state, job.refresh().attempts) == ("done", 1)


def test_a_job_for_later_is_not_claimed_before(app: App, clock: FrozenClock) -> None:
    @app.job
    def later() -> None: ...

    job = later.options(delay="100s").enqueue()
    worker = Claimant(app, "w1")
    clock.advance("50s")
    assert worker.claims() == []
    clock.advance("49.999s")
    assert worker.claims() == []
    assert job.refresh().state == "scheduled"
    clock.advance("1ms")
    assert worker.claims() == [job.id]


def test_two_claims_never_get_the_same_job(app: App) -> None:
    @app.job
    def work(number: int) -> None: ...

    jobs: list[Job[None]] = work.enqueue_many([(number,) for number in range(20)])
    workers = [Claimant(app, f"w{number}") for number in range(4)]
    claimed = [id_ for _ in range(6) for worker in workers for id_ in worker.claims()]
    assert claimed == [job.id for job in jobs], "each once, and in the order of the queue"
    tokens = [token for worker in workers for token in worker.tokens.values()]
    assert len(set(tokens)) == 20

    # Nobody settles what another holds: with the wrong token nothing changes, and the answer says so.
    one, other = workers[0], workers[1]
    id_ = next(iter(one.tokens))
    stolen = Settlement("done", id_, next(iter(other.tokens.values())))
    assert other.turn([stolen]).refused == {id_: "stale"}
    assert app.job_by_id(id_).state == "running"


class Claimant:
    """A worker that takes turns and runs nothing."""

    def __init__(self, app: App, name: str) -> None:
        self._app = app
        self._name = name
        self._turns = 0
        self.tokens: dict[str, str] = {}
        facts = {"host": "test", "pid": "1"}
        app.run(app.operations.register(name, 3_600_000, facts))

    def claims(self) -> list[str]:
        claims = self.turn([], 1).claims
        self.tokens.update({claim.id: claim.token for claim in claims})
        return [claim.id for claim in claims]

    def turn(self, settlements: list[Settlement], start_max: int = 0) -> Turned:
        self._turns += 1
        nonce = f"{self._name}-{self._turns}".ljust(11, "x")
        return self._app.run(
            self._app.operations.turn(self._name, nonce, ["default"], settlements, start_max)
        )
