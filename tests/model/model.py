"""The queue as a state machine: all that can be asked of it, in plain Python, with the answers it must give."""

from tests.model.operators import Operators
from tests.model.producers import Producers
from tests.model.requests import Requests
from tests.model.state import Refused
from tests.model.turns import Turns
from tests.model.workers import Workers


class Model(Producers, Operators, Requests, Workers, Turns):
    """A namespace; see `state` for what it holds."""


__all__ = ["Model", "Refused"]
