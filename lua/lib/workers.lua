--- The workers, each with the end of its lease.
-- Expects: workers_key, worker_prefix, and lib/clock.
local workers = {info_days = 7}

--- If no lease at all is still running, the server was away, not the workers: give every worker a new lease of
-- its own length. To be asked before the lease of whoever speaks is written. True if some lease was running,
-- or there was no worker at all.
function workers.were_here(lease_ms)
  if redis.call('ZCOUNT', workers_key, '(' .. clock.text(clock.now_ms), '+inf') > 0 then return true end
  local all = redis.call('ZRANGE', workers_key, 0, -1)
  for _, worker in ipairs(all) do
    local own_ms = redis.pcall('HGET', worker_prefix .. worker, 'lease_ms')
    own_ms = type(own_ms) == 'string' and tonumber(own_ms) or lease_ms
    redis.call('ZADD', workers_key, clock.text(clock.now_ms + own_ms), worker)
  end
  return #all == 0
end

--- Write a worker's lease.
function workers.lease(worker, lease_ms)
  redis.call('ZADD', workers_key, clock.text(clock.now_ms + lease_ms), worker)
  if not clock.simulated then redis.call('EXPIRE', worker_prefix .. worker, workers.info_days * 86400) end
end

--- When the earliest lease of another worker ends, 0 if there is no other.
function workers.next_end_ms(worker)
  local first = redis.call('ZRANGE', workers_key, 0, 1, 'WITHSCORES')
  for i = 1, #first, 2 do
    if first[i] ~= worker then return tonumber(first[i + 1]) end
  end
  return 0
end
