"""Verbs on jobs: look what is there, say how many will be touched, ask, act in bounded steps, tell what came of it."""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from rqlite_jobs.cli.chosen import Chosen
from rqlite_jobs.cli.consent import Consent
from rqlite_jobs.cli.errors import CONFLICT, FAILED, NOT_FOUND, OK
from rqlite_jobs.cli.progress import bar
from rqlite_jobs.cli.target import Target
from rqlite_jobs.cli.text import count, remark, say, say_json
from rqlite_jobs.errors import JobNotFound, shown
from rqlite_jobs.job import Job
from rqlite_jobs.operations import Call, Operations

STEP = 100
"""How many jobs one script call touches; the server answers nobody else meanwhile."""
_TOLD_MAX = 20

_WORDS = {"unknown": NOT_FOUND, "running": CONFLICT, "duplicate": CONFLICT}
_REMEDIES = {
    "running": "a worker runs it now",
    "dead": "`rqj dead revive` runs it again, `rqj dead delete` removes it",
    "done": "it has run; `rqj jobs delete` removes what is kept of it",
    "ready": "it waits to be run; `rqj jobs cancel` keeps it from that",
    "scheduled": "it waits for its time; `rqj jobs cancel` keeps it from that",
    "delayed": "it has not failed, and waits for the time it was given",
    "malformed": "its record is not one of ours; `rqj jobs delete` removes it",
    "expired": "its time was over before it was started",
    "cancelled": "it was cancelled before",
    "unknown": "nothing of it is known",
}


@dataclass(frozen=True, slots=True)
class Deed:
    """What can be done to jobs.

    Attributes:
        verb: what it is called: `cancel`.
        done: the word that a script answers when it was done: `cancelled`.
        states: those of jobs to which it can be done.
        send: the call for some ids; answers a word for each, and who is in the way.
        meant: is this one, in such a state, meant where many are chosen by a filter?
    """

    verb: str
    done: str
    states: frozenset[str]
    send: Callable[[Operations, Sequence[str]], Call[list[tuple[str, str]]]]
    meant: Callable[[Job[Any]], bool] = lambda job: True


@dataclass(frozen=True, slots=True)
class Told:
    """What became of one id: a word, the job that was in the way, and whether it is as it should be."""

    id: str
    word: str
    holder_id: str = ""
    done: bool = False


def do(deed: Deed, target: Target, chosen: Chosen, consent: Consent, jobs: Iterable[Job[Any]]) -> NoReturn:
    """Do it to all jobs that are in a state for it, and leave with the exit code that tells of the others.

    Raises:
        JobNotFound: there was one id, and it is not known.
        NotConfirmed: consent was not given.
    """
    fit, told = [], []
    for job in jobs:
        if job.state in deed.states:
            fit.append(job)
        else:
            told.append(Told(job.id, job.state))
    if not fit and len(told) == 1 and told[0].word == "unknown":
        raise JobNotFound(
            f"no job has the id {shown(told[0].id)}.",
            hint=f"Nothing was changed in {target.shown}; `rqj jobs` lists what is there.",
            job_id=told[0].id,
        )
    if fit and consent.given(f"{deed.verb} {_many(fit)} of {target.shown}"):
        told += _act(deed, target, [job.id for job in fit])
    elif fit:
        told += [Told(job.id, f"would be {deed.done}", done=True) for job in fit]
    _tell(deed, target, chosen, consent, told)
    failed = [_WORDS.get(one.word, FAILED) for one in told if not one.done]
    sys.exit(max(failed, default=OK))


def _act(deed: Deed, target: Target, ids: Sequence[str]) -> list[Told]:
    told = []
    with bar(deed.verb, len(ids)) as advance:
        for at in range(0, len(ids), STEP):
            some = ids[at : at + STEP]
            answers = target.app.run(deed.send(target.app.operations, some))
            told += [
                Told(id_, word, holder_id, word == deed.done)
                for id_, (word, holder_id) in zip(some, answers, strict=True)
            ]
            advance(len(some))
    return told


def _tell(deed: Deed, target: Target, chosen: Chosen, consent: Consent, told: Sequence[Told]) -> None:
    done = [one for one in told if one.done and not consent.dry_run]
    if chosen.json:
        jobs = [{"id": one.id, "word": one.word, "holder_id": one.holder_id or None} for one in told]
        said: dict[str, Any] = {
            "namespace": target.app.namespace,
            "verb": deed.verb,
            "dry_run": consent.dry_run,
        }
        say_json({**said, "count": len(done), "jobs": jobs})
        return
    if len(done) == 1:
        say(f"{deed.done} {done[0].id}")
    elif done:
        say(f"{deed.done} {count(len(done), 'job')}")
    others = [one for one in told if not one.done]
    for one in others[:_TOLD_MAX]:
        why = f"{one.holder_id} holds its lock" if one.word == "duplicate" else _REMEDIES.get(one.word, "")
        remark(f"not {deed.done}: {one.id} is {one.word}{'; ' if why else ''}{why}")
    if len(others) > _TOLD_MAX:
        remark(f"... and {count(len(others) - _TOLD_MAX, 'more job')} not {deed.done}.")


def _many(jobs: Sequence[Job[Any]]) -> str:
    states = Counter(job.state for job in jobs)
    if len(states) == 1:
        return count(len(jobs), f"{jobs[0].state} job")
    each = ", ".join(f"{number:,} {state}" for state, number in states.items())
    return f"{count(len(jobs), 'job')} ({each})"


def one_word(call: Call[list[str]]) -> Call[list[tuple[str, str]]]:
    """A call that answers words alone, as one that may also tell who is in the way."""
    return Call(
        call.verb, call.keys, call.args, lambda reply: [(word, "") for word in call.read(reply)], call.repeat
    )
