"""Scripts with some of their text replaced: for mutants, and for constants made small enough to be met."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from unittest.mock import patch

from rqlite_jobs.script import Script, script, verbs


@dataclass(frozen=True, slots=True)
class Change:
    """One replacement in the joined text of scripts.

    Attributes:
        old: the text as it stands; it must be there exactly once in each script that has it.
        new: what takes its place.
        verbs: the scripts meant; empty: all that have it.
    """

    old: str
    new: str
    verbs: tuple[str, ...] = ()


@contextmanager
def changed(changes: Sequence[Change]) -> Iterator[None]:
    """While this is open, every script is sent with these changes.

    Raises:
        LookupError: a text to be replaced is not in the scripts, or more than once in one of them: the change
            would not be what it says.
    """
    made = {verb: script(verb) for verb in verbs()}
    for change in changes:
        meant = change.verbs or [verb for verb in made if change.old in made[verb].text]
        if not meant:
            raise LookupError(f"no script has the text {change.old!r} any more")
        for verb in meant:
            if made[verb].text.count(change.old) != 1:
                raise LookupError(f"lua/{verb}.lua has the text {change.old!r} not exactly once")
            made[verb] = _with(made[verb], change)
    with (
        patch("rqlite_jobs.acts.script", made.__getitem__),
        patch("rqlite_jobs.operations.script", made.__getitem__),
        patch("rqlite_jobs.request.script", made.__getitem__),
    ):
        yield


def _with(source: Script, change: Change) -> Script:
    text = source.text.replace(change.old, change.new)
    plain = source.plain_text.replace(change.old, change.new)
    return replace(source, text=text, sha=_sha(text), plain_text=plain, plain_sha=_sha(plain))


def _sha(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
