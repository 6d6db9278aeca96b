"""How a state of the model lies in Redis: what `world()` must read, key by key."""

import json
import re
from typing import Any

from rqlite_jobs.answers import Enqueued, Pause
from rqlite_jobs.lock import MODES
from tests.model.facts import Job, Trouble
from tests.model.state import State
from tests.world import World

FOREIGN = "not ours"


def picture(state: State) -> World:
    """The whole namespace, but for the lanes (see `lanes`): every key that is not empty."""
    jobs = state.jobs
    running: dict[str, dict[str, str]] = {}
    ends, where, scheduled = {}, {}, {}
    for job in jobs.values():
        if job.state == "running":
            running.setdefault(f"running:{job.worker}", {})[job.id] = _kind(job) + job.token
            if job.lock:
                where[job.id] = job.worker
        elif job.state == "scheduled":
            scheduled.setdefault(f"scheduled:{job.queue}", {})[job.id] = job.due_ms
        elif job.state == "done" and job.ended:
            ends[job.id] = f"{job.ended[0]} {job.ended[1]}" + " -" * job.forgets
    keys: World = {
        "meta": {"format": "1", "partitions": "1"},
        "jobs": {id: record(job).decode() for id, job in jobs.items()},
        "bodies": {id: job.payload.decode() for id, job in jobs.items() if len(job.payload) > 2048},
        "tries": {id: tries(job.trouble) for id, job in jobs.items() if job.trouble},
        "errors": {id: job.traceback for id, job in jobs.items() if job.traceback is not None},
        "where": where,
        "ends": ends,
        "kept": state.kept,
        "results": {id: job.result for id, job in jobs.items() if job.result},
        "gone": state.gone,
        "left": state.left,
        "done": state.done,
        "dead": state.dead,
        "rejected": state.rejected,
        "workers": state.workers,
        "fallen": state.fallen,
        "queues": {queue: _queue(state.pauses.get(queue)) for queue in state.queues},
        "locks": {key: lock.until_ms or float("inf") for key, lock in state.locks.items()},
        "totals": {name: str(count) for name, count in state.totals.items() if count},
        "fence": str(state.fence) if state.fence else "",
        **running,
        **scheduled,
        **{f"ready:{queue}:0": line[::-1] for queue, line in state.ready.items()},
        **{f"ready:{queue}:0": FOREIGN for queue in state.foreign},
        **{f"tombs:{queue}": dict.fromkeys(ids, "1") for queue, ids in state.tombs.items()},
        **{f"wake:{queue}": ["1"] for queue in state.tokens},
        **{f"worker:{worker}": facts for worker, facts in state.facts.items()},
    }
    for key, lock in state.locks.items():
        keys[f"lock:{key}"] = f"{MODES[lock.mode]} {lock.until_ms} {lock.holder}"
    return {key: value for key, value in keys.items() if value}


def record(job: Job) -> bytes:
    """The record of a job; see `lua/lib/record.lua`."""
    tags = ""
    if job.lock:
        tags = f"m{MODES[job.lock.mode]}\0k{job.lock.key}\0"
        if job.lock.ttl_ms:
            tags += f"t{job.lock.ttl_ms}\0"
    if job.expires_ms:
        tags += f"x{job.expires_ms}\0"
    if job.since_ms:
        tags += f"d{job.since_ms}\0"
    head = f"1\0{job.queue}\0{0}\0{job.enqueued_ms}\0{tags}\0"
    return head.encode() + (job.payload if len(job.payload) <= 2048 else b"")


def tries(trouble: Trouble) -> str:
    """An entry of `tries`; see `lua/lib/tries.lua`."""
    numbers = trouble.attempts, trouble.crashes, trouble.putoffs, trouble.died_ms, trouble.started_ms
    return "\0".join((*map(str, numbers), trouble.reason, trouble.error))


def lanes(state: State) -> dict[str, Any]:
    """What each lane must remember: its nonce and the answer, in the form of `read_lane`."""
    return {f"lane:{lane}": (nonce, _kept(answer)) for lane, (nonce, answer) in state.lanes.items()}


def read_lane(text: str, nonce: str) -> tuple[str, Any]:
    """What a lane's value says: a nonce as long as `nonce`, and the answer as plain data."""
    nonce, rest = text[: len(nonce)], text[len(nonce) :]
    found = re.match(r"(\d*)(.*)$", rest, re.DOTALL)
    assert found
    if found[2].isalpha():
        return nonce, found[2]  # of `pause`: a word
    answers = json.loads(found[2]) if found[2] else "as asked"
    if found[1]:
        return nonce, (int(found[1]), answers)
    return nonce, answers or []


def _kept(answer: Any) -> Any:
    if isinstance(answer, str):
        return answer
    if isinstance(answer, tuple):
        return list(answer)
    if answer and isinstance(answer[0], Enqueued):
        return answer[0].now_ms, [[one.outcome, one.id, one.state, one.holder_id] for one in answer]
    return [list(one) if isinstance(one, tuple) else one for one in answer]


def same_lane(kept: Any, said: Any) -> bool:
    """Do a lane's value and the model's agree? Where all went as asked the script keeps nothing but the time."""
    if kept == said:
        return True
    nonce, answer = said
    return (
        kept == (nonce, (answer[0], "as asked"))
        and all(one[0] == "enqueued" for one in answer[1])
    )  # fmt: skip


def _queue(pause: Pause | None) -> str:
    return f"0 {pause.until_ms} {pause.since_ms} {pause.by}" if pause else "0"


def _kind(job: Job) -> str:
    kind = "s" if job.to_start else "h"
    return kind.upper() if job.lock else kind
