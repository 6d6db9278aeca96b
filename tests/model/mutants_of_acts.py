"""Wrong lines about ids of one's own, jobs that expire, pauses, and what operators do. Each must be noticed."""

from tests.model.mutation import Change
from tests.model.profiles import SMALL, Profile

MUTANTS: dict[str, tuple[Profile, Change]] = {
    "a known id is stored again": (
        SMALL,
        Change("elseif records[i] then", "elseif false then", ("enqueue",)),
    ),
    "an own id twice in a batch is stored twice": (
        SMALL,
        Change("if seen[plan.id] then", "if false then"),
    ),
    "what comes again gets a second entry": (
        SMALL,
        Change("plan.placed = tombs.unbury(items[at + 1], plan.id)", "plan.placed = false"),
    ),
    "what comes again and is due gets a second entry": (
        SMALL,
        Change("if graves == 0 or not tombs.unbury(queue, ids[i]) then", "if true then"),
    ),
    "the word about what comes again stays": (
        SMALL,
        Change("gone.forget(plan.id)", "local _ = plan.id"),
    ),
    "the old place of a word takes a newer word with it": (
        SMALL,
        Change("then redis.call('LREM', left_key, 1, id) end", "then local _ = id end", ("enqueue",)),
    ),
    "the mode of a lock is that of its holder": (
        SMALL,
        Change(
            "meet(plan, id, state, header, mode == 'e')",
            "meet(plan, id, state, header, header and header.mode == 'e')",
        ),
    ),
    "a revive takes the mode of a lock from its holder": (
        SMALL,
        Change("if mode ~= 'e' then other = nil end", "if other_header.mode ~= 'e' then other = nil end"),
    ),
    "a job is started after its end": (
        SMALL,
        Change("elseif header.expires_ms and header.expires_ms <= clock.now_ms then", "elseif false then"),
    ),
    "a claim ends a job a millisecond late": (
        SMALL,
        Change(
            "elseif header.expires_ms and header.expires_ms <= clock",
            "elseif header.expires_ms and header.expires_ms < clock",
        ),
    ),
    "an enqueue ends a job a millisecond late": (
        SMALL,
        Change(
            "return WAITING[state] and header.expires_ms and header.expires_ms <= clock",
            "return WAITING[state] and header.expires_ms and header.expires_ms < clock",
        ),
    ),
    "the expired count as deleted": (
        SMALL,
        Change("removal.jobs(late, late_headers, 'expired')", "removal.jobs(late, late_headers, 'deleted')"),
    ),
    "no word is left about the expired": (
        SMALL,
        Change("gone.tell(late, 'expired')", "local _ = late"),
    ),
    "an expired holder is in the way": (
        SMALL,
        Change("if expiry.is(state, header) then\n      lapsed", "if false then\n      lapsed"),
    ),
    "a lock that time alone ends goes with an expired job": (
        SMALL,
        Change("if not stays then return false end", "if true then return false end"),
    ),
    "a revived job expires again": (
        SMALL,
        Change(
            "clock.text(header.ttl_ms), '',",
            "clock.text(header.ttl_ms), header.expires_ms and clock.text(header.expires_ms) or '',",
        ),
    ),
    "a paused queue is served": (
        SMALL,
        Change("if not until_ms then\n    promote", "if true then\n    promote"),
    ),
    "a pause is over a millisecond late": (
        SMALL,
        Change(
            "until_ms > clock.now_ms) and until_ms or nil", "until_ms >= clock.now_ms) and until_ms or nil"
        ),
    ),
    "a pause for good is none": (
        SMALL,
        Change("(until_ms == 0 or until_ms > clock.now_ms)", "(until_ms > clock.now_ms)"),
    ),
    "nobody is told of the end of a pause": (
        SMALL,
        Change("elseif until_ms > 0 and (next_due_ms == 0 or", "elseif false and (next_due_ms == 0 or"),
    ),
    "the end of a pause hides what is due before": (
        SMALL,
        Change("elseif until_ms > 0 and (next_due_ms == 0 or until_ms < next_due_ms)", "elseif until_ms > 0"),
    ),
    "nobody is woken when a queue is resumed": (
        SMALL,
        Change("ready.wake(queue) -- a waiter learns", "local _ = queue -- a waiter learns"),
    ),
    "a paused queue is asked again and again": (
        SMALL,
        Change("if paused[list[i]] then left = 0 end", ""),
    ),
    "the end of a pause is not passed on": (
        SMALL,
        Change("if paused[list[i]] or redis.call('EXISTS'", "if redis.call('EXISTS'"),
    ),
    "what has not failed is retried": (
        SMALL,
        Change("if tried.attempts + tried.putoffs == 0 then return 'delayed' end", ""),
    ),
    "what was put off is not retried": (
        SMALL,
        Change("if tried.attempts + tried.putoffs == 0 then", "if tried.attempts == 0 then"),
    ),
    "a retried job stays scheduled too": (
        SMALL,
        Change("redis.call('ZREM', scheduled_prefix .. header.queue, id)\n", "", ("retry",)),
    ),
    "the lock of a living job is released": (
        SMALL,
        Change("if id and ALIVE[state] and not force then", "if false then"),
    ),
    "no force is great enough": (
        SMALL,
        Change("if id and ALIVE[state] and not force then", "if id and ALIVE[state] then"),
    ),
    "a released lock stays in the index": (
        SMALL,
        Change(
            "redis.call('DEL', lock_prefix .. key)\n  redis.call('ZREM', locks_key, key)",
            "redis.call('DEL', lock_prefix .. key)",
            ("release",),
        ),
    ),
    "what is left of a purge counts tombs": (
        SMALL,
        Change("local left = lying - under +", "local left = lying +"),
    ),
    "a purge leaves nothing but tombs": (
        SMALL,
        Change("if under > 0 and under >= lying then", "if false then"),
    ),
    "the changelog is not told of a cancel": (
        SMALL,
        Change("changelog.write(changelog_key, 'cancel', by, out)", ""),
    ),
}
