#!lua flags=allow-oom
--- Cancel jobs that wait: they will never start.
-- Answers with a word for each id, in order: `cancelled`; `gone`, it was cancelled before; what the job is instead
-- (`running`, `done`, `dead`, `expired`, `malformed`, `unknown`); or `unsound`, a key of its queue has a foreign type.
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
local left_key         = KEYS[18] -- list    ids in `gone`, newest on the left
local history_prefix   = KEYS[19] -- hashes  .. unit:number: the counters when a minute or day began
local changelog_key    = KEYS[20] -- stream  what operators did, and workers to dead ones
local waiters_key      = KEYS[21] -- hash    id -> answer lists of those who wait for its end
local answers_prefix   = KEYS[22] -- lists   .. process: ends of jobs that it waits for
local lane_name        = ARGV[1]            -- the asker's lane: one outstanding request of one producer
local nonce            = ARGV[2]            -- 16 characters, this request's own
local asked_ms         = tonumber(ARGV[3])  -- -1: ask the server
local lock_safety_ms   = tonumber(ARGV[4])  -- how long past its due time the net under a lock reaches
local gone_max         = tonumber(ARGV[5])  -- how many words about gone jobs are kept
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
--- @include lib/totals.lua
--- @include lib/job.lua
--- @include lib/waiting.lua
--- @include lib/waiters.lua
--- @include lib/removal.lua
--- @include lib/gone.lua
--- @include lib/changelog.lua

local kept = lane.recall()
if kept then return cjson.decode(kept) end
intact.check({jobs_key, bodies_key, tries_key, errors_key, where_key, ends_key, gone_key, totals_key}, {left_key},
  {workers_key, fallen_key, locks_key})

local answers, out, headers, seen = {}, {}, {}, {}
for i = ids_at, #ids do
  local id = ids[i]
  local state, header = place.of(id, redis.call('HGET', jobs_key, id))
  local waits = state == 'ready' or state == 'scheduled'
  if seen[id] then
    answers[#answers + 1] = 'gone'
  elseif waits and not waiting.sound(state, header) then
    answers[#answers + 1] = 'unsound'
  elseif waits then
    seen[id] = true
    waiting.take_out(id, state, header)
    out[#out + 1], headers[#headers + 1] = id, header
    answers[#answers + 1] = 'cancelled'
  else
    answers[#answers + 1] = state == 'cancelled' and 'gone' or state
  end
end
removal.jobs(out, headers, 'cancelled')
gone.tell(out, 'cancelled')
changelog.write(changelog_key, 'cancel', by, out)
lane.keep(cjson.encode(answers))
return answers
