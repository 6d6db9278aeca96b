#!lua flags=allow-oom
--- Delete jobs with all that is known of them, wherever they are; a running one is left alone.
-- Answers with a word for each id, in order: `deleted`; `running`, `unknown`, or `cancelled`, it is gone already; or
-- `unsound`, a key of its queue has a foreign type.
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
local rejected_key     = KEYS[19] -- list    refused duplicates, newest on the left
local done_key         = KEYS[20] -- list    finished ids, newest on the left
local history_prefix   = KEYS[21] -- hashes  .. unit:number: the counters when a minute or day began
local changelog_key    = KEYS[22] -- stream  what operators did, and workers to dead ones
local waiters_key      = KEYS[23] -- hash    id -> answer lists of those who wait for its end
local answers_prefix   = KEYS[24] -- lists   .. process: ends of jobs that it waits for
local kept_key         = KEYS[25] -- zset    finished ids with a result_ttl, by its end
local results_key      = KEYS[26] -- hash    id -> result
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
--- @include lib/totals.lua
--- @include lib/job.lua
--- @include lib/waiting.lua
--- @include lib/waiters.lua
--- @include lib/ends.lua
--- @include lib/removal.lua
--- @include lib/changelog.lua

local kept = lane.recall()
if kept then return cjson.decode(kept) end
intact.check({jobs_key, bodies_key, tries_key, errors_key, where_key, ends_key, gone_key, results_key, totals_key},
  {dead_key, rejected_key, done_key}, {workers_key, fallen_key, locks_key, kept_key})

local answers, deleted = {}, {}
for i = ids_at, #ids do
  local id = ids[i]
  local state, header = place.of(id, redis.call('HGET', jobs_key, id))
  local word = 'deleted'
  if state == 'ready' or state == 'scheduled' then
    if waiting.sound(state, header) then waiting.take_out(id, state, header) else word = 'unsound' end
  elseif state == 'dead' then
    -- From the right: the oldest are deleted in bulk, and lie there.
    if redis.call('LREM', dead_key, -1, id) == 0 then redis.call('LREM', rejected_key, -1, id) end
  elseif state == 'done' then
    ends.check()
    if redis.call('LREM', done_key, -1, id) == 0 then redis.call('ZREM', kept_key, id) end
  elseif state ~= 'malformed' then
    word = state
  end
  if word == 'deleted' then
    deleted[#deleted + 1] = id
    if state == 'done' then
      ends.forget({id}) -- it counts as done, not as deleted
    else
      -- One at a time, so that an id named twice is unknown the second time.
      removal.jobs({id}, {header or false}, 'deleted')
    end
  end
  answers[#answers + 1] = word
end
changelog.write(changelog_key, 'delete', by, deleted)
lane.keep(cjson.encode(answers))
return answers
