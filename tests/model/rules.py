"""How a rule is declared, so that its use is counted."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from hypothesis.stateful import rule

RULES: list[str] = []
"""The names of the rules declared."""


def act(**given: Any) -> Callable[[Callable[..., None]], Any]:
    """A rule whose use is counted."""

    def mark(do: Callable[..., None]) -> Any:
        RULES.append(f"rule: {do.__name__}")

        @wraps(do)
        def counted(self: Any, **drawn: Any) -> None:
            self.model.note(f"rule: {do.__name__}")
            do(self, **drawn)

        return rule(**given)(counted)

    return mark
