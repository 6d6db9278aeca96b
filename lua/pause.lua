#!lua flags=allow-oom
--- Pause a queue, or resume it: no job of a paused queue is started; it takes new ones as before.
-- Answers with a word: `paused`, `resumed`, `running` (it was not paused), or `unknown`: no job was ever put into it.
local queues_key       = KEYS[1] -- hash    queue -> its levels, and its pause
local ready_prefix     = KEYS[2] -- lists   .. queue:level: ids ready to run
local scheduled_prefix = KEYS[3] -- zsets   .. queue: ids by run_at_ms
local wake_prefix      = KEYS[4] -- lists   .. queue: at most one wake-up token
local lane_prefix      = KEYS[5] -- strings .. lane: last nonce and answer
local changelog_key    = KEYS[6] -- stream  what operators did, and workers to dead ones
local lane_name        = ARGV[1]            -- the asker's lane: one outstanding request of one producer
local nonce            = ARGV[2]            -- 16 characters, this request's own
local asked_ms         = tonumber(ARGV[3])  -- -1: ask the server
local queue            = ARGV[4]            -- which
local for_ms           = ARGV[5]            -- how long; '0' until it is resumed, '' to resume it now
local changelog_max    = ARGV[6]            -- how many lines of the changelog are kept
local by               = ARGV[7]            -- who asks, for those who wonder
--- @include lib/lane.lua
--- @include lib/clock.lua
--- @include lib/batch.lua
--- @include lib/ready.lua
--- @include lib/pauses.lua
--- @include lib/changelog.lua

local kept = lane.recall()
if kept then return kept end

local entry = redis.call('HGET', queues_key, queue)
local word = 'unknown'
if entry then
  local levels = string.match(entry, '^%d+') or '0'
  if for_ms ~= '' then
    local until_ms = for_ms == '0' and 0 or clock.after(tonumber(for_ms))
    word = 'paused'
    redis.call('HSET', queues_key, queue,
      levels .. ' ' .. clock.text(until_ms) .. ' ' .. clock.text(clock.now_ms) .. ' ' .. by)
    changelog.write(changelog_key, 'pause', by, nil, {'queue', queue, 'for_ms', for_ms})
  else
    word = pauses.until_ms(entry) and 'resumed' or 'running'
    redis.call('HSET', queues_key, queue, levels)
    if word == 'resumed' then changelog.write(changelog_key, 'resume', by, nil, {'queue', queue}) end
  end
  ready.wake(queue) -- a waiter learns of the new end of the pause, or finds the jobs
end
lane.keep(word)
return word
