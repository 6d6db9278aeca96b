"""The names of a namespace's keys in Redis; nothing else spells one.

Every key of a namespace carries the same hash tag, `rqj:{bookstore}:ready:sales:0`, so that a script over any of
them is single-slot on a cluster by construction. What each key holds is the data dictionary, `lua/README.md`.
"""

import re

from rqlite_jobs.errors import BadName
from rqlite_jobs.secrecy import masked

NAMESPACES = "rqj:namespaces"
"""A set of all namespaces on a server: a plain key beside them all, for a command that was given none."""

_FIXED = frozenset(
    "jobs bodies tries errors where ends gone left done dead rejected workers fallen locks queues totals fence "
    "meta changelog events kept results waiters progress".split()
)
_DERIVED = frozenset("ready tombs scheduled running worker wake lock lane history answers".split())
_NAMESPACE = re.compile(r"[^\W]([\w-])*")
_QUEUE = re.compile(r"[^\W]([\w.-])*")
_NAME_MAX_BYTES = 100


class ScriptKeys:
    """The keys of one script in one namespace, in the order in which its binding block has them.

    Made once and kept by `Keys`, so that a caller may cache what it packs by the identity of this object.
    """

    __slots__ = ("names",)

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names

    def __repr__(self) -> str:
        return f"ScriptKeys({self.names!r})"


class Keys:
    """The keys of one namespace (later: of one partition of it).

    Args:
        namespace: its name; see `check_namespace`.

    Raises:
        BadName: the name is not allowed.

    >>> Keys("bookstore").fixed("jobs"), Keys("bookstore").prefix("ready")
    ('rqj:{bookstore}:jobs', 'rqj:{bookstore}:ready:')
    """

    __slots__ = ("_scripts", "namespace", "tag")

    def __init__(self, namespace: str) -> None:
        self.namespace = check_namespace(namespace)
        self.tag = f"rqj:{{{namespace}}}:"
        self._scripts: dict[tuple[tuple[str, ...], str], ScriptKeys] = {}

    def fixed(self, name: str) -> str:
        """The key `name`, one of those that a namespace has once: `jobs`, `dead` ..."""
        if name not in _FIXED:
            raise KeyError(f"no key is named {name!r}")
        return self.tag + name

    def prefix(self, name: str) -> str:
        """What the keys of a family begin with: `ready`, `lock` ...; behind it comes a queue, a worker, a lock key."""
        if name not in _DERIVED:
            raise KeyError(f"no family of keys is named {name!r}")
        return f"{self.tag}{name}:"

    def wake(self, queue: str) -> str:
        """The list in which a wake-up token for the queue may lie."""
        return f"{self.tag}wake:{queue}"

    def answers(self, process: str) -> str:
        """The list in which the ends of jobs arrive that a process waits for."""
        return f"{self.tag}answers:{process}"

    def of_script(self, bindings: tuple[str, ...], worker: str = "") -> ScriptKeys:
        """The keys that a script's binding block names, in order.

        Args:
            bindings: the local names of the block, `jobs_key` or `ready_prefix`.
            worker: whose `running_key` is meant, for scripts that bind one.
        """
        made = self._scripts.get((bindings, worker))
        if made is None:
            made = ScriptKeys(tuple(self._bound(binding, worker) for binding in bindings))
            if (
                len(self._scripts) > 200
            ):  # a process that registers under a new id again and again stays small
                self._scripts.clear()
            self._scripts[bindings, worker] = made
        return made

    def _bound(self, binding: str, worker: str) -> str:
        name, _, kind = binding.rpartition("_")
        if binding == "running_key":
            return f"{self.tag}running:{worker}"
        return self.fixed(name) if kind == "key" else self.prefix(name)


def check_namespace(name: str) -> str:
    """The name itself, if a namespace may have it: letters and digits of any script, `_` and `-`, at most 100 bytes.

    Raises:
        BadName: it may not. (No `.`: that will tell the partitions of a namespace apart.)

    >>> check_namespace("bookstore")
    'bookstore'
    """
    return _checked(name, _NAMESPACE, "namespace", "letters, digits, '_' and '-'")


def check_queue(name: str) -> str:
    """The name itself, if a queue may have it: like a namespace's, and `.` too.

    Raises:
        BadName: it may not.

    >>> check_queue("mail.bulk")
    'mail.bulk'
    """
    return _checked(name, _QUEUE, "queue", "letters, digits, '.', '_' and '-'")


def _checked(name: object, pattern: re.Pattern[str], what: str, allowed: str) -> str:
    if not isinstance(name, str):
        raise BadName(
            f"the name of a {what} is {name!r}, of type {type(name).__name__}.", hint="Give it as text."
        )
    if not pattern.fullmatch(name) or len(name.encode()) > _NAME_MAX_BYTES:
        raise BadName(
            f"{masked(name)[:120]!r} cannot be the name of a {what}.",
            hint=f"Use {allowed}, beginning with a letter or digit, at most {_NAME_MAX_BYTES} bytes.",
            name=masked(name),
        )
    return name
