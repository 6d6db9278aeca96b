#!lua flags=no-writes
--- A page of the jobs in one place.
-- Answers {more, snapshot ...}: `more` is 1 if there is something behind this page. Snapshots have no body over
-- 2 KiB and no traceback. At most `limit` ids are looked at, so a page of a ready list with many tombs may be short.
--   ready, scheduled   of `queue`, the next to run first
--   running            of all workers
--   dead, rejected, done   the newest first
local jobs_key         = KEYS[1]  -- hash    id -> record
local bodies_key       = KEYS[2]  -- hash    id -> payload over 2 KiB
local tries_key        = KEYS[3]  -- hash    id -> what went wrong so far
local errors_key       = KEYS[4]  -- hash    id -> traceback
local where_key        = KEYS[5]  -- hash    id -> worker, of running jobs with a lock
local ends_key         = KEYS[6]  -- hash    id -> how a finished job ended
local gone_key         = KEYS[7]  -- hash    id -> word about a job that is gone
local workers_key      = KEYS[8]  -- zset    worker by lease end
local fallen_key       = KEYS[9]  -- zset    workers being recovered
local scheduled_prefix = KEYS[10] -- zsets   .. queue: ids by run_at_ms
local running_prefix   = KEYS[11] -- hashes  .. worker: id -> kind and token
local ready_prefix     = KEYS[12] -- lists   .. queue:level: ids ready to run
local tombs_prefix     = KEYS[13] -- hashes  .. queue: ids cancelled while ready
local dead_key         = KEYS[14] -- list    dead ids, newest on the left
local rejected_key     = KEYS[15] -- list    refused duplicates, newest on the left
local done_key         = KEYS[16] -- list    finished ids, newest on the left
local state            = ARGV[1]            -- the place: see above
local queue            = ARGV[2]            -- '' where the state has none
local offset           = tonumber(ARGV[3])  -- how many are passed over
local limit            = tonumber(ARGV[4])  -- at most 1,000
--- @include lib/record.lua
--- @include lib/tries.lua
--- @include lib/place.lua
--- @include lib/snapshot.lua

--- The ids of the running, worker by worker, up to the end of this page and one more.
local function running()
  local ids = {}
  for _, key in ipairs({workers_key, fallen_key}) do
    for _, worker in ipairs(redis.call('ZRANGE', key, 0, -1)) do
      for _, id in ipairs(redis.call('HKEYS', running_prefix .. worker)) do
        ids[#ids + 1] = id
        if #ids > offset + limit then return ids end
      end
    end
  end
  return ids
end

local LISTS = {dead = dead_key, rejected = rejected_key, done = done_key}
local ids = {}
if LISTS[state] then
  ids = redis.call('LRANGE', LISTS[state], offset, offset + limit)
elseif state == 'scheduled' then
  ids = redis.call('ZRANGE', scheduled_prefix .. queue, offset, offset + limit)
elseif state == 'ready' then
  local part = redis.call('LRANGE', ready_prefix .. queue .. ':0', -offset - limit - 1, -offset - 1)
  for i = #part, 1, -1 do ids[#ids + 1] = part[i] end
elseif state == 'running' then
  local all = running()
  for i = offset + 1, #all do ids[#ids + 1] = all[i] end
else
  return redis.error_reply('RQJ_STATE no jobs are listed by the state ' .. state)
end

local more = #ids > limit
local found = {more and 1 or 0}
for i = 1, math.min(#ids, limit) do
  if state ~= 'ready' or redis.call('HEXISTS', tombs_prefix .. queue, ids[i]) == 0 then
    found[#found + 1] = snapshot.of(ids[i], false)
  end
end
return found
