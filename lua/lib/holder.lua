--- Who holds a lock: the pointer's job, if the lock is really held.
-- Expects: jobs_key, and lib/clock, lib/place, lib/lock.
local holder = {}

local HOLDING = {ready = true, scheduled = true, running = true, parked = true}

--- Who holds the lock of this value, the holder's state and header, and the mode it is held in, which decides; nil if
-- it is free to take. (Not the mode in the header: an id that came again may ask for another lock by now, or none.)
-- Fifth, where it is free, the job to which it still points, though that holds it no longer.
-- until_expired is held until its time is over, whatever became of the job; any other mode while the
-- holder is in a holding state, so a pointer to a job that is gone is taken over on the spot.
function holder.of(value)
  local mode, until_ms, id = lock.read(value)
  if not mode then return nil end
  if until_ms > 0 and until_ms <= clock.now_ms then return nil end
  local text = redis.call('HGET', jobs_key, id)
  local state, header = place.of(id, text)
  if mode ~= 'e' and not HOLDING[state] then return nil, nil, nil, nil, id end
  return id, state, header, mode
end
