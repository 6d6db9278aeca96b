#!lua flags=no-writes
--- The workers.
-- Answers {now_ms, {worker, lease_end_ms, running, fallen, field, value, ...} ...}: `running` is how many jobs it
-- holds, `fallen` is 1 while it is being recovered, the fields are those it registered with.
local workers_key    = KEYS[1] -- zset    worker by lease end
local fallen_key     = KEYS[2] -- zset    workers being recovered
local running_prefix = KEYS[3] -- hashes  .. worker: id -> kind and token
local worker_prefix  = KEYS[4] -- hashes  .. worker: host, pid, queues ...
local asked_ms       = tonumber(ARGV[1]) -- -1: ask the server
--- @include lib/clock.lua

local found = {clock.now_ms}
for _, key in ipairs({workers_key, fallen_key}) do
  local all = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  for i = 1, #all, 2 do
    local worker = all[i]
    -- Of a foreign type: an error, which is no number and has no items.
    local running = redis.pcall('HLEN', running_prefix .. worker)
    local entry = {worker, all[i + 1], type(running) == 'number' and running or 0, key == fallen_key and 1 or 0}
    for _, fact in ipairs(redis.pcall('HGETALL', worker_prefix .. worker)) do entry[#entry + 1] = fact end
    found[#found + 1] = entry
  end
end
return found
