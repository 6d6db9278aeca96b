--- All that is stored under a job's id.
-- Expects: jobs_key, bodies_key, tries_key, errors_key, and lib/batch.
local job = {}

--- Forget jobs whole: record, body, tries, traceback.
function job.forget(ids)
  if #ids == 0 then return end
  batch.send('HDEL', jobs_key, ids)
  batch.send('HDEL', bodies_key, ids)
  batch.send('HDEL', tries_key, ids)
  batch.send('HDEL', errors_key, ids)
end
