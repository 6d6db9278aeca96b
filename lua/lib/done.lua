--- The last finished jobs.
-- Expects: done_key, ends_key, results_key, done_max, and lib/batch, lib/totals, lib/waiters, lib/ends.
local done = {}

--- Stop the script here if somebody else's key of another type stands in the place of the list; see ends.check.
function done.check()
  redis.call('LLEN', done_key)
end

--- Add ids to the last finished ones. `ended` is a flat list of id, entry of `ends`; `results[i]` is what `ids[i]`
-- returned, nil for None.
-- What falls off the end loses its record here, so that history costs a constant. (At most 1,000 more than came: a
-- bound that was lowered must not make one script endless.)
function done.add(ids, ended, results)
  if #ids == 0 then return end
  batch.send('HSET', ends_key, ended)
  batch.send('LPUSH', done_key, ids)
  local returned = {}
  for i = 1, #ids do
    if results[i] then returned[#returned + 1], returned[#returned + 2] = ids[i], results[i] end
  end
  batch.send('HSET', results_key, returned)
  waiters.tell(ids, 'done', results)
  local over = redis.call('LLEN', done_key) - done_max
  if over > 0 then ends.forget(redis.call('RPOP', done_key, math.min(over, #ids + batch.portion))) end
  totals.add('done', #ids)
end
