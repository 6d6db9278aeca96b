"""What hypothesis chooses from: each list has the choices that matter, the usual ones more than once."""

import itertools

from hypothesis import strategies as st

from rqlite_jobs.lock import Lock
from tests.model.stage import WAYS

JOBS_MAX = 30
OWN_IDS = ("night:1", "night:2", "Nächte")
QUEUES = ("sales", "mail", "odd")

queues = st.sampled_from(QUEUES)
ways = st.sampled_from(("answered", "answered", "answered", *WAYS))
answered_ways = st.sampled_from([way for way in WAYS if "cut off" not in way])
delays_ms = st.sampled_from((0, 1, 500, 5_000, 20_000))
dues = st.one_of(
    st.none(),
    st.none(),
    st.tuples(st.just("in"), delays_ms),
    st.tuples(st.just("at"), st.sampled_from((-1_000, 0, 1, 3_000))),
)
on_conflicts = st.sampled_from(("return", "raise", "log", "reject", "reject"))
keys = st.sampled_from(("book:1", "book:2", "Bücher: 3"))
locks = st.one_of(
    st.builds(Lock, st.just("until_executed"), keys, st.sampled_from((0, 0, 0, 2_000)), on_conflicts),
    st.builds(Lock, st.just("until_expired"), keys, st.sampled_from((1, 2_000, 30_000)), on_conflicts),
)
own_ids = st.sampled_from(OWN_IDS)
expiries_ms = st.sampled_from((None, None, None, 1, 2_000, 20_000))
wishes = st.lists(
    st.tuples(queues, dues, st.none() | locks, st.integers(0, 9), st.none() | own_ids, expiries_ms),
    min_size=1,
    max_size=4,
)
own_wishes = st.lists(
    st.tuples(queues, st.none() | dues, st.none() | locks, st.just(0), own_ids, expiries_ms),
    min_size=1,
    max_size=3,
)
pauses_ms = st.sampled_from((None, None, None, 0, 1, 2_000, 2_000, 20_000))
words = st.sampled_from(
    ("done", "done", "returned", "returned", "returned", "retry", "retry", "bury", "snooze", "putoff", "back")
)
results = st.sampled_from((b"", b"7", b"[8]"))
ttls_ms = st.sampled_from((None, None, 0, 1, 1, 2_000, -1))
thens = st.sampled_from(("", "beat", "beat", "turn", "recover"))
offs_ms = st.sampled_from((-1, 0, 0, 0, 1))
mishaps = st.sampled_from(
    (
        "flush_scripts",
        "crash",
        "steal_token",
        "steal_token",
        "id_exists",
        "plant_or_mend",
        "plant_or_mend",
        "server_was_away",
    )
)
few = st.integers(0, 3)
leases_ms = st.sampled_from((5_000, 15_000))
served = st.sampled_from([order[skip:] for order in itertools.permutations(QUEUES) for skip in range(3)])
