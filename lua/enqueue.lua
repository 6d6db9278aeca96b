#!lua
--- Store new jobs, each unless its lock is held. One job is a list of one.
-- Answers with the server's time in ms where every job was enqueued as asked (the usual case), else with
-- {now_ms, {outcome, id, state, holder_id, holder's record}, ...}, one for each job, in order:
--   enqueued   stored; ready, or scheduled
--   duplicate  not stored: holder_id has the lock, and is in `state`
--   rejected   stored among the dead as `duplicate of <holder_id>`
-- Refuses with RQJ_ID an id that exists without this request's nonce: ids are random, so this is a fault.
local jobs_key         = KEYS[1]  -- hash    id -> record
local bodies_key       = KEYS[2]  -- hash    id -> payload over 2 KiB
local tries_key        = KEYS[3]  -- hash    id -> what went wrong so far
local errors_key       = KEYS[4]  -- hash    id -> traceback
local where_key        = KEYS[5]  -- hash    id -> worker, of running jobs with a lock
local ends_key         = KEYS[6]  -- hash    id -> how a finished job ended
local gone_key         = KEYS[7]  -- hash    id -> word about a job that is gone
local workers_key      = KEYS[8]  -- zset    worker by lease end
local fallen_key       = KEYS[9]  -- zset    workers being recovered
local queues_key       = KEYS[10] -- hash    queue -> its levels
local locks_key        = KEYS[11] -- zset    lock key by until_ms
local rejected_key     = KEYS[12] -- list    refused duplicates, newest on the left
local totals_key       = KEYS[13] -- hash    lifetime counters
local ready_prefix     = KEYS[14] -- lists   .. queue:level: ids ready to run
local scheduled_prefix = KEYS[15] -- zsets   .. queue: ids by run_at_ms
local running_prefix   = KEYS[16] -- hashes  .. worker: id -> kind and token
local wake_prefix      = KEYS[17] -- lists   .. queue: at most one wake-up token
local lock_prefix      = KEYS[18] -- strings .. lock key: holder
local lane_prefix      = KEYS[19] -- strings .. lane: last nonce and answer
local lane_name        = ARGV[1]            -- the asker's lane: one outstanding request of one producer
local nonce            = ARGV[2]            -- 11 characters, this request's own
local asked_ms         = tonumber(ARGV[3])  -- -1: ask the server
local lock_safety_ms   = tonumber(ARGV[4])  -- how long past its due time the net under a lock reaches
local rejected_max     = tonumber(ARGV[5])  -- how many refused duplicates are kept
local items, items_at  = ARGV, 6            -- from here on 9 each: id, queue, level, due ('' now, '+ms' from now,
                                            -- '@ms' at), mode ('' none), lock key, ttl_ms, on_conflict, payload
local ITEM = 9
--- @include lib/lane.lua
--- @include lib/clock.lua
--- @include lib/batch.lua
--- @include lib/record.lua
--- @include lib/tries.lua
--- @include lib/place.lua
--- @include lib/lock.lua
--- @include lib/holder.lua
--- @include lib/ready.lua
--- @include lib/totals.lua
--- @include lib/job.lua
--- @include lib/dead.lua

--- The full answers, with the record of each holder that is still there.
local function told(now_text, answers)
  local reply = {tonumber(now_text)}
  for i = 1, #answers do
    local answer = answers[i]
    if answer[1] == 'duplicate' then answer[5] = redis.call('HGET', jobs_key, answer[4]) or '' end
    reply[i + 1] = answer
  end
  return reply
end

local kept = lane.recall()
if kept then
  local now_text, answers = string.match(kept, '^(%d+)(.*)$')
  if answers == '' then return tonumber(now_text) end
  return told(now_text, cjson.decode(answers))
end

local ids, lock_names = {}, {}
for at = items_at, #items, ITEM do
  ids[#ids + 1] = items[at]
  if items[at + 4] ~= '' then lock_names[#lock_names + 1] = lock_prefix .. items[at + 5] end
end
local known = batch.fields(jobs_key, ids)
for i = 1, #ids do
  if known[i] then return redis.error_reply('RQJ_ID a job with the id ' .. ids[i] .. ' exists already') end
end
local lock_values = #lock_names > 0 and redis.call('MGET', unpack(lock_names)) or {}

-- Decide for each job, before anything is written: twins inside the batch meet in `taken`.
local taken, decided, sound, locks_seen = {}, {}, {}, 0
for i = 1, #ids do
  local at = items_at + (i - 1) * ITEM
  local due = items[at + 3]
  local due_ms = clock.now_ms
  if due ~= '' then
    due_ms = tonumber(string.sub(due, 2))
    if string.byte(due) == 43 then due_ms = clock.now_ms + due_ms end
  end
  local plan = {due_ms = due_ms, state = due_ms > clock.now_ms and 'scheduled' or 'ready'}
  local queue = items[at + 1]
  if not sound[queue] then
    sound[queue] = ready.sound(queue, items[at + 2])
    if not sound[queue] then
      return redis.error_reply('RQJ_TYPE a key of the queue ' .. queue .. ' has a foreign type')
    end
  end
  if items[at + 4] ~= '' then
    locks_seen = locks_seen + 1
    local key = items[at + 5]
    local twin = taken[key]
    if twin then
      plan.holder, plan.holder_state = ids[twin], decided[twin].state
    else
      plan.holder, plan.holder_state = holder.of(lock_values[locks_seen])
      plan.met = plan.holder ~= nil
      if not plan.holder then taken[key] = i end
    end
  end
  decided[i] = plan
end

local now_text = clock.text(clock.now_ms)
local answers, stored, bodies, to_ready, queues_seen = {}, {}, {}, {}, {}
local enqueued, refused, rejected, as_asked = 0, 0, 0, true
for i = 1, #ids do
  local at, plan = items_at + (i - 1) * ITEM, decided[i]
  local id, queue, level, due = ids[i], items[at + 1], items[at + 2], items[at + 3]
  local mode, key, on_conflict, payload = items[at + 4], items[at + 5], items[at + 7], items[at + 8]
  local reject = plan.holder and on_conflict == 'reject'
  if plan.met then lock.renew_if_old(key) end
  if plan.holder then refused = refused + 1 end
  if plan.holder and not reject then
    answers[i] = {'duplicate', plan.holder, plan.holder_state, plan.holder}
    as_asked = false
  else
    enqueued = enqueued + 1
    local inline = payload
    if #payload > record.inline_max then
      inline = ''
      bodies[#bodies + 1] = id
      bodies[#bodies + 1] = payload
    end
    stored[#stored + 1] = id
    stored[#stored + 1] = record.text(queue, level, now_text, record.lock_tags(mode, key, items[at + 6]), inline)
    if not queues_seen[queue] then
      queues_seen[queue] = true
      redis.call('HSETNX', queues_key, queue, '0')
    end
    if reject then
      answers[i] = {'rejected', id, 'dead', plan.holder}
      rejected = rejected + 1
      as_asked = false
      dead.bury(rejected_key, id, nil, tries.read(nil), {reason = 'duplicate', error = 'duplicate of ' .. plan.holder})
    else
      answers[i] = {'enqueued', id, plan.state, ''}
      as_asked = as_asked and (plan.state == 'ready') == (due == '')
      if mode ~= '' then lock.take(key, mode, id, tonumber(items[at + 6]), plan.due_ms) end
      if plan.state == 'scheduled' then
        ready.schedule(queue, id, plan.due_ms)
      else
        local level_name = queue .. ':' .. level
        local line = to_ready[level_name]
        if not line then
          line = {queue = queue, level = level}
          to_ready[level_name] = line
          to_ready[#to_ready + 1] = line
        end
        line[#line + 1] = id
      end
    end
  end
end
if #stored > 0 then batch.send('HSET', jobs_key, stored) end
if #bodies > 0 then batch.send('HSET', bodies_key, bodies) end
for i = 1, #to_ready do ready.push(to_ready[i].queue, to_ready[i].level, to_ready[i]) end
if rejected > 0 then dead.trim(rejected_key, rejected_max, 0) end
totals.add('enqueued', enqueued)
totals.add('refused', refused)

if as_asked then
  lane.keep(now_text)
  return clock.now_ms
end
lane.keep(now_text .. cjson.encode(answers))
return told(now_text, answers)
