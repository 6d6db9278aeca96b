#!lua flags=allow-oom
--- Delete what waits in a queue, ready and scheduled, at most `limit` jobs a call, with their locks.
-- Answers {ready, scheduled, left}: how many of each went, and how many still wait.
local jobs_key         = KEYS[1]  -- hash    id -> record
local bodies_key       = KEYS[2]  -- hash    id -> payload over 2 KiB
local tries_key        = KEYS[3]  -- hash    id -> what went wrong so far
local errors_key       = KEYS[4]  -- hash    id -> traceback
local locks_key        = KEYS[5]  -- zset    lock key by until_ms
local totals_key       = KEYS[6]  -- hash    lifetime counters
local ready_prefix     = KEYS[7]  -- lists   .. queue:level: ids ready to run
local tombs_prefix     = KEYS[8]  -- hashes  .. queue: ids cancelled while ready
local scheduled_prefix = KEYS[9]  -- zsets   .. queue: ids by run_at_ms
local lock_prefix      = KEYS[10] -- strings .. lock key: holder
local lane_prefix      = KEYS[11] -- strings .. lane: last nonce and answer
local history_prefix   = KEYS[12] -- hashes  .. unit:number: the counters when a minute or day began
local changelog_key    = KEYS[13] -- stream  what operators did, and workers to dead ones
local waiters_key      = KEYS[14] -- hash    id -> answer lists of those who wait for its end
local answers_prefix   = KEYS[15] -- lists   .. process: ends of jobs that it waits for
local lane_name        = ARGV[1]            -- the asker's lane: one outstanding request of one producer
local nonce            = ARGV[2]            -- 16 characters, this request's own
local asked_ms         = tonumber(ARGV[3])  -- -1: ask the server
local lock_safety_ms   = tonumber(ARGV[4])  -- how long past its due time the net under a lock reaches
local queue            = ARGV[5]            -- which one
local limit            = tonumber(ARGV[6])  -- at most 1,000
local changelog_max    = ARGV[7]            -- how many lines of the changelog are kept
local by               = ARGV[8]            -- who asks, for those who wonder
--- @include lib/lane.lua
--- @include lib/intact.lua
--- @include lib/clock.lua
--- @include lib/batch.lua
--- @include lib/record.lua
--- @include lib/lock.lua
--- @include lib/totals.lua
--- @include lib/job.lua
--- @include lib/waiters.lua
--- @include lib/removal.lua
--- @include lib/changelog.lua

local kept = lane.recall()
if kept then return cjson.decode(kept) end
intact.check({jobs_key, bodies_key, tries_key, errors_key, totals_key}, {}, {locks_key})

local list_key, tombs_key = ready_prefix .. queue .. ':0', tombs_prefix .. queue
local scheduled_key = scheduled_prefix .. queue
local waiting = redis.pcall('LLEN', list_key)
local due = redis.pcall('ZCARD', scheduled_key)
local tomb_count = redis.pcall('HLEN', tombs_key)
if type(waiting) ~= 'number' or type(due) ~= 'number' or type(tomb_count) ~= 'number' then
  return redis.error_reply('RQJ_TYPE a key of the queue ' .. queue .. ' has a foreign type')
end

local purged = {}

--- Delete jobs that were taken out of their place; answers how many there were.
local function remove(ids)
  local records, headers, out = batch.fields(jobs_key, ids), {}, {}
  for i = 1, #ids do
    if records[i] then
      out[#out + 1] = ids[i]
      headers[#out] = record.read(records[i]) or false
      purged[#purged + 1] = ids[i]
    end
  end
  removal.jobs(out, headers, 'deleted')
  return #out
end

local ready_count, scheduled_count = 0, 0
if waiting > 0 then
  local ids = redis.call('RPOP', list_key, math.min(limit, waiting))
  local tombs = tomb_count > 0 and batch.fields(tombs_key, ids) or {}
  local alive, dropped = {}, {}
  for i = 1, #ids do
    local to = tombs[i] and dropped or alive
    to[#to + 1] = ids[i]
  end
  if #dropped > 0 then batch.send('HDEL', tombs_key, dropped) end
  ready_count = remove(alive)
  limit = limit - #ids
end
if limit > 0 and due > 0 then
  local ids = redis.call('ZRANGE', scheduled_key, 0, limit - 1)
  batch.send('ZREM', scheduled_key, ids)
  scheduled_count = remove(ids)
end
local lying, under = redis.call('LLEN', list_key), redis.call('HLEN', tombs_key)
if under > 0 and under >= lying then redis.call('DEL', list_key, tombs_key) end -- nothing but tombs is left
local left = lying - under + redis.call('ZCARD', scheduled_key)
local answer = {ready_count, scheduled_count, left}
changelog.write(changelog_key, 'purge', by, purged, {'queue', queue})
lane.keep(cjson.encode(answer))
return answer
