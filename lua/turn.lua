#!lua flags=allow-oom
--- One turn of a worker, in one trip: settle what has ended, then claim what is free.
-- Answers {word, now_ms, next_due_ms, left, settle.refused, jobs}:
--   word         'ok', or 'unregistered': a worker without a lease settles, but is given nothing
--   next_due_ms  when the first scheduled job of these queues is due, 0 if there is none
--   left         1 if more could be claimed at once
--   refused      flat list of id, word, for settlements that changed nothing: `stale` (the token is not the
--                job's any more), or `gone` on a resend, which counts as recorded
--   jobs         flat list of id, token, record, body ('' if in the record), attempts, crashes, putoffs
-- A claim peeks, decides, and only then pops: what cannot be run is buried with a reason, never lost on the way.
local jobs_key         = KEYS[1]  -- hash    id -> record
local bodies_key       = KEYS[2]  -- hash    id -> payload over 2 KiB
local tries_key        = KEYS[3]  -- hash    id -> what went wrong so far
local errors_key       = KEYS[4]  -- hash    id -> traceback
local where_key        = KEYS[5]  -- hash    id -> worker, of running jobs with a lock
local workers_key      = KEYS[6]  -- zset    worker by lease end
local running_key      = KEYS[7]  -- hash    id -> kind and token, of this worker
local fence_key        = KEYS[8]  -- string  the last fence given out
local locks_key        = KEYS[9]  -- zset    lock key by until_ms
local dead_key         = KEYS[10] -- list    dead ids, newest on the left
local done_key         = KEYS[11] -- list    finished ids, newest on the left
local ends_key         = KEYS[12] -- hash    id -> how a finished job ended
local totals_key       = KEYS[13] -- hash    lifetime counters
local ready_prefix     = KEYS[14] -- lists   .. queue:level: ids ready to run
local tombs_prefix     = KEYS[15] -- hashes  .. queue: ids cancelled while ready
local scheduled_prefix = KEYS[16] -- zsets   .. queue: ids by run_at_ms
local wake_prefix      = KEYS[17] -- lists   .. queue: at most one wake-up token
local lock_prefix      = KEYS[18] -- strings .. lock key: holder
local queues_key       = KEYS[19] -- hash    queue -> its levels, and its pause
local gone_key         = KEYS[20] -- hash    id -> word about a job that is gone
local left_key         = KEYS[21] -- list    ids in `gone`, newest on the left
local history_prefix   = KEYS[22] -- hashes  .. unit:number: the counters when a minute or day began
local events_key       = KEYS[23] -- stream  what befell jobs by themselves
local waiters_key      = KEYS[24] -- hash    id -> answer lists of those who wait for its end
local answers_prefix   = KEYS[25] -- lists   .. process: ends of jobs that it waits for
local kept_key         = KEYS[26] -- zset    finished ids with a result_ttl, by its end
local results_key      = KEYS[27] -- hash    id -> result
local progress_key     = KEYS[28] -- hash    id -> how far it is, while it runs
local nonce            = ARGV[1]            -- 16 characters, the random part of this turn's tokens
local again            = ARGV[2] == '1'     -- this request was sent before, and its answer lost
local asked_ms         = tonumber(ARGV[3])  -- -1: ask the server
local worker           = ARGV[4]            -- who asks
local start_max        = tonumber(ARGV[5])  -- how many jobs it starts at once
local hand_max         = tonumber(ARGV[6])  -- how many more it may hold in hand
local last_idle        = ARGV[7] == '1'     -- with a job to run no slot of this worker waits for a wake-up
local done_max         = tonumber(ARGV[8])  -- how many finished jobs are kept
local dead_max         = tonumber(ARGV[9])  -- how many dead jobs are kept
local dead_age_ms      = tonumber(ARGV[10]) -- how long they are kept; 0: however old
local lock_safety_ms   = tonumber(ARGV[11]) -- how long past its due time the net under a lock reaches
local changelog_max    = ARGV[12]           -- how many lines of the changelog are kept
local queue_count      = tonumber(ARGV[13]) -- how many queues are named
local list, list_at    = ARGV, 14           -- queues; then a count and id, token of each job done; a count and of
                                            -- each that returned something id, token, ttl_ms, result; then of each
                                            -- other end 7: word, id, token, delay_ms, reason, error, traceback
local ANSWER, DONE, RETURNED, OTHER = 7, 2, 4, 7
local DUE_MAX = 100                         -- scheduled jobs moved a call, over all queues
local ROUNDS_MAX = 20                       -- peeks a queue and call: only entries that cannot run need a second
local NEVER_MS = 9007199254740992           -- 2^53: a time like this was written by somebody else
local SOON_MS = 5000                        -- a due time this near is worth a waiter
--- @include lib/clock.lua
--- @include lib/batch.lua
--- @include lib/record.lua
--- @include lib/tries.lua
--- @include lib/lease.lua
--- @include lib/lock.lua
--- @include lib/ready.lua
--- @include lib/tombs.lua
--- @include lib/totals.lua
--- @include lib/job.lua
--- @include lib/waiters.lua
--- @include lib/progress.lua
--- @include lib/ends.lua
--- @include lib/done.lua
--- @include lib/kept.lua
--- @include lib/dead.lua
--- @include lib/pauses.lua
--- @include lib/settle.lua

local claimed, claim_count, due_left, next_due_ms, more = {}, 0, DUE_MAX, 0, false
local lapsed -- the ids whose time was over, where there are some

--- Move what is due of a queue to its ready list, and remember the next due time.
local function promote(queue)
  local key = scheduled_prefix .. queue
  local first = redis.pcall('ZRANGE', key, 0, 0, 'WITHSCORES')
  if first.err or not first[1] then return end
  local first_ms = tonumber(first[2])
  if first_ms <= clock.now_ms and due_left > 0 then
    local ids = redis.call('ZRANGEBYSCORE', key, '-inf', clock.text(clock.now_ms), 'LIMIT', 0, due_left)
    local records, levels = batch.fields(jobs_key, ids), {}
    for i = 1, #ids do
      local header = record.read(records[i])
      levels[i] = header and header.level or '0'
      if not ready.sound(queue, levels[i]) then return end
    end
    due_left = due_left - #ids
    redis.call('ZREM', key, unpack(ids))
    local graves = redis.pcall('HLEN', tombs_prefix .. queue)
    for i = 1, #ids do
      if graves == 0 or not tombs.unbury(queue, ids[i]) then
        redis.call('LPUSH', ready_prefix .. queue .. ':' .. levels[i], ids[i])
      end
    end
    first = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
    first_ms = tonumber(first[2] or 0)
  end
  if first_ms > 0 and first_ms < NEVER_MS and (next_due_ms == 0 or first_ms < next_due_ms) then
    next_due_ms = first_ms
  end
end

--- End jobs whose time was over before they started.
local function lapse(late, late_headers)
  local gone_max = done_max -- one setting for both
  --- @include lib/removal.lua
  --- @include lib/gone.lua
  removal.jobs(late, late_headers, 'expired')
  gone.tell(late, 'expired')
  lapsed = lapsed or {}
  for i = 1, #late do lapsed[#lapsed + 1] = late[i] end
end

--- Tell the changelog of them.
local function tell_lapsed()
  --- @include lib/changelog.lua
  changelog.write(events_key, 'expire', worker, lapsed)
end

--- Claim from one list until the worker has what it asked for, or the list is empty.
local function claim(queue, level)
  local key, tombs_key = ready_prefix .. queue .. ':' .. level, tombs_prefix .. queue
  for _ = 1, ROUNDS_MAX do
    local room = start_max + hand_max - claim_count
    if room <= 0 then return end
    local peeked = redis.pcall('LRANGE', key, -room, -1)
    if peeked.err or #peeked == 0 then return end
    local ids = {}
    for i = #peeked, 1, -1 do ids[#ids + 1] = peeked[i] end
    local grave = redis.pcall('HLEN', tombs_key)
    local buried = type(grave) == 'number' and grave > 0 and batch.fields(tombs_key, ids) or {}
    local records, tried = batch.fields(jobs_key, ids), batch.fields(tries_key, ids)
    local seen, malformed, under, expired, ends = 0, {}, {}, {}, {}
    for i = 1, #ids do
      local text = records[i]
      if buried[i] then
        under[#under + 1] = ids[i]
      elseif text then
        local header = record.read(text)
        local entry = tries.read(tried[i])
        if not header then
          malformed[#malformed + 1] = ids[i]
        elseif header.expires_ms and header.expires_ms <= clock.now_ms then
          expired[#expired + 1], ends[#ends + 1] = ids[i], header
        elseif entry.crashes > 0 and claim_count >= start_max then
          break -- it has crashed before: never into a hand, so it waits for a slot that starts it at once
        else
          claim_count = claim_count + 1
          claimed[claim_count] = {id = ids[i], text = text, header = header, entry = entry}
        end
      end
      seen = i
    end
    if seen == 0 then return end
    if #malformed + #expired > 0 then dead.check(dead_key) end
    if #expired > 0 then redis.call('HLEN', gone_key) redis.call('LLEN', left_key) end -- see lib/intact
    redis.call('RPOP', key, seen)
    if #under > 0 then redis.call('HDEL', tombs_key, unpack(under)) end
    for i = 1, #malformed do
      dead.bury(dead_key, malformed[i], nil, tries.read(nil), dead.MALFORMED)
    end
    if #malformed > 0 then dead.trim(dead_key, dead_max, dead_age_ms) end
    if #expired > 0 then lapse(expired, ends) end
    if seen < #ids then return end
  end
end

--- Give each claimed job its token, and lay the answer out.
local function hand_out()
  local jobs, running, where, body_ids, body_at = {}, {}, {}, {}, {}
  local last = redis.pcall('GET', fence_key) -- of a foreign type: an error; the jobs are out of their lists by now
  local fence = type(last) == 'string' and tonumber(last) or 0
  fence = math.max(fence + 1, clock.now_us) - 1
  for i = 1, claim_count do
    local one = claimed[i]
    local token = clock.text(fence + i) .. '-' .. nonce
    running[2 * i - 1] = one.id
    running[2 * i] = lease.entry(i <= start_max, one.header.mode ~= nil, token)
    if one.header.mode then
      where[#where + 1] = one.id
      where[#where + 1] = worker
      lock.renew(one.header.key, clock.now_ms)
    end
    local at = (i - 1) * ANSWER
    jobs[at + 1], jobs[at + 2], jobs[at + 3], jobs[at + 4] = one.id, token, one.text, ''
    jobs[at + 5], jobs[at + 6], jobs[at + 7] = one.entry.attempts, one.entry.crashes, one.entry.putoffs
    if not one.header.inline then
      body_ids[#body_ids + 1] = one.id
      body_at[#body_at + 1] = at + 4
    end
  end
  redis.call('SET', fence_key, clock.text(fence + claim_count))
  batch.send('HSET', running_key, running)
  if #where > 0 then batch.send('HSET', where_key, where) end
  local bodies = batch.fields(bodies_key, body_ids)
  for i = 1, #body_ids do jobs[body_at[i]] = bodies[i] or '' end
  return jobs
end

--- What this worker already holds under this nonce: the answer that was lost, in the order it had.
local function held_already()
  local all, mine, jobs = redis.call('HGETALL', running_key), {}, {}
  for i = 1, #all, 2 do
    local token = lease.token(all[i + 1])
    if string.sub(token, -#nonce) == nonce then mine[#mine + 1] = {id = all[i], token = token} end
  end
  -- A hash has no order, and the first of them are those that start at once.
  table.sort(mine, function(a, b) return lease.fence(a.token) < lease.fence(b.token) end)
  for i = 1, #mine do
    local id, at = mine[i].id, (i - 1) * ANSWER
    local text = redis.call('HGET', jobs_key, id) or ''
    local header = record.read(text)
    local entry = tries.read(redis.call('HGET', tries_key, id))
    jobs[at + 1], jobs[at + 2], jobs[at + 3] = id, mine[i].token, text
    jobs[at + 4] = header and not header.inline and redis.call('HGET', bodies_key, id) or ''
    jobs[at + 5], jobs[at + 6], jobs[at + 7] = entry.attempts, entry.crashes, entry.putoffs
  end
  return jobs
end

local done_at = list_at + queue_count
local done_count = tonumber(list[done_at])
local returned_at = done_at + 1 + DONE * done_count
local returned_count = tonumber(list[returned_at])
local other_at = returned_at + 1 + RETURNED * returned_count
if done_count + returned_count > 0 then
  done.check()
  ends.check()
  if returned_count > 0 then kept.check() end
end
if done_count > 0 then settle.done(done_at + 1, done_count, DONE) end
if returned_count > 0 then settle.done(returned_at + 1, returned_count, RETURNED) end
for at = other_at, #list, OTHER do
  settle.other(list[at], list[at + 1], list[at + 2], tonumber(list[at + 3]), list[at + 4], list[at + 5], list[at + 6])
end

if not redis.call('ZSCORE', workers_key, worker) then
  return {'unregistered', clock.now_ms, 0, 0, settle.refused, {}}
end
local held = again and held_already() or {}
if #held > 0 then return {'ok', clock.now_ms, 0, 1, settle.refused, held} end

redis.call('HLEN', running_key) -- what a claim writes: of a foreign type it stops here, with all jobs in their lists
redis.call('HLEN', where_key)
-- A paused queue is passed over whole; the end of its pause is a due time like any other.
local paused = pauses.of(list, list_at, queue_count)
for i = list_at, done_at - 1 do
  local until_ms = paused[list[i]]
  if not until_ms then
    promote(list[i])
    claim(list[i], '0')
  elseif until_ms > 0 and (next_due_ms == 0 or until_ms < next_due_ms) then
    next_due_ms = until_ms
  end
end
if lapsed then tell_lapsed() end
local jobs = claim_count > 0 and hand_out() or {}

-- The baton: whoever took the token sees to it that another waiter comes while there is something left, or
-- while a due time would pass unseen because nobody of this worker waits for it any more. (Only if it was given a
-- job: else whoever asks waits itself, would take the token at once, ask again, and so on until the due time.)
for i = list_at, done_at - 1 do
  local left = redis.pcall('LLEN', ready_prefix .. list[i] .. ':0')
  if paused[list[i]] then left = 0 end
  if type(left) == 'number' and left > 0 then
    more = true
    ready.wake(list[i])
  elseif last_idle and claim_count > 0 and next_due_ms > 0 and next_due_ms <= clock.now_ms + SOON_MS then
    if paused[list[i]] or redis.call('EXISTS', scheduled_prefix .. list[i]) == 1 then ready.wake(list[i]) end
  end
end
return {'ok', clock.now_ms, next_due_ms, more and 1 or 0, settle.refused, jobs}
