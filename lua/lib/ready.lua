--- The lists of ids that are ready to run, and the tokens that wake a waiting worker.
-- New ids come in on the left, the next to run is on the right; the head of a queue is its right end.
-- Expects: ready_prefix, scheduled_prefix, wake_prefix, and lib/clock, lib/batch.
local ready = {}

--- Can ids be put into this queue? False where somebody else's key of another type stands in the way: asked
-- before the first write, for Redis would not undo what went before the failure.
function ready.sound(queue, level)
  return type(redis.pcall('LLEN', ready_prefix .. queue .. ':' .. level)) == 'number'
    and type(redis.pcall('ZCARD', scheduled_prefix .. queue)) == 'number'
end

--- Leave a wake-up token if none lies there: at most one, and never a job.
function ready.wake(queue)
  local key = wake_prefix .. queue
  if redis.pcall('LLEN', key) == 0 then redis.call('LPUSH', key, '1') end
end

--- Put ids behind all others of a level.
function ready.push(queue, level, ids)
  batch.send('LPUSH', ready_prefix .. queue .. ':' .. level, ids)
  ready.wake(queue)
end

--- Put an id before all others: it has waited before.
function ready.push_head(queue, level, id)
  redis.call('RPUSH', ready_prefix .. queue .. ':' .. level, id)
  ready.wake(queue)
end

--- Put an id among the scheduled; a new first one wakes a waiter, who would else sleep past it.
function ready.schedule(queue, id, due_ms)
  local key = scheduled_prefix .. queue
  local first = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
  redis.call('ZADD', key, clock.text(due_ms), id)
  if not first[1] or due_ms < tonumber(first[2]) then ready.wake(queue) end
end
