#!lua flags=allow-oom
--- Put waiting jobs among the dead by hand, with a reason.
-- Answers with a word for each id, in order: `buried`; what the job is instead (`running`, `done`, `dead`, `cancelled`,
-- `malformed`, `unknown`); or `unsound`, a key of its queue has a foreign type.
local jobs_key         = KEYS[1]  -- hash    id -> record
local bodies_key       = KEYS[2]  -- hash    id -> payload over 2 KiB
local tries_key        = KEYS[3]  -- hash    id -> what went wrong so far
local errors_key       = KEYS[4]  -- hash    id -> traceback
local where_key        = KEYS[5]  -- hash    id -> worker, of running jobs with a lock
local ends_key         = KEYS[6]  -- hash    id -> how a finished job ended
local gone_key         = KEYS[7]  -- hash    id -> word about a job that is gone
local workers_key      = KEYS[8]  -- zset    worker by lease end
local fallen_key       = KEYS[9]  -- zset    workers being recovered
local locks_key        = KEYS[10] -- zset    lock key by until_ms
local totals_key       = KEYS[11] -- hash    lifetime counters
local ready_prefix     = KEYS[12] -- lists   .. queue:level: ids ready to run
local scheduled_prefix = KEYS[13] -- zsets   .. queue: ids by run_at_ms
local running_prefix   = KEYS[14] -- hashes  .. worker: id -> kind and token
local lock_prefix      = KEYS[15] -- strings .. lock key: holder
local lane_prefix      = KEYS[16] -- strings .. lane: last nonce and answer
local tombs_prefix     = KEYS[17] -- hashes  .. queue: ids cancelled while ready
local dead_key         = KEYS[18] -- list    dead ids, newest on the left
local history_prefix   = KEYS[19] -- hashes  .. unit:number: the counters when a minute or day began
local changelog_key    = KEYS[20] -- stream  what operators did, and workers to dead ones
local waiters_key      = KEYS[21] -- hash    id -> answer lists of those who wait for its end
local answers_prefix   = KEYS[22] -- lists   .. process: ends of jobs that it waits for
local lane_name        = ARGV[1]            -- the asker's lane: one outstanding request of one producer
local nonce            = ARGV[2]            -- 16 characters, this request's own
local asked_ms         = tonumber(ARGV[3])  -- -1: ask the server
local lock_safety_ms   = tonumber(ARGV[4])  -- how long past its due time the net under a lock reaches
local dead_max         = tonumber(ARGV[5])  -- how many dead jobs are kept
local dead_age_ms      = tonumber(ARGV[6])  -- how long they are kept; 0: however old
local reason           = ARGV[7]            -- told to readers as the last error
local changelog_max    = ARGV[8]            -- how many lines of the changelog are kept
local by               = ARGV[9]            -- who asks, for those who wonder
local ids, ids_at      = ARGV, 10           -- from here on the ids
local WHY_MAX = 200                         -- bytes of the reason that the changelog has
--- @include lib/lane.lua
--- @include lib/intact.lua
--- @include lib/clock.lua
--- @include lib/batch.lua
--- @include lib/record.lua
--- @include lib/tries.lua
--- @include lib/place.lua
--- @include lib/lock.lua
--- @include lib/totals.lua
--- @include lib/job.lua
--- @include lib/waiting.lua
--- @include lib/waiters.lua
--- @include lib/dead.lua
--- @include lib/changelog.lua

local kept = lane.recall()
if kept then return cjson.decode(kept) end
intact.check({jobs_key, bodies_key, tries_key, errors_key, where_key, ends_key, gone_key, totals_key}, {dead_key},
  {workers_key, fallen_key, locks_key})

local answers, buried = {}, {}
for i = ids_at, #ids do
  local id = ids[i]
  local state, header = place.of(id, redis.call('HGET', jobs_key, id))
  local waits = state == 'ready' or state == 'scheduled'
  if waits and not waiting.sound(state, header) then
    answers[#answers + 1] = 'unsound'
  elseif waits then
    waiting.take_out(id, state, header)
    local tried = tries.read(redis.call('HGET', tries_key, id))
    dead.bury(dead_key, id, header, tried, {reason = 'buried', error = reason})
    buried[#buried + 1] = id
    answers[#answers + 1] = 'buried'
  else
    answers[#answers + 1] = state
  end
end
dead.trim(dead_key, dead_max, dead_age_ms)
changelog.write(changelog_key, 'bury', by, buried, {'why', string.sub(reason, 1, WHY_MAX)})
lane.keep(cjson.encode(answers))
return answers
