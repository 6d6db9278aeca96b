#!lua flags=allow-oom
--- Wait for the end of a job: one that has ended is answered at once, for one that has not the list of the asker is
-- noted, and gets its end.
-- Answers {word, text}: `waiting`; `done` and the result ('' for None); `lost`, done, and its result is not kept;
-- `dead` and the error; the word of one that is gone; or `unknown`.
local jobs_key         = KEYS[1]  -- hash    id -> record
local tries_key        = KEYS[2]  -- hash    id -> what went wrong so far
local where_key        = KEYS[3]  -- hash    id -> worker, of running jobs with a lock
local ends_key         = KEYS[4]  -- hash    id -> how a finished job ended
local gone_key         = KEYS[5]  -- hash    id -> word about a job that is gone
local workers_key      = KEYS[6]  -- zset    worker by lease end
local fallen_key       = KEYS[7]  -- zset    workers being recovered
local kept_key         = KEYS[8]  -- zset    finished ids with a result_ttl, by its end
local results_key      = KEYS[9]  -- hash    id -> result
local waiters_key      = KEYS[10] -- hash    id -> answer lists of those who wait for its end
local scheduled_prefix = KEYS[11] -- zsets   .. queue: ids by run_at_ms
local running_prefix   = KEYS[12] -- hashes  .. worker: id -> kind and token
local answers_prefix   = KEYS[13] -- lists   .. process: ends of jobs that it waits for
local asked_ms         = tonumber(ARGV[1])  -- -1: ask the server
local process          = ARGV[2]            -- the asker's answer list
local ticket           = ARGV[3]            -- a number that grows with each caller of that process
local id               = ARGV[4]            -- which job
--- @include lib/clock.lua
--- @include lib/batch.lua
--- @include lib/record.lua
--- @include lib/tries.lua
--- @include lib/place.lua
--- @include lib/waiters.lua

local state = place.of(id, redis.call('HGET', jobs_key, id))
if state == 'done' then
  local over_ms = tonumber(redis.call('ZSCORE', kept_key, id) or 'inf')
  if over_ms and over_ms <= clock.now_ms then return {'lost', ''} end
  if string.sub(redis.call('HGET', ends_key, id) or '', -1) == '-' then return {'lost', ''} end
  return {'done', redis.call('HGET', results_key, id) or ''}
elseif state == 'dead' then
  return {'dead', tries.read(redis.call('HGET', tries_key, id)).error}
elseif state == 'ready' or state == 'scheduled' or state == 'running' then
  waiters.add(id, process, ticket)
  return {'waiting', ''}
end
return {state, ''}
