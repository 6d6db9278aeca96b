#!lua flags=no-writes
--- A page of the jobs in one place.
-- Answers {position, {id, state, ... position behind it} ...}: each entry is a snapshot, without a body over 2 KiB and
-- without traceback, and its position, from which a page goes on behind it; the first is that behind all that was
-- looked at, '' at the end. At most `limit` ids are looked at, so a page of a ready list with many tombs may be short.
--   ready, scheduled   of `queue`, the next to run first
--   running            of all workers, by id
--   dead, rejected, done   the newest first
--   kept               finished ones with a result_ttl, by its end
-- A position is '<left> <where>'. `left` is how many are looked at at most from there on: so a last page comes even
-- where new ones come faster than pages are read. Where they may come in between it begins with room for them.
-- `where` depends on the place:
--   ready              how many are passed, and the id of the last of them: found again although others were claimed
--   scheduled, kept    score and id
--   running            id
--   dead, rejected, done   nothing: `left` is the place, counted from the oldest, to which nothing is added
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
local progress_key     = KEYS[17] -- hash    id -> how far it is, while it runs
local kept_key         = KEYS[18] -- zset    finished ids with a result_ttl, by its end
local state            = ARGV[1]            -- the place: see above
local queue            = ARGV[2]            -- '' where the state has none
local position         = ARGV[3]            -- '' for the first page
local limit            = tonumber(ARGV[4])  -- at most 1,000
local AROUND = 200                          -- how far from its place the last one passed is sought in a ready list
--- @include lib/record.lua
--- @include lib/tries.lua
--- @include lib/place.lua
--- @include lib/snapshot.lua
--- @include lib/seek.lua

local left_text, where = string.match(position, '^(%d+) (.*)$')
local left = tonumber(left_text)
where = where or ''

-- What each place answers: the ids of the page, what stands behind `left` in the position behind each, and whether
-- there is more.

--- The newest first. The distance from the oldest stays what it is when others come.
local function ended(key)
  local count = redis.call('LLEN', key)
  left = math.min(left or count, count)
  if left == 0 then return {}, {}, false end
  local last = math.min(limit - left, 0) - 1
  return redis.call('LRANGE', key, -left, last), {}, left > limit
end

--- By score: due time, or end.
local function scored(key)
  left = left or seek.room(redis.call('ZCARD', key))
  local score, last = string.match(where, '^(%S+) (.*)$')
  local start = tonumber(score) and seek.behind(key, score, last) or 0
  local part, ids, marks = redis.call('ZRANGE', key, start, start + limit, 'WITHSCORES'), {}, {}
  for i = 1, math.min(#part / 2, limit) do
    ids[i] = part[2 * i - 1]
    marks[i] = part[2 * i] .. ' ' .. ids[i]
  end
  return ids, marks, #part / 2 > limit
end

--- From the head. Claims take from there what was passed already, and jobs given back come in before it: so the last
-- one passed is looked for around its place. Where it is gone, all before it are gone too.
local function waiting()
  local key = ready_prefix .. queue .. ':0'
  left = left or redis.call('LLEN', key)
  local passed_text, last = string.match(where, '^(%d+) (.*)$')
  local passed = tonumber(passed_text) or 0
  local back, ahead = math.min(passed, AROUND), passed > 0 and AROUND or 0
  local part = redis.call('LRANGE', key, -passed - limit - ahead - 1, back - passed - 1)
  local at = 0 -- how many of the part are passed
  for i = 1, last and #part or 0 do
    if part[#part + 1 - i] == last then at = i end
  end
  if at > 0 then where = string.format('%d', passed - back + at) .. ' ' .. last end
  local ids, marks = {}, {}
  for i = 1, math.min(#part - at, limit) do
    ids[i] = part[#part + 1 - at - i]
    marks[i] = string.format('%d', passed - back + at + i) .. ' ' .. ids[i]
  end
  return ids, marks, #part - at > limit or #part > back + limit + ahead
end

--- By id: so a job that runs all the time is neither missed nor met twice.
local function running()
  local ids, marks, count = {}, {}, 0
  for _, key in ipairs({workers_key, fallen_key}) do
    for _, worker in ipairs(redis.call('ZRANGE', key, 0, -1)) do
      for _, id in ipairs(redis.call('HKEYS', running_prefix .. worker)) do
        count = count + 1
        if where < id then ids[#ids + 1] = id end
      end
    end
  end
  left = left or seek.room(count)
  table.sort(ids)
  for i = 1, #ids do marks[i] = ids[i] end
  return ids, marks, #ids > limit
end

local ids, marks, more
if state == 'dead' then
  ids, marks, more = ended(dead_key)
elseif state == 'rejected' then
  ids, marks, more = ended(rejected_key)
elseif state == 'done' then
  ids, marks, more = ended(done_key)
elseif state == 'kept' then
  ids, marks, more = scored(kept_key)
elseif state == 'scheduled' then
  ids, marks, more = scored(scheduled_prefix .. queue)
elseif state == 'ready' then
  ids, marks, more = waiting()
elseif state == 'running' then
  ids, marks, more = running()
else
  return redis.error_reply('RQJ_STATE no jobs are listed by the state ' .. state)
end

local count = math.min(#ids, limit, left)
more = more and count < left

--- The position behind entry `i`.
local function behind(i)
  if i == count and not more then return '' end
  return string.format('%d', left - i) .. ' ' .. (marks[i] or where)
end

local found = {behind(count)}
for i = 1, count do
  if state ~= 'ready' or redis.call('HEXISTS', tombs_prefix .. queue, ids[i]) == 0 then
    local one = snapshot.of(ids[i], false)
    one[#one + 1] = behind(i)
    found[#found + 1] = one
  end
end
return found
