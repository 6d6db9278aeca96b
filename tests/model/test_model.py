"""Model and scripts side by side, through histories with crashes and lost answers; see `machine`.

Every run makes the same histories. `MODEL_ROUNDS=50 pytest tests/model` makes many more of them.
"""

import os
from collections import Counter

import pytest

from tests.model import rules
from tests.model.branches import BRANCHES, REFUSALS, RULES
from tests.model.profiles import PROFILES, SMALL, run
from tests.servers import FakeServer, Server

pytestmark = pytest.mark.model

ROUNDS = int(os.environ.get("MODEL_ROUNDS", "2"))
ROUNDS_MAX = 8
RUNS = 5


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.timeout(200 + 100 * ROUNDS)
def test_scripts_do_what_the_model_says(real_server: Server) -> None:
    taken: Counter[str] = Counter()
    rounds = 0
    # One round meets everything; more than asked for are there for other versions of hypothesis.
    while rounds < ROUNDS or (rounds < ROUNDS_MAX and BRANCHES - set(taken)):
        for profile in PROFILES:
            for number in range(RUNS * rounds, RUNS * (rounds + 1)):
                run(profile, real_server, taken, number)
        rounds += 1

    assert BRANCHES - set(taken) == set(), f"never taken in {rounds} rounds"


def test_scripts_do_it_on_every_kind_of_server(server: Server | FakeServer) -> None:
    taken: Counter[str] = Counter()

    for number in range(ROUNDS):
        run(SMALL, server, taken, number)

    assert taken["rule: turn"] > 0


def test_every_rule_has_its_branch() -> None:
    assert set(rules.RULES) == {name for name in RULES if "," not in name}
    assert RULES < BRANCHES
    assert REFUSALS < BRANCHES
