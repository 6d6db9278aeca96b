--- A lane remembers the answer to its last request, so that asking again does nothing twice.
-- A lane is one outstanding request of a producer; the nonce is the request's own 64 random bits.
-- Expects: lane_prefix, lane_name, nonce.
-- `lane.before` is the text kept for the request before this one, '' if none is.
local lane = {keep_s = 120, before = '', recall = false, keep = false} -- at once, as in lib/clock

--- The text kept for this very request, or nil if it is new.
function lane.recall()
  local kept = redis.call('GET', lane_prefix .. lane_name)
  if not kept then return nil end
  local text = string.sub(kept, #nonce + 1)
  if string.sub(kept, 1, #nonce) == nonce then return text end
  lane.before = text
  return nil
end

--- Keep the answer, as text, for whoever asks again.
function lane.keep(text)
  redis.call('SET', lane_prefix .. lane_name, nonce .. text, 'EX', lane.keep_s)
end
