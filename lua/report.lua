#!lua flags=allow-oom
--- Note how far running jobs are, as whoever runs them says.
-- Answers with a word for each: `noted`; or `stale`, the token is not the job's any more, and nothing was changed.
local running_key      = KEYS[1] -- hash    id -> kind and token, of this worker
local progress_key     = KEYS[2] -- hash    id -> how far it is, while it runs
local asked_ms         = tonumber(ARGV[1])  -- -1: ask the server
local list, list_at    = ARGV, 2            -- id, token, value and text of each
local REPORT = 4
--- @include lib/clock.lua
--- @include lib/lease.lua

local answers = {}
for at = list_at, #list, REPORT do
  local id = list[at]
  if lease.owns(redis.call('HGET', running_key, id), list[at + 1]) then
    redis.call('HSET', progress_key, id, list[at + 2] .. ' ' .. clock.text(clock.now_ms) .. ' ' .. list[at + 3])
    answers[#answers + 1] = 'noted'
  else
    answers[#answers + 1] = 'stale'
  end
end
return answers
