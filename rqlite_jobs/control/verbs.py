"""What an operator's act takes, in bounded steps; each act stands here once."""

from collections.abc import Callable, Iterable, Sequence

from rqlite_jobs.answers import Survey
from rqlite_jobs.durations import Duration, to_ms
from rqlite_jobs.errors import BadDuration, BadOption, QueueNotFound, a_type, nearest, shown
from rqlite_jobs.operations import Call, Operations
from rqlite_jobs.steps import Steps

STEP = 100
"""How many jobs one script call touches; the server answers nobody else meanwhile."""


def each(ids: str | Iterable[str], act: Callable[[Sequence[str]], Call[list[str]]]) -> Steps[dict[str, str]]:
    """Act on things, each once, however often it is named; a word for each.

    Raises:
        BadOption: one that is not text.
    """
    named = list(dict.fromkeys(_texts(ids)))
    words: dict[str, str] = {}
    for at in range(0, len(named), STEP):
        some = named[at : at + STEP]
        answers: list[str] = yield act(some)
        words |= zip(some, answers, strict=True)
    return words


def purge(ops: Operations, queue: str, by: str | None) -> Steps[int]:
    """Delete what waits in a queue; how many jobs there were.

    Raises:
        QueueNotFound: no job was ever put into this queue.
    """
    survey: Survey = yield ops.survey()
    known = {one.name: one.ready + one.scheduled for one in survey.queues}
    if queue not in tuple(known):  # not of the dict: a list is no key of one
        raise _no_queue(queue, known)
    # Not until it is empty: a producer that is faster than we are would keep us here.
    left, purged = known[queue], 0
    while left > 0:
        ready, scheduled, behind = yield ops.purge(queue, by=by)
        purged += ready + scheduled
        left = min(left - ready - scheduled, behind)  # a step that meets only tombs takes none
    return purged


def pause(ops: Operations, queue: str, for_ms: int | None, by: str | None) -> Steps[str]:
    """Pause a queue, or (None) resume it; a word.

    Raises:
        QueueNotFound: no job was ever put into this queue.
    """
    word: str = yield ops.pause(queue, for_ms, by)
    if word == "unknown":
        survey: Survey = yield ops.survey()
        raise _no_queue(queue, [one.name for one in survey.queues])
    return word


def recover(ops: Operations, by: str | None) -> Steps[int]:
    """Give the jobs of dead workers back; how many."""
    recovered = 0
    while True:
        answer: tuple[int, int] = yield ops.recover(ops.settings.max_crashes, by=by)
        done, left = answer
        recovered += done
        if not left or not done:  # nothing done and something left: others are at it
            return recovered


def first(call: Call[list[tuple[str, str]]]) -> Call[list[str]]:
    """A call that answers with a word and a holder, as one that answers with the word."""
    return Call(
        call.verb, call.keys, call.args, lambda reply: [word for word, _ in call.read(reply)], call.repeat
    )


def pause_ms(for_: Duration | None) -> int:
    """How long a pause is; 0: until the queue is resumed.

    Raises:
        BadDuration: a time that is none.
    """
    if for_ is None:
        return 0
    if found := to_ms(for_, what="for_"):
        return found
    raise BadDuration(
        "a pause of 0 is none.", hint='Give it a time: for_="10m"; without it, it lasts until resumed.'
    )


def _texts(ids: str | Iterable[str]) -> Iterable[str]:
    if not isinstance(ids, Iterable):
        raise BadOption(
            f"{shown(ids)} is {a_type(ids)}, and no ids.", hint="Give ids as text: job.id.", option="ids"
        )
    for one in (ids,) if isinstance(ids, str) else ids:
        if not isinstance(one, str):
            raise BadOption(
                f"{shown(one)} is {a_type(one)}, not text.", hint="Give ids as text: job.id.", option="ids"
            )
        yield one


def _no_queue(queue: str, known: Iterable[str]) -> QueueNotFound:
    return QueueNotFound(
        f"no job was ever put into a queue {shown(queue)}.",
        hint=nearest(queue, list(known)) or "There is no queue yet.",
        queue=queue,
    )
