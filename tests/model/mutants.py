"""Wrong lines about the life of a job: locks, queues, turns, crashes, bounds. Each must be noticed."""

from tests.model.mutation import Change
from tests.model.profiles import NOTHING_KEPT, SMALL, TIGHT, Profile

MUTANTS: dict[str, tuple[Profile, Change]] = {
    "a new minute is not begun": (SMALL, Change("if not totals.rolled then totals.roll() end", "")),
    "a new minute begins with what it has counted": (
        SMALL,
        Change(
            "  if not totals.rolled then totals.roll() end\n  redis.call('HINCRBY', totals_key, counter, count)",
            "  redis.call('HINCRBY', totals_key, counter, count)\n  if not totals.rolled then totals.roll() end",
        ),
    ),
    "a job that comes back waits since its enqueue": (
        SMALL,
        Change("redis.call('HSET', jobs_key, id, record.since(text, header, clock.text(due_ms)))", ""),
    ),
    "the lock of a finished job is not let go": (
        SMALL,
        Change("lock.free(held)\n  done.add", "done.add"),
    ),
    "a lock is let go though it is another's": (
        SMALL,
        Change("elseif holder == id and (mode", "elseif (mode"),
    ),
    "until_expired is let go with its job": (
        SMALL,
        Change("(mode ~= 'e' or until_ms <= clock.now_ms)", "true"),
    ),
    "the time of a lock is never over": (
        SMALL,
        Change("if until_ms > 0 and until_ms <= clock.now_ms then return nil end", ""),
    ),
    "twins in a batch do not see each other": (
        SMALL,
        Change(
            "local other, id, state, header, mode, former = taken[key],",
            "local other, id, state, header, mode, former = nil,",
        ),
    ),
    "the token is not checked": (
        SMALL,
        Change("return entry and string.sub(entry, 2) == token", "return entry", ("turn",)),
    ),
    "a refused enqueue has counted already": (
        SMALL,
        Change(
            "return redis.error_reply('RQJ_ID a job with the id ' .. ids[i]",
            "totals.add('enqueued', 1) return redis.error_reply('RQJ_ID a job with the id ' .. ids[i]",
            ("enqueue",),
        ),
    ),
    "what is given back goes to the end of its queue": (
        SMALL,
        Change("redis.call('RPUSH', ready_prefix", "redis.call('LPUSH', ready_prefix"),
    ),
    "new jobs go to the head of their queue": (
        SMALL,
        Change("batch.send('LPUSH', ready_prefix", "batch.send('RPUSH', ready_prefix"),
    ),
    "a cancelled job gets no tomb": (
        SMALL,
        Change("redis.call('HSET', tombs, id, '1')", "", ("cancel",)),
    ),
    "a revived job stays under its tomb": (
        TIGHT,
        Change("return redis.pcall('HDEL', tombs_prefix .. queue, id) == 1", "return false", ("revive",)),
    ),
    "revive does not ask for the lock": (
        SMALL,
        Change("if other and other ~= id then return 'duplicate', other end", "", ("revive",)),
    ),
    "a lane does not keep its answer": (
        SMALL,
        Change("redis.call('SET', lane_prefix .. lane_name, nonce .. text, 'EX', lane.keep_s)", ""),
    ),
    "a resent turn is taken for a new one": (
        SMALL,
        Change("local again            = ARGV[2] == '1'", "local again            = false"),
    ),
    "a crash is not counted": (
        SMALL,
        Change("= tried.attempts + 1, tried.crashes + 1", "= tried.attempts + 1, tried.crashes"),
    ),
    "one crash too many": (
        NOTHING_KEPT,
        Change("tried.crashes >= max_crashes", "tried.crashes > max_crashes"),
    ),
    "a job in the hand crashes too": (
        SMALL,
        Change("crashed and lease.to_start(one.entry)", "crashed"),
    ),
    "what has crashed is taken into a hand": (
        TIGHT,
        Change("entry.crashes > 0 and claim_count >= start_max", "false"),
    ),
    "the dead are not capped": (
        SMALL,
        Change("local over = redis.call('LLEN', list_key) - max_count", "local over = 0"),
    ),
    "the dead die a millisecond late": (
        TIGHT,
        Change("+ max_age_ms > clock.now_ms then break", "+ max_age_ms >= clock.now_ms then break"),
    ),
    "the finished are not capped": (
        NOTHING_KEPT,
        Change("local over = redis.call('LLEN', done_key) - done_max", "local over = 0"),
    ),
    "a worker without a lease is given jobs": (
        SMALL,
        Change(
            "if not redis.call('ZSCORE', workers_key, worker) then\n  return {'unreg",
            "if false then\n  return {'unreg",
        ),
    ),
    "the last claimed is first again": (
        SMALL,
        Change("return a.fence > b.fence", "return a.fence < b.fence"),
    ),
    "due a millisecond late": (
        SMALL,
        Change("if first_ms <= clock.now_ms and", "if first_ms < clock.now_ms and"),
    ),
    "the fence does not grow": (
        SMALL,
        Change("math.max(fence + 1, clock.now_us) - 1", "math.max(fence, clock.now_us) - 1"),
    ),
    "a server that was away is everybody's death": (
        SMALL,
        Change(
            "'(' .. clock.text(clock.now_ms), '+inf') > 0 then return true",
            "'-inf', '+inf') > 0 then return true",
        ),
    ),
    "a lease ends a millisecond late": (
        SMALL,
        Change("'ZRANGEBYSCORE', workers_key, '-inf', ", "'ZRANGEBYSCORE', workers_key, '-inf', '(' .. "),
    ),
    "what a beat names is given back": (
        SMALL,
        Change("if not named[one.id] and one", "if one"),
    ),
    "the place of a recovered job stays": (
        SMALL,
        Change(
            "redis.call('HDEL', running_key, id)\n  redis.call('HDEL', where_key, id)",
            "redis.call('HDEL', running_key, id)",
            ("recover",),
        ),
    ),
    "nobody is woken": (
        SMALL,
        Change("if redis.pcall('LLEN', key) == 0 then redis.call('LPUSH', key, '1') end", "local _ = key"),
    ),
    "what is kept is not dropped when its time is over": (
        SMALL,
        Change("if over.err or #over == 0 then return end", "if true then return end", ("turn",)),
    ),
    "a beat drops nothing that is kept": (
        SMALL,
        Change("kept.drop(SWEEP_MAX)", ""),
    ),
    "the result of a forgotten job stays": (
        SMALL,
        Change("if redis.call('EXISTS', results_key) == 1 then batch", "if false then batch"),
    ),
    "what is kept lies among the last finished ones too": (
        SMALL,
        Change(
            "kept.add(id, text, result, tonumber(ttl_ms))",
            "ids[#ids + 1], ended[#ended + 1], ended[#ended + 2] = id, id, text",
        ),
    ),
    "a job done twice counts twice": (
        SMALL,
        Change("settled[id] = true", ""),
    ),
}
