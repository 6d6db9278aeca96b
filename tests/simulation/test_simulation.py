"""The loop that ships, in simulated time: nothing accepted is lost, whatever dies or goes missing on the way."""

import pytest

from rqlite_jobs import App
from tests.conftest import app_on
from tests.servers import Server
from tests.simulation.fleet import Faults, Fleet, SimClock

CALM = Faults()
STORM = Faults(
    lost_answer=0.05, lost_request=0.05, killed_in_job=0.02, killed=0.01, stopped=0.004, flushed=0.01
)
SEEDS = range(12)


def simulate(server: Server, seed: int, faults: Faults, moves: int = 700) -> Fleet:
    clock = SimClock()
    app = app_on(
        server, clock=clock, lease="15s", max_crashes=50, dead_max_age="100w", done_max_count=100_000
    )
    fleet = Fleet(app, clock, seed, faults)
    for _ in range(moves):
        fleet.move()
    fleet.settle_down()
    return fleet


def ended(app: App, fleet: Fleet) -> tuple[int, int]:
    survey = app.run(app.operations.survey())
    assert survey.running == 0
    assert sum(queue.ready + queue.scheduled for queue in survey.queues) == 0
    assert survey.locks == 0
    done, dead = survey.totals.get("done", 0), survey.dead
    assert survey.totals["enqueued"] == len(fleet.accepted) == done + dead
    return done, dead


def test_a_calm_run_does_every_job_exactly_as_often_as_its_failures_ask(real_server: Server) -> None:
    fleet = simulate(real_server, 1, CALM)
    ended(fleet.app, fleet)
    for number in fleet.accepted.values():
        if number % 17 == 3:
            continue
        assert fleet.runs[number] in ((3, 4) if number % 5 == 0 else (1, 2)), number


@pytest.mark.parametrize("seed", SEEDS)
def test_a_storm_loses_nothing(real_server: Server, seed: int) -> None:
    fleet = simulate(real_server, seed, STORM)
    ended(fleet.app, fleet)
    assert all(fleet.runs[number] >= 1 for number in fleet.accepted.values())


def test_every_fault_was_met(real_server: Server) -> None:
    met: set[str] = set()
    for seed in (3, 5):
        real_server.flush()
        met |= set(simulate(real_server, seed, STORM).took)
    assert met == {"lost answer", "lost request", "killed", "killed in a job", "frozen", "script flush"}
