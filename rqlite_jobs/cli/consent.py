"""Asking before something is changed for good: `--yes`, `--dry-run`, and the question."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from rqlite_jobs.cli.text import plain, remark
from rqlite_jobs.errors import NotConfirmed

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Consent:
    """Whether a command may do what it says.

    Attributes:
        yes: it was given beforehand.
        dry_run: nothing is to be changed, only told.
    """

    yes: bool = False
    dry_run: bool = False

    def given(self, deed: str) -> bool:
        """Ask for consent, unless it was given; False: say what would be done, and do nothing.

        Args:
            deed: what will be done, to how many things and where: `delete 12 jobs of namespace 'shop' on ...`.

        Raises:
            NotConfirmed: the answer was no, or nobody could answer.
        """
        if self.dry_run:
            remark(f"Would {deed}. Nothing was changed.")
            return False
        if self.yes:
            return True
        try:
            answer = click.confirm(plain(f"{deed[:1].upper()}{deed[1:]}?"), err=True)
        except click.Abort:
            click.echo(err=True)
            raise NotConfirmed(
                f"nothing was changed: nobody answered whether to {deed}.",
                hint="Add --yes where nobody can be asked, or --dry-run to see what it would touch.",
            ) from None
        if not answer:
            raise NotConfirmed("nothing was changed.", hint="The answer was no.")
        return True


def consent_options(command: F) -> F:
    """Give a command `--yes` and `--dry-run`; it gets them as `yes` and `dry_run`."""
    command = click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")(command)
    return click.option("-y", "--yes", is_flag=True, help="Do not ask.")(command)
