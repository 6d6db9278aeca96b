#!lua flags=no-writes
--- What the lifetime counters were when each of the last minutes, or days, began.
-- Answers {now_ms, counters now, {number, counters when it began} ...}: the newest minute or day first, by its number
-- since 1970 (UTC); those that counted nothing are passed over. Counters are a flat list of counter, value.
-- At most `limit` of them a call, for each takes the server some 10 us: a reader goes on behind the last one.
local totals_key     = KEYS[1] -- hash    lifetime counters
local history_prefix = KEYS[2] -- hashes  .. unit:number: the counters when a minute or day began
local asked_ms       = tonumber(ARGV[1]) -- -1: ask the server
local unit           = ARGV[2]           -- `minute` or `day`
local minutes        = tonumber(ARGV[3]) -- how many minutes one has
local last           = tonumber(ARGV[4]) -- how many are looked back, the first one among them
local from           = tonumber(ARGV[5]) -- the number of the first one; -1: this one
local limit          = tonumber(ARGV[6]) -- how many are answered at most
--- @include lib/clock.lua

--- The number of the unit that a copy of the counters says was the last one to count; 0 if it says nothing.
local function number_in(counters)
  for i = 1, #counters, 2 do
    if counters[i] == 'minute' then return math.floor((tonumber(counters[i + 1]) or 0) / minutes) end
  end
  return 0
end

local counters = redis.call('HGETALL', totals_key)
local found = {clock.now_ms, counters}
local number = from < 0 and number_in(counters) or from
local first = (from < 0 and math.max(number, math.floor(clock.now_ms / 60000 / minutes)) or from) - last + 1
while number > 0 and number >= first and #found < limit + 2 do
  counters = redis.pcall('HGETALL', history_prefix .. unit .. ':' .. clock.text(number))
  if counters.err or #counters == 0 then break end
  found[#found + 1] = {number, counters}
  local before = number_in(counters)
  if before >= number then break end -- none of our copies
  number = before
end
-- The minute 0 needs no copy: nothing was counted before it.
if number == 0 and first <= 0 then found[#found + 1] = {0, {}} end
return found
