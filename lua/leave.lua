#!lua flags=allow-oom
--- A worker goes: what it still holds goes back to the heads of its queues, uncounted, and its lease ends.
-- Answers {handed back, left}: call again while `left` is not 0. A waiter that stops may have taken a wake-up token
-- with it, so one is left in each of its queues that has something to do.
local jobs_key         = KEYS[1]  -- hash    id -> record
local bodies_key       = KEYS[2]  -- hash    id -> payload over 2 KiB
local tries_key        = KEYS[3]  -- hash    id -> what went wrong so far
local errors_key       = KEYS[4]  -- hash    id -> traceback
local where_key        = KEYS[5]  -- hash    id -> worker, of running jobs with a lock
local workers_key      = KEYS[6]  -- zset    worker by lease end
local fallen_key       = KEYS[7]  -- zset    workers being recovered
local locks_key        = KEYS[8]  -- zset    lock key by until_ms
local dead_key         = KEYS[9]  -- list    dead ids, newest on the left
local totals_key       = KEYS[10] -- hash    lifetime counters
local ready_prefix     = KEYS[11] -- lists   .. queue:level: ids ready to run
local scheduled_prefix = KEYS[12] -- zsets   .. queue: ids by run_at_ms
local running_prefix   = KEYS[13] -- hashes  .. worker: id -> kind and token
local worker_prefix    = KEYS[14] -- hashes  .. worker: host, pid, queues ...
local wake_prefix      = KEYS[15] -- lists   .. queue: at most one wake-up token
local lock_prefix      = KEYS[16] -- strings .. lock key: holder
local history_prefix   = KEYS[17] -- hashes  .. unit:number: the counters when a minute or day began
local waiters_key      = KEYS[18] -- hash    id -> answer lists of those who wait for its end
local answers_prefix   = KEYS[19] -- lists   .. process: ends of jobs that it waits for
local progress_key     = KEYS[20] -- hash    id -> how far it is, while it runs
local asked_ms         = tonumber(ARGV[1])  -- -1: ask the server
local worker           = ARGV[2]            -- who asks
local max_crashes      = tonumber(ARGV[3])  -- after so many a job is buried
local dead_max         = tonumber(ARGV[4])  -- how many dead jobs are kept
local dead_age_ms      = tonumber(ARGV[5])  -- how long they are kept; 0: however old
local lock_safety_ms   = tonumber(ARGV[6])  -- how long past its due time the net under a lock reaches
local queues, queues_at = ARGV, 7           -- from here on the queues it served
--- @include lib/clock.lua
--- @include lib/batch.lua
--- @include lib/record.lua
--- @include lib/tries.lua
--- @include lib/lease.lua
--- @include lib/lock.lua
--- @include lib/ready.lua
--- @include lib/totals.lua
--- @include lib/job.lua
--- @include lib/waiters.lua
--- @include lib/progress.lua
--- @include lib/dead.lua
--- @include lib/recovery.lua

local count = recovery.worker(worker, recovery.jobs_max, false)
local left = redis.call('HLEN', running_prefix .. worker)
-- Not before: the rest of a worker without a lease is recovered by whoever beats next, as crashes.
if left == 0 then redis.call('ZREM', workers_key, worker) end
for i = queues_at, #queues do
  local queue = queues[i]
  local waiting = redis.pcall('LLEN', ready_prefix .. queue .. ':0')
  if waiting ~= 0 or redis.call('EXISTS', scheduled_prefix .. queue) == 1 then ready.wake(queue) end
end
return {count, left}
