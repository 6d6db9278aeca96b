"""Every branch of the model and every rule of the machine: each must be taken in a run of the tests."""

_PLACES = ("ready", "scheduled", "running", "dead", "done", "cancelled", "expired", "unknown")

_OPERATORS = {
    "cancel": ("ready", "scheduled"),
    "bury": ("ready", "scheduled"),
    "delete": ("ready", "scheduled", "dead", "done"),
    "revive": ("dead",),
    "retry": ("scheduled",),
}
"""Of which places a verb takes a job; of all others it refuses it."""

RULES = frozenset(
    f"rule: {name}"
    for name in (
        "claim", "come_again", "control", "enqueue", "enqueue_locked", "enqueue_own", "enqueue_plain", "expire",
        "heartbeat", "leave", "mishap", "operate", "pause", "pause_and_work", "purge", "read", "recover", "register",
        "release", "resend", "retry", "revive", "settle", "stand_in_the_way", "take_over", "turn", "wait", "work",
        *(f"operate, {verb}" for verb in _OPERATORS),
        *(f"control, {verb}" for verb in (
            "cancel", "delete", "revive", "retry", "purge", "pause", "resume", "release",
        )),
        *(f"mishap, {what}" for what in (
            "crash", "flush_scripts", "id_exists", "plant_or_mend", "server_was_away", "steal_token",
        )),
    )
)  # fmt: skip

REFUSALS = frozenset(
    {
        *(
            f"{verb}: refused, {place}"
            for verb in _OPERATORS
            for place in _PLACES
            if place not in _OPERATORS[verb]
        ),
        "enqueue: duplicate (twin)",
        "enqueue: duplicate (until_executed)",
        "enqueue: duplicate (until_expired)",
        *(
            f"enqueue: known, {where}"
            for where in ("ready", "scheduled", "running", "dead", "done", "a twin")
        ),
        "enqueue: refused, a foreign key",
        "enqueue: refused, the id exists",
        "enqueue: rejected (twin)",
        "enqueue: rejected (until_executed)",
        "enqueue: rejected (until_expired)",
        "heartbeat: lost",
        "pause: refused, nobody knows the queue",
        "purge: refused, a foreign key",
        "release: refused, its job is alive",
        "retry: refused, a foreign key",
        "retry: refused, it has not failed",
        "revive: refused, a foreign key",
        "revive: refused, another holds its lock",
        "settle: gone (asked again)",
        "settle: stale",
        "settle: stale (held anew)",
        "settle: stale (held anew, asked again)",
        "turn: unregistered",
    }
)

BRANCHES = frozenset(
    {
        *RULES,
        *REFUSALS,
        *(f"{verb}: {place}" for verb in ("cancel", "bury", "delete") for place in _OPERATORS[verb]),
        *(f"settle: returned{kept}" for kept in ("", ", kept", ", not kept")),
        *(f"settle: {word}" for word in ("done", "retry", "bury", "snooze", "putoff", "back")),
        "dead: more over the age than a call takes",
        "dead: over the age",
        "dead: over the count",
        "done: over the count",
        "enqueue: its old entry lives again",
        "enqueue: ready",
        "enqueue: scheduled",
        "expiry: an enqueue meets the holder (until_executed)",
        "expiry: an enqueue meets the holder (until_expired)",
        "expiry: an enqueue of that very id",
        "expiry: a revive meets the holder (until_executed)",
        "expiry: a revive meets the holder (until_expired)",
        "give back: a foreign key, so it is dead",
        "give back: crashed",
        "give back: crashed too often",
        "give back: more than a call takes",
        "give back: uncounted",
        "gone: comes again",
        "gone: over the count",
        "heartbeat: a claim whose answer never arrived",
        "kept: dropped by a beat",
        "kept: dropped by one that comes",
        "lane: asked again",
        "leave: a token for the others",
        "lock: let go, but another's by now",
        "lock: let go, but its time goes on",
        "lock: swept",
        "lock: time over, taken over (until_executed)",
        "lock: time over, taken over (until_expired)",
        "pass on: a pause",
        "pass on: something is due soon",
        "pause: for a while",
        "pause: for good",
        "pause: resumed",
        "pause: running",
        "pick: its time is over",
        "pick: drops a tomb",
        "pick: no more peeks",
        "pick: not into a hand, it has crashed before",
        "pick: passes a foreign key by",
        "promote: due",
        "promote: its old entry lives again",
        "promote: more due than a call takes",
        "promote: passes a foreign key by",
        "purge: all",
        "purge: nothing but tombs left",
        "purge: something left",
        "purge: tombs",
        "recover: by name, alive or not",
        "release: by force",
        "release: free",
        "release: its job has left (until_expired)",
        "release: its time was over",
        "retry: scheduled",
        "revive: behind the others",
        "revive: expires no more",
        "revive: has its lock still",
        "revive: its old entry lives again",
        "revive: takes its lock again",
        "settle: a foreign key, so it is dead",
        "take out: nothing but tombs left",
        "turn: asked again, and nothing held",
        "turn: passes a paused queue by",
        "turn: the end of a pause is due",
        "turn: asked again, and still held",
        "workers: the server was away",
    }
)
