"""The laws that hold in a namespace whatever happened: checked on what lies in Redis, without the model.

P1, conservation: every job with a record is in exactly one place, and the numbers that readers see add up. P4: a lock
points to a job in a holding state, or its time is not over. No job is started of a paused queue, or when its own time
is over. See `waiters` for the law about wake-ups.
"""

from collections import Counter
from collections.abc import Iterable

from rqlite_jobs.answers import Survey, Turned
from rqlite_jobs.inspector import Stats
from rqlite_jobs.job import Record
from tests.world import World

LEFT = ("done", "cancelled", "deleted", "expired", "superseded")


def broken(world: World) -> list[str]:
    """The laws that do not hold in what `world()` read, in words; empty if all is well."""
    places = places_of(world)
    jobs = {
        id: Record.read(raw.encode("utf-8", "surrogateescape")) for id, raw in world.get("jobs", {}).items()
    }
    faults = [
        f"{id} has a record and is in {places.get(id, [])}" for id in jobs if len(places.get(id, [])) != 1
    ]
    faults += [f"{id} is in {where} without a record" for id, where in places.items() if id not in jobs]
    for id, where in places.items():
        job = jobs.get(id)
        if job and where[0].startswith(("ready:", "scheduled:")) and where[0].split(":")[1] != job.queue:
            faults.append(f"{id} of the queue {job.queue} is in {where[0]}")
    faults += _locks(world, places)
    faults += _running(world, places, jobs)
    for name in ("tries", "bodies", "errors", "ends"):
        faults += [f"{name} knows {id}, which has no record" for id in world.get(name, {}) if id not in jobs]
    for queue, tombs in _family(world, "tombs:").items():
        lying = set(world.get(f"ready:{queue}:0", ()))
        faults += [f"the tomb of {id} in {queue} lies over nothing" for id in tombs if id not in lying]
    faults += _words(world, jobs)
    faults += _counts(world, places)
    return faults


def unbalanced(survey: Survey) -> list[str]:
    """The numbers that do not add up in what readers see, in words."""
    stats = Stats.of(survey)
    names = ("ready", "scheduled", "running", "parked", "dead", *LEFT)
    counts = {name: getattr(stats, name) for name in ("enqueued", "refused", "died", "attempts", *names)}
    faults = [f"{name} is {count}" for name, count in counts.items() if count < 0]
    if stats.enqueued != sum(counts[name] for name in names):
        faults.append(f"the numbers do not add up: {counts}")
    return faults


def unfair(turned: Turned, paused: Iterable[str]) -> list[str]:
    """The jobs that a worker was given and should not have been, in words."""
    faults = []
    for claim in turned.claims:
        job = Record.read(claim.record)
        if job and 0 < job.expires_at_ms <= turned.now_ms:
            faults.append(f"{claim.id} was started at {turned.now_ms}, after {job.expires_at_ms}")
        if job and job.queue in paused:
            faults.append(f"{claim.id} was started, and its queue {job.queue} is paused")
    return faults


def places_of(world: World) -> dict[str, list[str]]:
    """Every id that lies in some place, with all the places it lies in; an entry under a tomb is none."""
    places: dict[str, list[str]] = {}
    for key, value in world.items():
        kind, _, rest = key.partition(":")
        if kind == "ready" and isinstance(value, list):
            tombs = world.get(f"tombs:{rest.rpartition(':')[0]}", {})
            lying = [id for id in value if id not in tombs]
        elif kind in ("scheduled", "running") or (kind in ("dead", "rejected", "done", "kept") and not rest):
            lying = list(value)
        else:
            continue
        if kind == "ready" and len(set(value)) < len(value):
            lying = [*lying, *(id for id, count in Counter(value).items() if count > 1)]
        for id in lying:
            places.setdefault(id, []).append(key)
    return places


def _locks(world: World, places: dict[str, list[str]]) -> list[str]:
    faults = []
    pointers = _family(world, "lock:")
    index = world.get("locks", {})
    if set(pointers) != set(index):
        faults.append(f"locks {sorted(pointers)} and their index {sorted(index)} differ")
    for key, value in pointers.items():
        mode, until, holder = value.split(" ", 2)
        if index.get(key) != (int(until) or float("inf")):
            faults.append(f"the index has {index.get(key)} for the lock {key}, its value {until}")
        place = places.get(holder, ["nowhere"])[0].partition(":")[0]
        if mode != "e" and place not in ("ready", "scheduled", "running"):
            faults.append(f"the lock {key} points to {holder}, which is in {place}")
        if mode == "e" and not int(until):
            faults.append(f"the lock {key} of until_expired has no end")
    return faults


def _running(world: World, places: dict[str, list[str]], jobs: dict[str, Record | None]) -> list[str]:
    faults = []
    known = set(world.get("workers", {})) | set(world.get("fallen", {}))
    where = {}
    for worker, held in _family(world, "running:").items():
        if worker not in known:
            faults.append(f"{worker} holds {sorted(held)} and is neither a worker nor being recovered")
        for id, entry in held.items():
            job = jobs.get(id)
            if entry[0].isupper() != bool(job and job.lock_key):
                faults.append(f"{id} runs as {entry[0]!r}, and its lock is {job and job.lock_key!r}")
            if job and job.lock_key:
                where[id] = worker
    if where != world.get("where", {}):
        faults.append(f"where says {world.get('where', {})}, and it is {where}")
    return faults


def _words(world: World, jobs: Iterable[str]) -> list[str]:
    words, left = world.get("gone", {}), world.get("left", [])
    faults = [f"there is a word about {id}, which is there" for id in words if id in jobs]
    if sorted(words) != sorted(left):
        faults.append(f"words about {sorted(words)}, and {sorted(left)} have left")
    return faults


def _counts(world: World, places: dict[str, list[str]]) -> list[str]:
    totals = {name: int(count) for name, count in world.get("totals", {}).items()}
    there = Counter(
        where[0].partition(":")[0] for where in places.values() if where[0] not in ("done", "kept")
    )
    accounted = sum(there.values()) + sum(totals.get(name, 0) for name in LEFT)
    faults = []
    if totals.get("enqueued", 0) != accounted:
        faults.append(f"{accounted} are there or have left, not as many as were enqueued: {there} {totals}")
    tombs = _family(world, "tombs:")
    for key, value in world.items():
        if key.startswith("ready:") and isinstance(value, list):
            queue = key.split(":")[1]
            count = sum(1 for where in places.values() if key in where)
            if len(value) - len(tombs.get(queue, {})) != count:
                faults.append(
                    f"{key} has {len(value)} entries, {len(tombs.get(queue, {}))} tombs, and {count} jobs"
                )
    return faults


def _family(world: World, prefix: str) -> dict:  # type: ignore[type-arg]
    return {key.removeprefix(prefix): value for key, value in world.items() if key.startswith(prefix)}
