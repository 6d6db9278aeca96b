#!lua flags=allow-oom
--- Let jobs that wait for their next attempt go now: ready, behind the others of their queue, attempts as they are.
-- Answers with a word for each id, in order: `retried`; `delayed`, it has not failed, and waits for the time it was
-- given; `unsound`, a key of its queue has a foreign type; or what the job is instead (`ready`, `running`, `done`,
-- `dead`, `cancelled`, `expired`, `malformed`, `unknown`).
local jobs_key         = KEYS[1]  -- hash    id -> record
local tries_key        = KEYS[2]  -- hash    id -> what went wrong so far
local where_key        = KEYS[3]  -- hash    id -> worker, of running jobs with a lock
local ends_key         = KEYS[4]  -- hash    id -> how a finished job ended
local gone_key         = KEYS[5]  -- hash    id -> word about a job that is gone
local workers_key      = KEYS[6]  -- zset    worker by lease end
local fallen_key       = KEYS[7]  -- zset    workers being recovered
local locks_key        = KEYS[8]  -- zset    lock key by until_ms
local ready_prefix     = KEYS[9]  -- lists   .. queue:level: ids ready to run
local scheduled_prefix = KEYS[10] -- zsets   .. queue: ids by run_at_ms
local running_prefix   = KEYS[11] -- hashes  .. worker: id -> kind and token
local wake_prefix      = KEYS[12] -- lists   .. queue: at most one wake-up token
local lock_prefix      = KEYS[13] -- strings .. lock key: holder
local lane_prefix      = KEYS[14] -- strings .. lane: last nonce and answer
local changelog_key    = KEYS[15] -- stream  what operators did, and workers to dead ones
local lane_name        = ARGV[1]            -- the asker's lane: one outstanding request of one producer
local nonce            = ARGV[2]            -- 16 characters, this request's own
local asked_ms         = tonumber(ARGV[3])  -- -1: ask the server
local lock_safety_ms   = tonumber(ARGV[4])  -- how long past its due time the net under a lock reaches
local changelog_max    = ARGV[5]            -- how many lines of the changelog are kept
local by               = ARGV[6]            -- who asks, for those who wonder
local ids, ids_at      = ARGV, 7            -- from here on the ids
--- @include lib/lane.lua
--- @include lib/intact.lua
--- @include lib/clock.lua
--- @include lib/batch.lua
--- @include lib/record.lua
--- @include lib/tries.lua
--- @include lib/place.lua
--- @include lib/lock.lua
--- @include lib/ready.lua
--- @include lib/changelog.lua

local kept = lane.recall()
if kept then return cjson.decode(kept) end
intact.check({jobs_key, tries_key, where_key, ends_key, gone_key}, {}, {workers_key, fallen_key})

--- Does this job go now? Its word.
local function go(id)
  local text = redis.call('HGET', jobs_key, id)
  local state, header = place.of(id, text)
  if state ~= 'scheduled' then return state end
  local tried = tries.read(redis.call('HGET', tries_key, id))
  if tried.attempts + tried.putoffs == 0 then return 'delayed' end
  if not ready.sound(header.queue, header.level) then return 'unsound' end
  redis.call('ZREM', scheduled_prefix .. header.queue, id)
  redis.call('HSET', jobs_key, id, record.since(text, header, clock.text(clock.now_ms)))
  if header.mode then lock.renew(header.key, clock.now_ms) end
  ready.push(header.queue, header.level, {id}) -- it was claimed from there, so no entry of it lies under a tomb
  return 'retried'
end

local answers, retried = {}, {}
for i = ids_at, #ids do
  local word = go(ids[i])
  if word == 'retried' then retried[#retried + 1] = ids[i] end
  answers[#answers + 1] = word
end
changelog.write(changelog_key, 'retry', by, retried)
lane.keep(cjson.encode(answers))
return answers
