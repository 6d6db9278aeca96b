--- Waiting jobs whose time was over before they started; ended by whoever meets them, for nobody looks for them.
-- Expects: lib/clock, lib/waiting, lib/removal, lib/gone.
-- `expiry.ended` has the ids of those that were ended, for the changelog.
local expiry = {ended = {}}

local WAITING = {ready = true, scheduled = true}

--- Is a job in this place one whose time is over?
function expiry.is(state, header)
  return WAITING[state] and header.expires_ms and header.expires_ms <= clock.now_ms and waiting.sound(state, header)
end

--- End it where it waits. The keys that this writes were asked for their type before.
function expiry.out(id, state, header)
  waiting.take_out(id, state, header)
  removal.jobs({id}, {header}, 'expired')
  gone.tell({id}, 'expired')
  expiry.ended[#expiry.ended + 1] = id
end
