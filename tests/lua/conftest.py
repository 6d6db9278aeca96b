"""The stage: a namespace on the server of each lane."""

from typing import Any

import pytest

from tests.lua.stage import Stage


@pytest.fixture
def stage(server: Any) -> Stage:
    return Stage(server)
