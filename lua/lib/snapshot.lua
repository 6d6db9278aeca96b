--- One job as a reader sees it.
--   {id, state, record, body, tries, traceback, end, worker, token, run_at_ms, progress, kept_until_ms}
-- `end` is 'started_ms finished_ms' of a finished job, `kept_until_ms` the score in `kept` of one that has a
-- result_ttl, `progress` what a running one said; whatever a job does not have is ''.
-- Expects: jobs_key, bodies_key, tries_key, errors_key, ends_key, kept_key, progress_key, running_prefix,
-- scheduled_prefix, and lib/place.
-- `whole`: with body and traceback.
local snapshot = {}

--- The snapshot of `id`.
function snapshot.of(id, whole)
  local text = redis.call('HGET', jobs_key, id)
  local state, header, worker = place.of(id, text)
  local body, trace, token, run_at_ms, far, until_ms = '', '', '', '', false, false
  if whole and header and not header.inline then body = redis.call('HGET', bodies_key, id) or '' end
  if whole then trace = redis.call('HGET', errors_key, id) or '' end
  if worker then token = redis.call('HGET', running_prefix .. worker, id) or '' end
  if state == 'running' then far = redis.pcall('HGET', progress_key, id) end
  if state == 'done' then until_ms = redis.pcall('ZSCORE', kept_key, id) end
  if state == 'scheduled' then run_at_ms = redis.call('ZSCORE', scheduled_prefix .. header.queue, id) end
  return {id, state, text or '', body, redis.call('HGET', tries_key, id) or '', trace,
    redis.call('HGET', ends_key, id) or '', worker or '', token, run_at_ms,
    type(far) == 'string' and far or '', type(until_ms) == 'string' and until_ms or ''}
end
