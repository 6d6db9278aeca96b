#!lua flags=allow-oom
--- Bring dead jobs back: ready, behind the others of their queue, with attempts beginning at 0, and without the end
-- that `expires_in` set. One that was buried by hand while it was ready, and whose entry still lies in the list under
-- a tomb, gets that place back.
-- Answers with {word, holder_id} for each id, in order: `revived`; `duplicate`, it stays dead, for another job
-- holds its lock by now; `malformed`, nobody can read its record; `unsound`, a key of its queue has a foreign type; or
-- what the job is instead (`ready`, `scheduled`, `running`, `done`, `cancelled`, `expired`, `unknown`).
local jobs_key         = KEYS[1]  -- hash    id -> record
local tries_key        = KEYS[2]  -- hash    id -> what went wrong so far
local errors_key       = KEYS[3]  -- hash    id -> traceback
local where_key        = KEYS[4]  -- hash    id -> worker, of running jobs with a lock
local ends_key         = KEYS[5]  -- hash    id -> how a finished job ended
local gone_key         = KEYS[6]  -- hash    id -> word about a job that is gone
local workers_key      = KEYS[7]  -- zset    worker by lease end
local fallen_key       = KEYS[8]  -- zset    workers being recovered
local locks_key        = KEYS[9]  -- zset    lock key by until_ms
local ready_prefix     = KEYS[10] -- lists   .. queue:level: ids ready to run
local scheduled_prefix = KEYS[11] -- zsets   .. queue: ids by run_at_ms
local running_prefix   = KEYS[12] -- hashes  .. worker: id -> kind and token
local wake_prefix      = KEYS[13] -- lists   .. queue: at most one wake-up token
local lock_prefix      = KEYS[14] -- strings .. lock key: holder
local lane_prefix      = KEYS[15] -- strings .. lane: last nonce and answer
local dead_key         = KEYS[16] -- list    dead ids, newest on the left
local rejected_key     = KEYS[17] -- list    refused duplicates, newest on the left
local tombs_prefix     = KEYS[18] -- hashes  .. queue: ids cancelled while ready
local bodies_key       = KEYS[19] -- hash    id -> payload over 2 KiB
local totals_key       = KEYS[20] -- hash    lifetime counters
local left_key         = KEYS[21] -- list    ids in `gone`, newest on the left
local history_prefix   = KEYS[22] -- hashes  .. unit:number: the counters when a minute or day began
local changelog_key    = KEYS[23] -- stream  what operators did, and workers to dead ones
local events_key       = KEYS[24] -- stream  what befell jobs by themselves
local waiters_key      = KEYS[25] -- hash    id -> answer lists of those who wait for its end
local answers_prefix   = KEYS[26] -- lists   .. process: ends of jobs that it waits for
local lane_name        = ARGV[1]            -- the asker's lane: one outstanding request of one producer
local nonce            = ARGV[2]            -- 16 characters, this request's own
local asked_ms         = tonumber(ARGV[3])  -- -1: ask the server
local lock_safety_ms   = tonumber(ARGV[4])  -- how long past its due time the net under a lock reaches
local gone_max         = tonumber(ARGV[5])  -- how many words about jobs that are gone are kept
local changelog_max    = ARGV[6]            -- how many lines of the changelog are kept
local by               = ARGV[7]            -- who asks, for those who wonder
local ids, ids_at      = ARGV, 8            -- from here on the ids
--- @include lib/lane.lua
--- @include lib/intact.lua
--- @include lib/clock.lua
--- @include lib/batch.lua
--- @include lib/record.lua
--- @include lib/tries.lua
--- @include lib/place.lua
--- @include lib/lock.lua
--- @include lib/ready.lua
--- @include lib/holder.lua
--- @include lib/totals.lua
--- @include lib/job.lua
--- @include lib/tombs.lua
--- @include lib/waiting.lua
--- @include lib/waiters.lua
--- @include lib/removal.lua
--- @include lib/gone.lua
--- @include lib/expiry.lua
--- @include lib/changelog.lua

local kept = lane.recall()
if kept then return cjson.decode(kept) end
intact.check({jobs_key, bodies_key, tries_key, errors_key, where_key, ends_key, gone_key, totals_key},
  {dead_key, rejected_key, left_key}, {workers_key, fallen_key, locks_key})

local revived, took = {}, {}

--- Does this dead job get its place back? Its word, and who holds its lock.
local function revive(id)
  local text = redis.call('HGET', jobs_key, id)
  local state, header = place.of(id, text)
  if state ~= 'dead' then return state, '' end
  if not header then return 'malformed', '' end
  if type(redis.pcall('HLEN', tombs_prefix .. header.queue)) ~= 'number' then return 'unsound', '' end
  if not ready.sound(header.queue, header.level) then return 'unsound', '' end
  if header.mode then
    local other, other_state, other_header, mode, former = holder.of(redis.pcall('GET', lock_prefix .. header.key))
    if other and other ~= id and expiry.is(other_state, other_header) then
      expiry.out(other, other_state, other_header)
      if mode ~= 'e' then other = nil end -- else time alone decides about its lock
    end
    if other and other ~= id then return 'duplicate', other end
    -- Its own lock of until_expired is kept as it is: the time was counted from the enqueue.
    if not other then lock.take(header.key, header.mode, id, header.ttl_ms, clock.now_ms) end
    if former and former ~= id then took[#took + 1] = {id, header.key, former} end
  end
  if redis.call('LREM', dead_key, -1, id) == 0 then redis.call('LREM', rejected_key, -1, id) end
  redis.call('HDEL', tries_key, id)
  redis.call('HDEL', errors_key, id)
  local tags = record.tags(header.mode or '', header.key or '', clock.text(header.ttl_ms), '', clock.text(clock.now_ms))
  local payload, enqueued_text = string.sub(text, header.payload_at), clock.text(header.enqueued_ms)
  redis.call('HSET', jobs_key, id, record.text(header.queue, header.level, enqueued_text, tags, payload))
  if tombs.unbury(header.queue, id) then
    ready.wake(header.queue)
  else
    ready.push(header.queue, header.level, {id})
  end
  revived[#revived + 1] = id
  return 'revived', ''
end

local answers = {}
for i = ids_at, #ids do answers[#answers + 1] = {revive(ids[i])} end
changelog.write(changelog_key, 'revive', by, revived)
changelog.write(events_key, 'expire', 'revive', expiry.ended)
changelog.write_locks(events_key, 'takeover', 'revive', took)
lane.keep(cjson.encode(answers))
return answers
