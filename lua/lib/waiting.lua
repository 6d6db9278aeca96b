--- Taking a waiting job out of its place: scheduled, or ready.
-- Expects: ready_prefix, tombs_prefix, scheduled_prefix.
local waiting = {}

--- Take `id` out of where it waits; `state` is its place, `header` that of its record.
-- A ready one stays in its list, for a search there would cost as much as the list is long: it gets a tomb, and
-- the claim that meets it drops both. Where nothing but tombs is left the list goes at once.
function waiting.take_out(id, state, header)
  if state == 'scheduled' then
    redis.call('ZREM', scheduled_prefix .. header.queue, id)
    return
  end
  local list, tombs = ready_prefix .. header.queue .. ':' .. header.level, tombs_prefix .. header.queue
  redis.call('HSET', tombs, id, '1')
  if redis.call('HLEN', tombs) >= redis.call('LLEN', list) then redis.call('DEL', list, tombs) end
end
