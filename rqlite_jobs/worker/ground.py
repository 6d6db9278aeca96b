"""Bad ground is refused at the door: a server that a worker must not serve, with what to change."""

from rqlite_jobs.app import App
from rqlite_jobs.config import Settings
from rqlite_jobs.errors import RqjError

OLDEST = (7, 0)


def check_ground(app: App, settings: Settings) -> None:
    """Refuse a server that is too old, or that may evict keys.

    Raises:
        Unreachable: it does not answer.
        RqjError: it is one of those. What it will not tell is not held against it.
    """
    if app.address.fake:
        return
    facts = _facts(app)
    version = facts.get("valkey_version") or facts.get("redis_version", "")
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if numbers and numbers < OLDEST:
        raise RqjError(
            f"the server is version {version}.", hint="rqlite-jobs needs Redis 7.0 or Valkey 7.2, or newer."
        )
    policy = facts.get("maxmemory_policy", "noeviction")
    if policy != "noeviction" and not settings.allow_eviction:
        raise RqjError(
            f"the server's maxmemory-policy is {policy}: when its memory is full it would drop locks and jobs.",
            hint="Set it to noeviction, or give --allow-eviction if you can bear that.",
        )


def _facts(app: App) -> dict[str, str]:
    text = b""
    for section in ("server", "memory"):
        try:
            text += app.caller.command("INFO", section)
        except RqjError as error:
            if isinstance(error, ConnectionError):
                raise
    pairs = (line.partition(":") for line in text.decode("utf-8", "replace").splitlines())
    return {name: value.strip() for name, mark, value in pairs if mark}
