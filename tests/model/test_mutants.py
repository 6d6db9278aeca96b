"""The machine notices: each mutant of the scripts, one wrong line, makes it fail.

It is noticed by a difference, not by a script that does not run.
A mutant whose text is not in the scripts any more fails its test too: it must be written anew.
"""

from collections import Counter
from dataclasses import replace

import pytest

from tests.model import mutants, mutants_of_acts
from tests.model.mutation import Change, changed
from tests.model.profiles import Profile, run
from tests.model.stage import Disagreement
from tests.servers import Server

pytestmark = [pytest.mark.model, pytest.mark.real]

RUNS = 30

MUTANTS = mutants.MUTANTS | mutants_of_acts.MUTANTS


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_noticed(name: str, real_server: Server) -> None:
    profile, change = MUTANTS[name]
    mutated = replace(profile, constants=(*profile.constants, change))

    with pytest.raises(Disagreement):
        _run(mutated, real_server)


def _run(profile: Profile, server: Server) -> None:
    for number in range(RUNS):
        run(profile, server, Counter(), number, shrink=False)


def test_a_text_that_is_gone_makes_no_mutant() -> None:
    with pytest.raises(LookupError, match="any more"), changed([Change("no such line", "")]):
        pass
    with pytest.raises(LookupError, match="exactly once"), changed([Change("redis.call", "", ("turn",))]):
        pass
