#!lua flags=allow-oom
--- Free locks by hand. One whose job waits or runs is alive, and freed only by force: its job goes on without it.
-- Answers {word, holder_id} for each key, in order: `released`; `held`, its job is alive and force was not given; or
-- `free`, nobody holds it.
local jobs_key         = KEYS[1]  -- hash    id -> record
local tries_key        = KEYS[2]  -- hash    id -> what went wrong so far
local where_key        = KEYS[3]  -- hash    id -> worker, of running jobs with a lock
local ends_key         = KEYS[4]  -- hash    id -> how a finished job ended
local gone_key         = KEYS[5]  -- hash    id -> word about a job that is gone
local workers_key      = KEYS[6]  -- zset    worker by lease end
local fallen_key       = KEYS[7]  -- zset    workers being recovered
local locks_key        = KEYS[8]  -- zset    lock key by until_ms
local scheduled_prefix = KEYS[9]  -- zsets   .. queue: ids by run_at_ms
local running_prefix   = KEYS[10] -- hashes  .. worker: id -> kind and token
local lock_prefix      = KEYS[11] -- strings .. lock key: holder
local lane_prefix      = KEYS[12] -- strings .. lane: last nonce and answer
local changelog_key    = KEYS[13] -- stream  what operators did, and workers to dead ones
local lane_name        = ARGV[1]            -- the asker's lane: one outstanding request of one producer
local nonce            = ARGV[2]            -- 16 characters, this request's own
local asked_ms         = tonumber(ARGV[3])  -- -1: ask the server
local lock_safety_ms   = tonumber(ARGV[4])  -- how long past its due time the net under a lock reaches
local force            = ARGV[5] == '1'     -- free also what is alive
local changelog_max    = ARGV[6]            -- how many lines of the changelog are kept
local by               = ARGV[7]            -- who asks, for those who wonder
local named, named_at  = ARGV, 8            -- from here on lock keys
--- @include lib/lane.lua
--- @include lib/intact.lua
--- @include lib/clock.lua
--- @include lib/batch.lua
--- @include lib/record.lua
--- @include lib/tries.lua
--- @include lib/place.lua
--- @include lib/lock.lua
--- @include lib/holder.lua
--- @include lib/changelog.lua

local kept = lane.recall()
if kept then return cjson.decode(kept) end
intact.check({jobs_key, tries_key, where_key, ends_key, gone_key}, {}, {workers_key, fallen_key, locks_key})

local freed = {}
local ALIVE = {ready = true, scheduled = true, running = true, parked = true}

--- Free one lock; its word, and who held it.
local function release(key)
  local value = redis.pcall('GET', lock_prefix .. key)
  if not lock.read(value) then
    redis.call('ZREM', locks_key, key) -- what is there is not ours, or its time to live was over: no lock to be listed
    return 'free', ''
  end
  local id, state, _, _, former = holder.of(value)
  if id and ALIVE[state] and not force then return 'held', id end
  redis.call('DEL', lock_prefix .. key)
  redis.call('ZREM', locks_key, key)
  if id or former then freed[#freed + 1] = {id or former, key} end
  return id and 'released' or 'free', id or ''
end

local answers = {}
for i = named_at, #named do answers[#answers + 1] = {release(named[i])} end
changelog.write_locks(changelog_key, 'release', by, freed, {'force', force and '1' or '0'})
lane.keep(cjson.encode(answers))
return answers
