#!lua flags=no-writes
--- A page of the changelog, the newest line first.
-- Answers {now_ms, count, looked, next, {field, value, ...} ...}: how many lines there are, how many were looked at,
-- and the cursor of the next page, '' behind the last line. A cursor is the id of the last line looked at, and the
-- letter of its stream: `c` or `e`.
local changelog_key = KEYS[1] -- stream  what operators did, and workers to dead ones
local events_key    = KEYS[2] -- stream  what befell jobs by themselves
local asked_ms      = tonumber(ARGV[1]) -- -1: ask the server
local cursor        = ARGV[2]           -- where to go on; '' from the newest
local limit         = tonumber(ARGV[3]) -- how many lines are wanted, at most 1,000
local look_max      = tonumber(ARGV[4]) -- how many are looked at, at most 1,000
local act           = ARGV[5]           -- only of this act; '' any
local id            = ARGV[6]           -- only with this job; '' any
--- @include lib/clock.lua

--- The lines of a stream from the cursor on, and one more than a page needs. (Of two lines with one id, that of the
-- changelog comes first; if it ended the page, that of the events is still to come.)
local function lines(key, letter)
  local last, ended = string.match(cursor, '^([%d-]+)(%l)$')
  local from = last and ((letter == 'e' and ended == 'c') and last or '(' .. last) or '+'
  local found = redis.pcall('XREVRANGE', key, from, '-', 'COUNT', look_max + 1)
  return found.err and {} or found -- of a foreign type: an error
end

--- How many lines a stream has, 0 where it has a foreign type.
local function length(key)
  local answer = redis.pcall('XLEN', key)
  return type(answer) == 'number' and answer or 0
end

--- Is the line `one` newer than `other`?
local function newer(one, other)
  local ms, number = string.match(one[1], '^(%d+)-(%d+)$')
  local other_ms, other_number = string.match(other[1], '^(%d+)-(%d+)$')
  if ms ~= other_ms then return tonumber(ms) > tonumber(other_ms) end
  return tonumber(number) > tonumber(other_number)
end

--- Is a line one that is wanted?
local function wanted(facts)
  local fits_act, fits_id = act == '', id == ''
  for i = 1, #facts, 2 do
    local field, value = facts[i], facts[i + 1]
    fits_act = fits_act or (field == 'act' and value == act)
    if not fits_id and (field == 'ids' or field == 'others') then
      fits_id = string.find('\0' .. value .. '\0', '\0' .. id .. '\0', 1, true) ~= nil
    end
  end
  return fits_act and fits_id
end

local changes, events = lines(changelog_key, 'c'), lines(events_key, 'e')
local at, event_at, looked, following = 1, 1, 0, ''
local found = {}
while looked < look_max and #found < limit do
  local change, event = changes[at], events[event_at]
  if not change and not event then break end
  looked = looked + 1
  local line, letter = change, 'c'
  if not change or (event and newer(event, change)) then line, letter = event, 'e' end
  if letter == 'c' then at = at + 1 else event_at = event_at + 1 end
  following = line[1] .. letter
  if wanted(line[2]) then found[#found + 1] = line[2] end
end
if not changes[at] and not events[event_at] then following = '' end
return {clock.now_ms, length(changelog_key) + length(events_key), looked, following, unpack(found)}
