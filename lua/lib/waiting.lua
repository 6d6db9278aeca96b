--- Taking a waiting job out of its place: scheduled, or ready.
-- Expects: ready_prefix, tombs_prefix, scheduled_prefix.
local waiting = {}

--- Can this job be taken out? False where a key of another type stands in the way: asked before the first write.
function waiting.sound(state, header)
  if state == 'scheduled' then return true end
  local list, tombs = ready_prefix .. header.queue .. ':' .. header.level, tombs_prefix .. header.queue
  return type(redis.pcall('LLEN', list)) == 'number' and type(redis.pcall('HLEN', tombs)) == 'number'
end

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
