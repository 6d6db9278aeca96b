#!lua flags=allow-oom
--- Give the jobs of dead workers back to the heads of their queues: of the workers named, whether their lease is
-- over or not, else of all whose lease is over. At most 500 jobs a call.
-- Answers {recovered, workers still to be recovered}; call again while the second is not 0.
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
local changelog_key    = KEYS[18] -- stream  what operators did, and workers to dead ones
local waiters_key      = KEYS[19] -- hash    id -> answer lists of those who wait for its end
local answers_prefix   = KEYS[20] -- lists   .. process: ends of jobs that it waits for
local progress_key     = KEYS[21] -- hash    id -> how far it is, while it runs
local asked_ms         = tonumber(ARGV[1])  -- -1: ask the server
local max_crashes      = tonumber(ARGV[2])  -- after so many a job is buried
local dead_max         = tonumber(ARGV[3])  -- how many dead jobs are kept
local dead_age_ms      = tonumber(ARGV[4])  -- how long they are kept; 0: however old
local lock_safety_ms   = tonumber(ARGV[5])  -- how long past its due time the net under a lock reaches
local changelog_max    = ARGV[6]            -- how many lines of the changelog are kept
local by               = ARGV[7]            -- who asks, for those who wonder
local named, named_at  = ARGV, 8            -- from here on the workers; none: all whose lease is over
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
--- @include lib/changelog.lua
--- @include lib/recovered.lua

for i = named_at, #named do
  if redis.call('ZSCORE', workers_key, named[i]) then recovery.fell(named[i]) end
end
local count = 0
if #named < named_at then
  count = recovery.sweep()
else
  for i = named_at, #named do
    count = count + recovery.worker(named[i], recovery.jobs_max - count, true)
  end
end
recovered.tell(by)
return {count, redis.call('ZCARD', fallen_key)}
