--- Paused queues. An entry of `queues` is the levels of a queue, and where it is paused, behind a blank each, until
-- when (0: until it is resumed), since when, and by whom.
--   <levels>[ <until_ms> <since_ms> <by>]
-- Expects: queues_key, and lib/clock, lib/batch.
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
  for first = at, at + count - 1, batch.portion do
    local last = math.min(first + batch.portion, at + count) - 1
    local entries = redis.call('HMGET', queues_key, unpack(list, first, last))
    for i = first, last do
      local entry = entries[i - first + 1]
      if entry and #entry > 1 then found[list[i]] = pauses.until_ms(entry) end
    end
  end
  return found
end
