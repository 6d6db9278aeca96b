#!lua
--- Store one job that has no lock and is due now: what a web request waits for. `enqueue` stores all others.
-- Answers with the server's time in ms. Refuses with RQJ_ID an id that exists without this request's nonce.
-- It is as small as it can be: what `enqueue` makes for itself before its first command costs more than all of this.
local jobs_key       = KEYS[1] -- hash    id -> record
local queues_key     = KEYS[2] -- hash    queue -> its levels, and its pause
local totals_key     = KEYS[3] -- hash    lifetime counters
local ready_prefix   = KEYS[4] -- lists   .. queue:level: ids ready to run
local wake_prefix    = KEYS[5] -- lists   .. queue: at most one wake-up token
local lane_prefix    = KEYS[6] -- strings .. lane: last nonce and answer
local history_prefix = KEYS[7] -- hashes  .. unit:number: the counters when a minute or day began
local lane_name      = ARGV[1] -- the asker's lane: one outstanding request of one producer
local nonce          = ARGV[2] -- 16 characters, this request's own
local asked_ms       = tonumber(ARGV[3]) -- -1: ask the server
local queue          = ARGV[4] -- where it goes
local level          = ARGV[5] -- its level there
local id             = ARGV[6] -- its id
local payload        = ARGV[7] -- at most 2 KiB
--- @include lib/lane.lua
--- @include lib/clock.lua

local kept = lane.recall()
if kept then return tonumber(kept) end

local now_text = clock.text(clock.now_ms)
-- The record as lib/record.lua has it.
local text = '1\0' .. queue .. '\0' .. level .. '\0' .. now_text .. '\0\0' .. payload
if redis.call('HSETNX', jobs_key, id, text) == 0 then
  return redis.error_reply('RQJ_ID a job with the id ' .. id .. ' exists already')
end
local length = redis.pcall('LPUSH', ready_prefix .. queue .. ':' .. level, id)
if type(length) ~= 'number' then
  redis.call('HDEL', jobs_key, id) -- the one write so far
  return redis.error_reply('RQJ_TYPE a key of the queue ' .. queue .. ' has a foreign type')
end
local wake_key = wake_prefix .. queue
if redis.pcall('LLEN', wake_key) == 0 then redis.call('LPUSH', wake_key, '1') end
if length == 1 then redis.call('HSETNX', queues_key, queue, '0') end -- else others wait there: it is known
-- Its lane knows when it last stored a job: in the same minute, the counters have begun it. (To ask them costs more.)
if (tonumber(lane.before) or 0) < clock.now_ms - clock.now_ms % 60000 then
  --- @include lib/totals.lua
  totals.roll()
end
redis.call('HINCRBY', totals_key, 'enqueued', 1)
lane.keep(now_text)
return clock.now_ms
