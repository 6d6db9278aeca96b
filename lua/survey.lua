#!lua flags=no-writes
--- All numbers of a namespace, read at one instant.
-- Answers {now_ms, running, dead, rejected, done, kept, locks, workers, jobs, totals, {queue, ready, scheduled,
-- since when the next ready job waits, run_at_ms of the next scheduled one, its entry in `queues`} ...}: `jobs` is how
-- many records there are, totals a flat list of counter, value; times are 0 where there is nothing.
local jobs_key         = KEYS[1]  -- hash    id -> record
local workers_key      = KEYS[2]  -- zset    worker by lease end
local fallen_key       = KEYS[3]  -- zset    workers being recovered
local queues_key       = KEYS[4]  -- hash    queue -> its levels, and its pause
local locks_key        = KEYS[5]  -- zset    lock key by until_ms
local dead_key         = KEYS[6]  -- list    dead ids, newest on the left
local rejected_key     = KEYS[7]  -- list    refused duplicates, newest on the left
local done_key         = KEYS[8]  -- list    finished ids, newest on the left
local totals_key       = KEYS[9]  -- hash    lifetime counters
local ready_prefix     = KEYS[10] -- lists   .. queue:level: ids ready to run
local tombs_prefix     = KEYS[11] -- hashes  .. queue: ids cancelled while ready
local scheduled_prefix = KEYS[12] -- zsets   .. queue: ids by run_at_ms
local running_prefix   = KEYS[13] -- hashes  .. worker: id -> kind and token
local kept_key         = KEYS[14] -- zset    finished ids with a result_ttl, by its end
local asked_ms         = tonumber(ARGV[1])  -- -1: ask the server
local HEADS = 20                            -- entries at the head of a ready list looked at for the next job
--- @include lib/clock.lua
--- @include lib/record.lua

--- Since when the next job of a ready list waits; tombs at the head are passed over.
local function waiting_ms(queue)
  local head = redis.pcall('LRANGE', ready_prefix .. queue .. ':0', -HEADS, -1)
  if head.err then return 0 end
  for i = #head, 1, -1 do
    local header = record.read(redis.call('HGET', jobs_key, head[i]))
    -- A job that was buried by hand has a record, and a tomb.
    if header and redis.pcall('HEXISTS', tombs_prefix .. queue, head[i]) ~= 1 then
      return header.since_ms or header.enqueued_ms
    end
  end
  return 0
end

--- A length, 0 where the key has a foreign type.
local function length(command, key)
  local answer = redis.pcall(command, key)
  return type(answer) == 'number' and answer or 0
end

local running, worker_count = 0, redis.call('ZCARD', workers_key)
for _, key in ipairs({workers_key, fallen_key}) do
  for _, worker in ipairs(redis.call('ZRANGE', key, 0, -1)) do
    running = running + length('HLEN', running_prefix .. worker)
  end
end
local held = redis.call('ZCOUNT', locks_key, '(' .. clock.text(clock.now_ms), '+inf')
local found = {clock.now_ms, running, redis.call('LLEN', dead_key), redis.call('LLEN', rejected_key),
  redis.call('LLEN', done_key), redis.call('ZCARD', kept_key), held,
  worker_count, redis.call('HLEN', jobs_key), redis.call('HGETALL', totals_key)}
for _, queue in ipairs(redis.call('HKEYS', queues_key)) do
  local ready = length('LLEN', ready_prefix .. queue .. ':0') - length('HLEN', tombs_prefix .. queue)
  local first = redis.pcall('ZRANGE', scheduled_prefix .. queue, 0, 0, 'WITHSCORES')
  found[#found + 1] = {queue, ready, length('ZCARD', scheduled_prefix .. queue),
    ready > 0 and waiting_ms(queue) or 0, tonumber(first[2] or 0), redis.call('HGET', queues_key, queue)}
end
return found
