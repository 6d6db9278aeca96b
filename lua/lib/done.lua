--- The last finished jobs.
-- Expects: done_key, ends_key, done_max, and lib/batch, lib/job, lib/totals.
local done = {}

--- Stop the script here if somebody else's key of another type stands in their place: asked before the first write for
-- a job that is done, which would else be left in no place at all.
function done.check()
  redis.call('LLEN', done_key)
  redis.call('HLEN', ends_key)
end

--- Add ids to the finished ones; `ends` is a flat list of id, 'started_ms finished_ms'.
-- What falls off the end loses its record here, so that history costs a constant. (At most 1,000 more than came: a
-- bound that was lowered must not make one script endless.)
function done.add(ids, ends)
  if #ids == 0 then return end
  batch.send('HSET', ends_key, ends)
  batch.send('LPUSH', done_key, ids)
  local over = redis.call('LLEN', done_key) - done_max
  if over > 0 then
    local old = redis.call('RPOP', done_key, math.min(over, #ids + batch.portion))
    batch.send('HDEL', ends_key, old)
    job.forget(old)
  end
  totals.add('done', #ids)
end
