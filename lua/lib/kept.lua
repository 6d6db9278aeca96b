--- Finished jobs whose results are kept for a time of their own, however many others finish meanwhile.
-- Expects: kept_key, ends_key, results_key, and lib/clock, lib/batch, lib/ends.
local kept = {}

--- Stop the script here if somebody else's key of another type stands in their place; see ends.check.
function kept.check()
  redis.call('ZCARD', kept_key)
end

--- Keep a finished job for `ttl_ms` (-1: until it is deleted); `ended` is its entry of `ends`, an empty result is None.
function kept.add(id, ended, result, ttl_ms)
  redis.call('HSET', ends_key, id, ended)
  redis.call('ZADD', kept_key, ttl_ms < 0 and '+inf' or clock.text(clock.after(ttl_ms)), id)
  if result ~= '' then redis.call('HSET', results_key, id, result) end
end

--- Forget at most `limit` of those whose time is over.
function kept.drop(limit)
  local over = redis.pcall('ZRANGEBYSCORE', kept_key, '-inf', clock.text(clock.now_ms), 'LIMIT', 0, limit)
  if over.err or #over == 0 then return end
  ends.check()
  batch.send('ZREM', kept_key, over)
  ends.forget(over)
end
