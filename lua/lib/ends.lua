--- How finished jobs ended, and what they returned.
--   ends:    id -> started_ms finished_ms[ -]        -: it returned something, and that is not kept
--   results: id -> result                            only of those that returned something
-- Expects: ends_key, results_key, and lib/batch, lib/job.
local ends = {}

--- Stop the script here if somebody else's key of another type stands in their place: asked before the first write for
-- a job that is done, which would else be left in no place at all.
function ends.check()
  redis.call('HLEN', ends_key)
  redis.call('HLEN', results_key)
end

--- Forget finished jobs whole. (Where no job returns anything the results are not even asked.)
function ends.forget(ids)
  batch.send('HDEL', ends_key, ids)
  if redis.call('EXISTS', results_key) == 1 then batch.send('HDEL', results_key, ids) end
  job.forget(ids)
end
