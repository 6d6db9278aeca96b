#!lua
--- Store new jobs, each unless its lock is held. One job is a list of one; `push` is the short way for a plain one.
-- Answers with the server's time in ms where every job was enqueued as asked (the usual case), else with
-- {now_ms, {outcome, id, state, holder_id, holder's record}, ...}, one for each job, in order:
--   enqueued   stored; ready, or scheduled
--   duplicate  not stored: holder_id has the lock, or is a job of that very id, and is in `state`
--   rejected   stored among the dead as `duplicate of <holder_id>`
-- Refuses with RQJ_ID a random id that exists without this request's nonce, for that is a fault.
local jobs_key         = KEYS[1]  -- hash    id -> record
local bodies_key       = KEYS[2]  -- hash    id -> payload over 2 KiB
local tries_key        = KEYS[3]  -- hash    id -> what went wrong so far
local errors_key       = KEYS[4]  -- hash    id -> traceback
local where_key        = KEYS[5]  -- hash    id -> worker, of running jobs with a lock
local ends_key         = KEYS[6]  -- hash    id -> how a finished job ended
local gone_key         = KEYS[7]  -- hash    id -> word about a job that is gone
local workers_key      = KEYS[8]  -- zset    worker by lease end
local fallen_key       = KEYS[9]  -- zset    workers being recovered
local queues_key       = KEYS[10] -- hash    queue -> its levels, and its pause
local locks_key        = KEYS[11] -- zset    lock key by until_ms
local rejected_key     = KEYS[12] -- list    refused duplicates, newest on the left
local totals_key       = KEYS[13] -- hash    lifetime counters
local ready_prefix     = KEYS[14] -- lists   .. queue:level: ids ready to run
local scheduled_prefix = KEYS[15] -- zsets   .. queue: ids by run_at_ms
local running_prefix   = KEYS[16] -- hashes  .. worker: id -> kind and token
local wake_prefix      = KEYS[17] -- lists   .. queue: at most one wake-up token
local lock_prefix      = KEYS[18] -- strings .. lock key: holder
local lane_prefix      = KEYS[19] -- strings .. lane: last nonce and answer
local tombs_prefix     = KEYS[20] -- hashes  .. queue: ids cancelled while ready
local left_key         = KEYS[21] -- list    ids in `gone`, newest on the left
local history_prefix   = KEYS[22] -- hashes  .. unit:number: the counters when a minute or day began
local events_key       = KEYS[23] -- stream  what befell jobs by themselves
local waiters_key      = KEYS[24] -- hash    id -> answer lists of those who wait for its end
local answers_prefix   = KEYS[25] -- lists   .. process: ends of jobs that it waits for
local lane_name        = ARGV[1]            -- the asker's lane: one outstanding request of one producer
local nonce            = ARGV[2]            -- 16 characters, this request's own
local asked_ms         = tonumber(ARGV[3])  -- -1: ask the server
local lock_safety_ms   = tonumber(ARGV[4])  -- how long past its due time the net under a lock reaches
local rejected_max     = tonumber(ARGV[5])  -- how many refused duplicates are kept
local gone_max         = tonumber(ARGV[6])  -- how many words about jobs that are gone are kept
local changelog_max    = ARGV[7]            -- how many lines of the changelog are kept
local items, items_at  = ARGV, 8            -- from here on 11 each: id, queue, level, due ('' now, '+ms' from now,
                                            -- '@ms' at), mode ('' none), lock key, ttl_ms, on_conflict, payload,
                                            -- '1' for an id of one's own, ms from now till it expires ('' never)
local ITEM = 11
--- @include lib/lane.lua
--- @include lib/clock.lua
--- @include lib/record.lua
--- @include lib/totals.lua

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

local now_text = clock.text(clock.now_ms)

--- @include lib/batch.lua
--- @include lib/ready.lua

--- What only jobs with a lock, an id of their own or an end need, made only where there are some.
local function rarely()
  --- @include lib/intact.lua
  --- @include lib/tries.lua
  --- @include lib/place.lua
  --- @include lib/lock.lua
  --- @include lib/holder.lua
  --- @include lib/job.lua
  --- @include lib/waiters.lua
  --- @include lib/dead.lua
  --- @include lib/tombs.lua
  --- @include lib/waiting.lua
  --- @include lib/removal.lua
  --- @include lib/gone.lua
  --- @include lib/expiry.lua
  local parts, lapsed = {take = lock.take}, {}
  local refused, took = {}, {} -- for the changelog: lists of {id, lock key, id of the other job}

  --- Note who is in the way of a plan. One whose time is over will be ended before the plan is carried out, and is not
  -- in the way, unless `stays`: its lock is one about which time alone decides.
  local function meet(plan, id, state, header, stays)
    if expiry.is(state, header) then
      lapsed[#lapsed + 1] = {plan = plan, id = id, state = state, header = header}
      if not stays then return false end
      state = 'expired'
    end
    plan.holder, plan.holder_state = id, state
    return true
  end

  --- Decide for each job whether its id is known already and who holds its lock, in Redis or earlier in this batch;
  -- `seen` and `taken` are those of the batch that will be stored: id -> where, lock key -> plan.
  function parts.meet(plans, records)
    local names, value_at, seen, taken = {}, {}, {}, {}
    for i = 1, #plans do
      local at = items_at + (i - 1) * ITEM
      if items[at + 4] ~= '' then
        names[#names + 1] = lock_prefix .. items[at + 5]
        value_at[i] = #names
      end
    end
    local values = #names > 0 and redis.call('MGET', unpack(names)) or {}
    for i = 1, #plans do
      local plan, at = plans[i], items_at + (i - 1) * ITEM
      local key = items[at + 5]
      if seen[plan.id] then
        plan.holder, plan.holder_state, plan.known = plan.id, seen[plan.id], true
      elseif records[i] then
        local state, header = place.of(plan.id, records[i])
        plan.known = meet(plan, plan.id, state, header, false)
      end
      if value_at[i] and not plan.known then
        local other, id, state, header, mode, former = taken[key], nil, nil, nil, nil, nil
        if not other then id, state, header, mode, former = holder.of(values[value_at[i]]) end
        if other then
          plan.holder, plan.holder_state = other.id, other.state
        elseif id and mode == 'e' and seen[id] then -- its lock is of an earlier life of that id
          plan.holder, plan.holder_state, plan.met = id, seen[id], true
        elseif id and meet(plan, id, state, header, mode == 'e') then
          plan.met = true
        else
          taken[key] = plan
          if former and former ~= plan.id then took[#took + 1] = {plan.id, key, former} end
        end
      end
      plan.reject = plan.holder and not plan.known and items[at + 7] == 'reject'
      if not plan.holder or plan.reject then seen[plan.id] = plan.reject and 'dead' or plan.state end
    end
  end

  --- The first writes, plan by plan: end those whose time was over when they were met, and forget the word about an id
  -- that comes again. The entry of such an id in a ready list, if it still lies there under a tomb, is its own again.
  function parts.clear(plans)
    local rejects, words, next_lapsed = false, #lapsed > 0, 1
    for i = 1, #plans do
      rejects, words = rejects or plans[i].reject, words or items[items_at + (i - 1) * ITEM + 9] == '1'
    end
    intact.check({totals_key, queues_key}, {}, {locks_key})
    if rejects then intact.check({tries_key}, {rejected_key}, {}) end
    if words then intact.check({bodies_key, tries_key, errors_key, gone_key}, {left_key}, {}) end
    for i = 1, #plans do
      local at, plan = items_at + (i - 1) * ITEM, plans[i]
      local one = lapsed[next_lapsed]
      while one and one.plan == plan do
        -- Twice where a plan, or two of them, met it by its id and by its lock.
        if redis.call('HEXISTS', jobs_key, one.id) == 1 then expiry.out(one.id, one.state, one.header) end
        next_lapsed = next_lapsed + 1
        one = lapsed[next_lapsed]
      end
      if items[at + 9] == '1' and (plan.reject or not plan.holder) then
        gone.forget(plan.id)
        if plan.state == 'ready' and not plan.holder then plan.placed = tombs.unbury(items[at + 1], plan.id) end
      end
    end
  end

  --- Keep the lock that an enqueue met from running out under its living holder.
  parts.renew = lock.renew_if_old

  --- Put a job that the lock `key` refused among the rejected.
  function parts.reject(id, holder_id, key)
    refused[#refused + 1] = {id, key, holder_id}
    dead.bury(rejected_key, id, nil, tries.read(nil), {reason = 'duplicate', error = 'duplicate of ' .. holder_id})
  end

  --- Keep the rejected within their bound; once their records are stored, or one would outlive its id.
  function parts.trim()
    dead.trim(rejected_key, rejected_max, 0)
  end

  --- Tell the changelog of what others will wonder about.
  function parts.tell()
    if #refused + #took + #expiry.ended == 0 then return end
    --- @include lib/changelog.lua
    changelog.write(events_key, 'expire', 'enqueue', expiry.ended)
    changelog.write_locks(events_key, 'takeover', 'enqueue', took)
    changelog.write_locks(events_key, 'reject', 'enqueue', refused)
  end

  return parts
end

-- Decide for each job, before anything is written.
local ids, plans, sound, named, rare = {}, {}, {}, {}, false
for at = items_at, #items, ITEM do
  local id, queue, due = items[at], items[at + 1], items[at + 3]
  local own = items[at + 9] == '1'
  if named[id] and not (own and named[id] == 'own') then
    return redis.error_reply('RQJ_ID two jobs have the id ' .. id)
  end
  named[id] = own and 'own' or 'made'
  local plan = {id = id, state = 'ready', due_ms = clock.now_ms}
  if due ~= '' then
    local due_ms = tonumber(string.sub(due, 2))
    if string.byte(due) == 43 then due_ms = clock.after(due_ms) end
    if due_ms > clock.now_ms then plan.due_ms, plan.state = due_ms, 'scheduled' end
  end
  rare = rare or items[at + 4] ~= '' or own
  if not sound[queue] then
    sound[queue] = ready.sound(queue, items[at + 2])
    if not sound[queue] then
      return redis.error_reply('RQJ_TYPE a key of the queue ' .. queue .. ' has a foreign type')
    end
  end
  ids[#ids + 1], plans[#plans + 1] = id, plan
end
local known = batch.fields(jobs_key, ids)
for i = 1, #ids do
  if known[i] and items[items_at + (i - 1) * ITEM + 9] ~= '1' then
    return redis.error_reply('RQJ_ID a job with the id ' .. ids[i] .. ' exists already')
  end
end
local parts = rare and rarely()
if parts then
  parts.meet(plans, known)
  parts.clear(plans)
end

local answers, stored, to_ready, queues, refused, as_asked = {}, {}, {}, {}, 0, true
for i = 1, #plans do
  local at, plan = items_at + (i - 1) * ITEM, plans[i]
  local id, queue, level, mode, payload = plan.id, items[at + 1], items[at + 2], items[at + 4], items[at + 8]
  if plan.met then parts.renew(items[at + 5]) end
  if plan.holder then refused = refused + 1 end
  if plan.holder and not plan.reject then
    answers[i] = {'duplicate', plan.holder, plan.holder_state, plan.holder}
    as_asked = false
  else
    local inline = payload
    if #payload > record.inline_max then
      inline = ''
      redis.call('HSET', bodies_key, id, payload)
    end
    local expires = items[at + 10]
    if expires ~= '' then expires = clock.text(clock.after(tonumber(expires))) end
    local since = plan.state == 'scheduled' and not plan.reject and clock.text(plan.due_ms) or ''
    local tags = record.tags(mode, items[at + 5], items[at + 6], expires, since)
    queues[queue] = true
    stored[#stored + 1] = id
    stored[#stored + 1] = record.text(queue, level, now_text, tags, inline)
    if plan.reject then
      answers[i] = {'rejected', id, 'dead', plan.holder}
      as_asked = false
      parts.reject(id, plan.holder, items[at + 5])
    else
      answers[i] = {'enqueued', id, plan.state, ''}
      as_asked = as_asked and (plan.state == 'ready') == (items[at + 3] == '')
      if mode ~= '' then parts.take(items[at + 5], mode, id, tonumber(items[at + 6]), plan.due_ms) end
      if plan.state == 'scheduled' then
        ready.schedule(queue, id, plan.due_ms)
      elseif plan.placed then
        ready.wake(queue)
      else
        local line_name = queue .. ':' .. level
        local line = to_ready[line_name]
        if not line then
          line = {queue = queue, level = level}
          to_ready[line_name] = line
          to_ready[#to_ready + 1] = line
        end
        line[#line + 1] = id
      end
    end
  end
end
if #stored > 0 then batch.send('HSET', jobs_key, stored) end
for i = 1, #to_ready do ready.push(to_ready[i].queue, to_ready[i].level, to_ready[i]) end
for queue in pairs(queues) do redis.call('HSETNX', queues_key, queue, '0') end
if parts then
  parts.trim()
  parts.tell()
end
totals.add('enqueued', #stored / 2)
totals.add('refused', refused)

if as_asked then
  lane.keep(now_text)
  return clock.now_ms
end
lane.keep(now_text .. cjson.encode(answers))
return told(now_text, answers)
