"""Background jobs on Redis or Valkey, moved only by atomic Lua scripts.

    from rqlite_jobs import App, Retry, until_executed

    app = App("bookstore")

    @app.job(queue="sales", retry=Retry(max_attempts=5), lock=until_executed())
    def crunch_sales(book_id: int) -> float: ...

    job = crunch_sales.enqueue(42)

Every name below is loaded when it is first asked for: importing this package imports no Redis client
(a quarter of a second), so a command line or a web process pays only for what it uses.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .app import App as App
    from .backoff import Retry as Retry
    from .current import CurrentJob as CurrentJob
    from .current import current_job as current_job
    from .durations import Duration as Duration
    from .errors import AppNotFound as AppNotFound
    from .errors import BadDuration as BadDuration
    from .errors import BadName as BadName
    from .errors import BadOption as BadOption
    from .errors import BadUrl as BadUrl
    from .errors import Bury as Bury
    from .errors import FormatMismatch as FormatMismatch
    from .errors import JobCancelled as JobCancelled
    from .errors import JobFailed as JobFailed
    from .errors import JobNotFound as JobNotFound
    from .errors import LockConflict as LockConflict
    from .errors import LockNotFound as LockNotFound
    from .errors import NoCurrentJob as NoCurrentJob
    from .errors import NotConfirmed as NotConfirmed
    from .errors import PayloadTooLarge as PayloadTooLarge
    from .errors import QueueNotFound as QueueNotFound
    from .errors import ResultExpired as ResultExpired
    from .errors import ResultTimeout as ResultTimeout
    from .errors import RetryIn as RetryIn
    from .errors import RqjError as RqjError
    from .errors import ScriptFailed as ScriptFailed
    from .errors import ServerFull as ServerFull
    from .errors import ServerMissing as ServerMissing
    from .errors import ServerReadOnly as ServerReadOnly
    from .errors import Signal as Signal
    from .errors import Snooze as Snooze
    from .errors import UnknownJob as UnknownJob
    from .errors import UnknownOption as UnknownOption
    from .errors import Unreachable as Unreachable
    from .errors import UnserializableArguments as UnserializableArguments
    from .errors import WrongArguments as WrongArguments
    from .handler import AsyncHandler as AsyncHandler
    from .handler import Handler as Handler
    from .handler import Signature as Signature
    from .handler import SyncHandler as SyncHandler
    from .job import Job as Job
    from .lock import LockPolicy as LockPolicy
    from .lock import until_executed as until_executed
    from .lock import until_expired as until_expired
    from .progress import Progress as Progress
    from .worker import Worker as Worker

__version__ = "0.1.0"

# Where each public name lives: module -> the names it gives.
_HOMES = {
    "app": ("App",),
    "backoff": ("Retry",),
    "current": ("CurrentJob", "current_job"),
    "durations": ("Duration",),
    "errors": (
        "AppNotFound",
        "BadDuration",
        "BadName",
        "BadOption",
        "BadUrl",
        "Bury",
        "FormatMismatch",
        "JobCancelled",
        "JobFailed",
        "JobNotFound",
        "LockConflict",
        "LockNotFound",
        "NoCurrentJob",
        "NotConfirmed",
        "PayloadTooLarge",
        "QueueNotFound",
        "ResultExpired",
        "ResultTimeout",
        "RetryIn",
        "RqjError",
        "ScriptFailed",
        "ServerFull",
        "ServerMissing",
        "ServerReadOnly",
        "Signal",
        "Snooze",
        "UnknownJob",
        "UnknownOption",
        "Unreachable",
        "UnserializableArguments",
        "WrongArguments",
    ),
    "handler": ("AsyncHandler", "Handler", "Signature", "SyncHandler"),
    "job": ("Job",),
    "lock": ("LockPolicy", "until_executed", "until_expired"),
    "progress": ("Progress",),
    "worker": ("Worker",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = ["__version__", *sorted(_HOME_OF)]


def __getattr__(name: str) -> Any:
    """Load a public name from the module it lives in, once."""
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Everything public, loaded or not."""
    return sorted(__all__)
