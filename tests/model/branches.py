"""Every branch of the model and every rule of the machine: each must be taken in a run of the tests."""

_PLACES = ("ready", "scheduled", "running", "dead", "done", "cancelled", "unknown")

_OPERATORS = {
    "cancel": ("ready", "scheduled"),
    "bury": ("ready", "scheduled"),
    "delete": ("ready", "scheduled", "dead", "done"),
    "revive": ("dead",),
}
"""Of which places a verb takes a job; of all others it refuses it."""

RULES = frozenset(
    f"rule: {name}"
    for name in (
        "claim", "enqueue", "enqueue_locked", "enqueue_plain", "heartbeat", "leave", "mishap", "operate", "purge",
        "read", "recover", "register", "resend", "revive", "settle", "turn", "wait", "work",
        *(f"operate, {verb}" for verb in _OPERATORS),
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
        "enqueue: refused, a foreign key",
        "enqueue: refused, the id exists",
        "enqueue: rejected (twin)",
        "enqueue: rejected (until_executed)",
        "enqueue: rejected (until_expired)",
        "heartbeat: lost",
        "purge: refused, a foreign key",
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
        *(f"settle: {word}" for word in ("done", "retry", "bury", "snooze", "putoff", "back")),
        "dead: more over the age than a call takes",
        "dead: over the age",
        "dead: over the count",
        "done: over the count",
        "enqueue: ready",
        "enqueue: scheduled",
        "give back: a foreign key, so it is dead",
        "give back: crashed",
        "give back: crashed too often",
        "give back: more than a call takes",
        "give back: uncounted",
        "gone: over the count",
        "heartbeat: a claim whose answer never arrived",
        "lane: asked again",
        "leave: a token for the others",
        "lock: let go, but another's by now",
        "lock: let go, but its time goes on",
        "lock: swept",
        "lock: time over, taken over (until_executed)",
        "lock: time over, taken over (until_expired)",
        "pass on: something is due soon",
        "pick: drops a tomb",
        "pick: no more peeks",
        "pick: not into a hand, it has crashed before",
        "pick: passes a foreign key by",
        "promote: due",
        "promote: more due than a call takes",
        "promote: passes a foreign key by",
        "purge: all",
        "purge: nothing but tombs left",
        "purge: something left",
        "purge: tombs",
        "recover: by name, alive or not",
        "revive: behind the others",
        "revive: has its lock still",
        "revive: its old entry lives again",
        "revive: takes its lock again",
        "settle: a foreign key, so it is dead",
        "take out: nothing but tombs left",
        "turn: asked again, and nothing held",
        "turn: asked again, and still held",
        "workers: the server was away",
    }
)
