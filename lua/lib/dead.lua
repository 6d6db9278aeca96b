--- The dead: two lists of ids, newest on the left, each capped. Refused duplicates lie apart, so that they push
-- no failure out.
-- Expects: tries_key, errors_key, where_key, bodies_key, totals_key, locks_key, and lib/clock, lib/batch, lib/tries,
-- lib/lock, lib/job, lib/totals, lib/waiters.
local dead = {trim_max = 100}
local checked = {}

--- Why a job is buried whose record nobody can read.
dead.MALFORMED = {reason = 'malformed', error = 'the record of this job is not one of ours'}
--- The same for one whose queue cannot take it back.
dead.UNSOUND = {reason = 'malformed', error = 'a key of the queue of this job has a foreign type'}

--- Stop the script here, once for all its jobs, if somebody else's key of another type stands in the place of
-- `list_key`, or of what else is written for a job that is buried or ends: asked before the first write for a job,
-- which would else be left in no place at all.
function dead.check(list_key)
  if checked[list_key] then return end
  checked[list_key] = true
  redis.call('LLEN', list_key)
  for _, key in ipairs({tries_key, errors_key, where_key, bodies_key, totals_key}) do redis.call('HLEN', key) end
  redis.call('ZCARD', locks_key)
end

--- Put a job into the list `list_key`, and let go of its lock.
-- `header` is nil where it has no lock, or no readable record. `tried` is its entry in `tries`, to which
-- `why` gives the reason (a word) and the error; `why.trace` only where there is one.
function dead.bury(list_key, id, header, tried, why)
  tried.died_ms, tried.reason, tried.error = clock.now_ms, why.reason, why.error
  tries.write(id, tried)
  if why.trace then redis.call('HSET', errors_key, id, why.trace) end
  redis.call('LPUSH', list_key, id)
  redis.call('HDEL', where_key, id)
  waiters.tell({id}, 'dead', {why.error})
  if header and header.mode then lock.free({header.key, id}) end
  totals.add('died', 1)
end

--- Drop the oldest above `max_count`, then those older than `max_age_ms` (0: of any age). They count as deleted.
-- A script must end soon: at most as many a call as a script can bury, 1,000, and 100 because of their age.
function dead.trim(list_key, max_count, max_age_ms)
  local over = redis.call('LLEN', list_key) - max_count
  local old = over > 0 and redis.call('RPOP', list_key, math.min(over, batch.portion)) or {}
  while max_age_ms > 0 and #old < dead.trim_max do
    local id = redis.call('LINDEX', list_key, -1)
    if not id then break end
    if tries.read(redis.call('HGET', tries_key, id)).died_ms + max_age_ms > clock.now_ms then break end
    old[#old + 1] = redis.call('RPOP', list_key)
  end
  job.forget(old)
  totals.add('deleted', #old)
end
