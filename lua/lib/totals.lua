--- Lifetime counters; they only grow.
--   enqueued refused done died failed crashed cancelled deleted expired
-- Expects: totals_key.
local totals = {}

--- Add `count` to a counter.
function totals.add(counter, count)
  if count > 0 then redis.call('HINCRBY', totals_key, counter, count) end
end
