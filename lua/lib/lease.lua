--- The right to run a job: an entry in its worker's `running` hash, a kind and a fencing token.
--   <kind><token>     kind: s claimed to start, h for the hand; S and H the same for a job with a lock
--   token             <fence>-<nonce>: the fence only grows and is about the claim's time in us, the nonce is random
-- Expects: nothing.
local lease = {}

--- The entry of a claim.
function lease.entry(to_start, has_lock, token)
  return (to_start and (has_lock and 'S' or 's') or (has_lock and 'H' or 'h')) .. token
end

--- The token of an entry.
function lease.token(entry)
  return string.sub(entry, 2)
end

--- Is this entry (false if there is none) the one of `token`?
function lease.owns(entry, token)
  return entry and string.sub(entry, 2) == token
end

--- Does the job of this entry have a lock?
function lease.has_lock(entry)
  local kind = string.byte(entry)
  return kind == 83 or kind == 72
end

--- Was it claimed to be started at once?
function lease.to_start(entry)
  local kind = string.byte(entry)
  return kind == 83 or kind == 115
end

--- The fence of a token, a number of about the claim's time in us.
function lease.fence(token)
  return tonumber(string.match(token, '^(%d+)-')) or 0
end

--- When it was claimed, in ms, as text.
function lease.started_text(token)
  return string.format('%d', math.floor(lease.fence(token) / 1000))
end
