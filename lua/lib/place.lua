--- Where a job is: the only answer to that question. A job is where its id is; no state field could disagree.
-- Expects: tries_key, ends_key, gone_key, where_key, scheduled_prefix, running_prefix, workers_key, fallen_key, and
-- lib/record, lib/tries.
-- Never a search in `ready`: what has a record and is in no other place is ready.
local place = {}

--- The worker that runs `id`, by asking each (O(workers)); a job with a lock is in `where` instead.
local function runner(id)
  for _, key in ipairs({workers_key, fallen_key}) do
    for _, worker in ipairs(redis.call('ZRANGE', key, 0, -1)) do
      if redis.pcall('HEXISTS', running_prefix .. worker, id) == 1 then return worker end
    end
  end
  return nil
end

--- The state of `id`, whose record is `text`; with it the header, and where running, the worker.
-- `unknown`: never heard of, or forgotten. `malformed`: its record is none of ours.
function place.of(id, text)
  if not text then return redis.call('HGET', gone_key, id) or 'unknown' end
  local header = record.read(text)
  if redis.call('HEXISTS', ends_key, id) == 1 then return 'done', header end
  if tries.read(redis.call('HGET', tries_key, id)).died_ms > 0 then return 'dead', header end
  local worker = redis.call('HGET', where_key, id)
  if worker then return 'running', header, worker end
  if not header then return 'malformed' end
  local due = redis.pcall('ZSCORE', scheduled_prefix .. header.queue, id)
  if type(due) == 'string' then return 'scheduled', header end
  if not header.mode then
    worker = runner(id)
    if worker then return 'running', header, worker end
  end
  return 'ready', header
end
