#!lua flags=allow-oom
--- Say that a worker lives, and look after those that do not.
-- Answers {word, now_ms, next_end_ms, recovered, queues}:
--   word         'ok', or 'lost': its lease was taken away; it drops all it holds and registers anew
--   next_end_ms  when the earliest lease of another worker ends, 0 if there is no other
--   recovered    how many jobs went back to their queues
--   queues       all queues that jobs were ever put into
-- The jobs that the worker holds are named; one that it does not name and that was claimed longer than a lease
-- ago goes back uncounted. Old dead jobs, and locks and results whose time is over, are swept on the way.
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
local queues_key       = KEYS[17] -- hash    queue -> its levels, and its pause
local rejected_key     = KEYS[18] -- list    refused duplicates, newest on the left
local history_prefix   = KEYS[19] -- hashes  .. unit:number: the counters when a minute or day began
local changelog_key    = KEYS[20] -- stream  what operators did, and workers to dead ones
local waiters_key      = KEYS[21] -- hash    id -> answer lists of those who wait for its end
local answers_prefix   = KEYS[22] -- lists   .. process: ends of jobs that it waits for
local kept_key         = KEYS[23] -- zset    finished ids with a result_ttl, by its end
local ends_key         = KEYS[24] -- hash    id -> how a finished job ended
local results_key      = KEYS[25] -- hash    id -> result
local progress_key     = KEYS[26] -- hash    id -> how far it is, while it runs
local asked_ms         = tonumber(ARGV[1])  -- -1: ask the server
local worker           = ARGV[2]            -- who asks
local lease_ms         = tonumber(ARGV[3])  -- how long its lease is, from now
local max_crashes      = tonumber(ARGV[4])  -- after so many a job is buried
local dead_max         = tonumber(ARGV[5])  -- how many dead jobs are kept
local dead_age_ms      = tonumber(ARGV[6])  -- how long they are kept; 0: however old
local rejected_max     = tonumber(ARGV[7])  -- how many refused duplicates are kept
local lock_safety_ms   = tonumber(ARGV[8])  -- how long past its due time the net under a lock reaches
local changelog_max    = ARGV[9]            -- how many lines of the changelog are kept
local held, held_at    = ARGV, 10           -- from here on the ids it holds
local SWEEP_MAX = 100                       -- locks, and results, dropped a call
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
--- @include lib/ends.lua
--- @include lib/kept.lua
--- @include lib/dead.lua
--- @include lib/recovery.lua
--- @include lib/workers.lua
--- @include lib/changelog.lua
--- @include lib/recovered.lua

if not redis.call('ZSCORE', workers_key, worker) then return {'lost', clock.now_ms, 0, 0, {}} end
local named = {}
for i = held_at, #held do named[held[i]] = true end

local were_here = workers.were_here(lease_ms)
workers.lease(worker, lease_ms)
recovery.unheard(worker, named, lease_ms)
local count = were_here and recovery.sweep() or 0
recovered.tell(worker)
dead.trim(dead_key, dead_max, dead_age_ms)
dead.trim(rejected_key, rejected_max, dead_age_ms)
lock.sweep(SWEEP_MAX)
kept.drop(SWEEP_MAX)
return {'ok', clock.now_ms, workers.next_end_ms(worker), count, redis.call('HKEYS', queues_key)}
