--- Are the keys of this namespace ours? Asked before the first write by scripts that go through many jobs: one of a
-- foreign type, met half-way, would leave jobs in no place, or uncounted.
-- Expects: nothing.
local intact = {}

--- Stop the script here if somebody else's key of another type stands in the place of one of these.
function intact.check(hashes, lists, sorted_sets)
  for _, key in ipairs(hashes) do redis.call('HLEN', key) end
  for _, key in ipairs(lists) do redis.call('LLEN', key) end
  for _, key in ipairs(sorted_sets) do redis.call('ZCARD', key) end
end
