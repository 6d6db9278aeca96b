#!lua flags=no-writes
--- Who holds which lock: a page of all locks, or the locks named.
-- Answers {now_ms, count, position, {key, mode, until_ms, holder_id, holder's state, left_ms} ...}: `count` is the
-- number of locks held by their time or their job; `position` is from where a page goes on behind this one, '' at the
-- end; left_ms is -1 where the key has no TTL. A lock not held has the mode ''.
-- A position is '<left> <until_ms> <lock key>', behind which it goes on; `left` is how many are looked at at most from
-- there on, so that a last page comes however fast locks are taken.
local jobs_key         = KEYS[1]  -- hash    id -> record
local tries_key        = KEYS[2]  -- hash    id -> what went wrong so far
local where_key        = KEYS[3]  -- hash    id -> worker, of running jobs with a lock
local ends_key         = KEYS[4]  -- hash    id -> how a finished job ended
local gone_key         = KEYS[5]  -- hash    id -> word about a job that is gone
local workers_key      = KEYS[6]  -- zset    worker by lease end
local fallen_key       = KEYS[7]  -- zset    workers being recovered
local scheduled_prefix = KEYS[8]  -- zsets   .. queue: ids by run_at_ms
local running_prefix   = KEYS[9]  -- hashes  .. worker: id -> kind and token
local locks_key        = KEYS[10] -- zset    lock key by until_ms
local lock_prefix      = KEYS[11] -- strings .. lock key: holder
local asked_ms         = tonumber(ARGV[1])  -- -1: ask the server
local position         = ARGV[2]            -- '' for the first page
local limit            = tonumber(ARGV[3])  -- at most 1,000
local named, named_at  = ARGV, 4            -- from here on lock keys; none: a page of all
--- @include lib/clock.lua
--- @include lib/record.lua
--- @include lib/tries.lua
--- @include lib/place.lua
--- @include lib/seek.lua

local count = redis.call('ZCOUNT', locks_key, '(' .. clock.text(clock.now_ms), '+inf')
local keys, behind = {}, ''
for i = named_at, #named do keys[#keys + 1] = named[i] end
if #keys == 0 then
  local left, score, last = string.match(position, '^(%d+) (%S+) (.*)$')
  left = tonumber(left) or seek.room(count)
  local start = redis.call('ZCOUNT', locks_key, '-inf', clock.text(clock.now_ms))
  if tonumber(score) then start = math.max(start, seek.behind(locks_key, score, last)) end
  local part = redis.call('ZRANGE', locks_key, start, start + limit, 'WITHSCORES')
  local shown = math.min(#part / 2, limit, left)
  for i = 1, shown do keys[i] = part[2 * i - 1] end
  if #part / 2 > shown and left > shown then
    behind = string.format('%d', left - shown) .. ' ' .. (part[2 * shown] or '') .. ' ' .. (keys[shown] or '')
  end
end
local found = {clock.now_ms, count, behind}
for _, key in ipairs(keys) do
  local value = redis.pcall('GET', lock_prefix .. key)
  local mode, until_ms, holder_id = string.match(type(value) == 'string' and value or '', '^(%l) (%d+) (.+)$')
  local entry = {key, '', '0', '', '', -1}
  if mode and (until_ms == '0' or tonumber(until_ms) > clock.now_ms) then
    local state = place.of(holder_id, redis.call('HGET', jobs_key, holder_id))
    entry = {key, mode, until_ms, holder_id, state, redis.call('PTTL', lock_prefix .. key)}
  end
  found[#found + 1] = entry
end
return found
