#!lua flags=allow-oom
--- Give a new worker its lease, and write down who it is.
-- Answers {now_ms, queues}: all queues that jobs were ever put into. Sent again, it writes the same.
local workers_key      = KEYS[1] -- zset    worker by lease end
local queues_key       = KEYS[2] -- hash    queue -> its levels, and its pause
local worker_prefix    = KEYS[3] -- hashes  .. worker: host, pid, queues ...
local asked_ms         = tonumber(ARGV[1])  -- -1: ask the server
local worker           = ARGV[2]            -- who asks
local lease_ms         = tonumber(ARGV[3])  -- how long its lease is, from now
local facts, facts_at  = ARGV, 4            -- from here on field, value of the worker's hash
--- @include lib/clock.lua
--- @include lib/workers.lua

workers.were_here(lease_ms)
redis.call('HSET', worker_prefix .. worker, 'lease_ms', clock.text(lease_ms), 'started_ms', clock.text(clock.now_ms),
  unpack(facts, facts_at))
workers.lease(worker, lease_ms)
return {clock.now_ms, redis.call('HKEYS', queues_key)}
