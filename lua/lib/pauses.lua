--- Paused queues. An entry of `queues` is the levels of a queue, and where it is paused, behind a blank each, until
-- when (0: until it is resumed), since when, and by whom.
--   <levels>[ <until_ms> <since_ms> <by>]
-- Expects: queues_key, and lib/clock.
local pauses = {}

--- The end of the pause that an entry tells of, 0 for one without an end; nil if the queue is not paused now.
function pauses.until_ms(entry)
  local text = entry and string.match(entry, '^%d+ (%d+) ')
  if not text then return nil end
  local until_ms = tonumber(text)
  return (until_ms == 0 or until_ms > clock.now_ms) and until_ms or nil
end

--- Which of the `count` queues in `list` from `at` on are paused: queue -> end of its pause.
function pauses.of(list, at, count)
  local found = {}
  if count == 0 then return found end
  local entries = redis.call('HMGET', queues_key, unpack(list, at, at + count - 1))
  for i = 1, count do
    if entries[i] and #entries[i] > 1 then found[list[at + i - 1]] = pauses.until_ms(entries[i]) end
  end
  return found
end
