"""The bounds under which histories are run, and how a run is made."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.model.facts import Bounds
from tests.model.machine import Machine
from tests.model.mutation import Change, changed

STEPS = 50
HISTORIES = 9
"""Histories of one run. With ten or more hypothesis begins to vary those it has made: five of six are copies then,
and meet little that is new. Many runs of nine find ten times as much."""


@dataclass(frozen=True, slots=True)
class Profile:
    """Bounds, and the constants of the scripts that must be changed to them."""

    name: str
    bounds: Bounds
    constants: tuple[Change, ...] = ()


SMALL = Profile("small", Bounds())
NOTHING_KEPT = Profile(
    "nothing kept", Bounds(dead_max_count=0, rejected_max_count=0, done_max_count=0, max_crashes=1)
)
TIGHT = Profile(
    "tight",
    Bounds(
        dead_max_count=100, dead_max_age_ms=5_000, rejected_max_count=100, done_max_count=100, max_crashes=3,
        recover_max=2, due_max=1, rounds_max=1, trim_max=1, sweep_max=1,
    ),
    (
        Change("local recovery = {jobs_max = 500,", "local recovery = {jobs_max = 2,"),
        Change("local DUE_MAX = 100 ", "local DUE_MAX = 1 "),
        Change("local ROUNDS_MAX = 20 ", "local ROUNDS_MAX = 1 "),
        Change("local dead = {trim_max = 100}", "local dead = {trim_max = 1}"),
        Change("local SWEEP_MAX = 100 ", "local SWEEP_MAX = 1 "),
    ),
)  # fmt: skip
PROFILES = (SMALL, TIGHT, NOTHING_KEPT)


def run(profile: Profile, server: Any, taken: Counter[str], number: int, *, shrink: bool = True) -> None:
    """Run a few histories on a server, always the same ones for the same `number`.

    Args:
        profile: under which bounds.
        server: one of `tests.servers`; it is emptied.
        taken: where rules and branches are counted.
        number: which histories.
        shrink: look for the shortest history that fails; takes long.

    Raises:
        Disagreement: model and scripts disagree.
    """
    client = server.client()

    @seed(number)
    def machine() -> Machine:
        return Machine(client, server.url, profile.bounds, taken)

    phases = [Phase.generate, Phase.shrink] if shrink else [Phase.generate]
    chosen = settings(
        max_examples=HISTORIES,
        stateful_step_count=STEPS,
        phases=phases,
        deadline=None,
        database=None,
        print_blob=False,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    with changed(profile.constants):
        run_state_machine_as_test(machine, settings=chosen)
