--- Uniqueness locks: each a pointer from a key to the job that holds it.
--   <mode> <until_ms> <holder id>      until_ms 0: it lives with its job
-- Modes: d until_executed, e until_expired. `locks` is the index: key by until_ms, +inf where it lives with its job.
-- What decides is the holder, or the time in the value, against clock.now_ms; the TTL of the key is a net
-- (`lock_safety_ms` past the due time), renewed at each transition. In simulated time there is none.
-- Expects: lock_prefix, locks_key, lock_safety_ms, and lib/clock, lib/batch.
local lock = {}

--- mode, until_ms, holder of a lock's value; nil for what is no lock of ours.
function lock.read(value)
  if type(value) ~= 'string' then return nil end
  local mode, until_ms, holder = string.match(value, '^(%l) (%d+) (.+)$')
  if not mode then return nil end
  return mode, tonumber(until_ms), holder
end

--- How long the key of a lock may live: to its time, or `lock_safety_ms` past the job's due time.
local function life_ms(until_ms, due_ms)
  if until_ms > 0 then return math.max(until_ms - clock.now_ms, 1) end
  return math.max(due_ms - math.ceil(clock.now_us / 1000), 0) + lock_safety_ms
end

--- Give the lock to `id`. The key must be free.
function lock.take(key, mode, id, ttl_ms, due_ms)
  local until_ms = ttl_ms > 0 and clock.now_ms + ttl_ms or 0
  local value = mode .. ' ' .. clock.text(until_ms) .. ' ' .. id
  if clock.simulated then
    redis.call('SET', lock_prefix .. key, value)
  else
    redis.call('SET', lock_prefix .. key, value, 'PX', clock.text(life_ms(until_ms, due_ms)))
  end
  redis.call('ZADD', locks_key, until_ms > 0 and clock.text(until_ms) or '+inf', key)
end

--- Put the net of a lock that lives with its job further away; `due_ms` is when the job may run.
function lock.renew(key, due_ms)
  if clock.simulated then return end
  local mode, until_ms = lock.read(redis.pcall('GET', lock_prefix .. key))
  if mode and until_ms == 0 then
    redis.call('PEXPIRE', lock_prefix .. key, clock.text(life_ms(0, due_ms)))
  end
end

--- The same for a lock just met by an enqueue: only when less than half of the net is left.
function lock.renew_if_old(key)
  if clock.simulated then return end
  local left_ms = redis.call('PTTL', lock_prefix .. key)
  if left_ms >= 0 and left_ms * 2 < lock_safety_ms then lock.renew(key, clock.now_ms) end
end

--- Let go of the locks of jobs that ended: `held` is a flat list of key, id.
-- Only what is that job's own is freed; until_expired stays till its time is over.
function lock.free(held)
  if #held == 0 then return end
  local names = {}
  for i = 1, #held, 2 do names[#names + 1] = lock_prefix .. held[i] end
  for first = 1, #names, batch.portion do
    local last = math.min(first + batch.portion - 1, #names)
    local values = redis.call('MGET', unpack(names, first, last))
    local free_names, free_keys = {}, {}
    for i = first, last do
      local key, id = held[2 * i - 1], held[2 * i]
      local mode, until_ms, holder = lock.read(values[i - first + 1])
      if not mode then
        free_keys[#free_keys + 1] = key
      elseif holder == id and (mode ~= 'e' or until_ms <= clock.now_ms) then
        free_names[#free_names + 1] = names[i]
        free_keys[#free_keys + 1] = key
      end
    end
    if #free_names > 0 then redis.call('DEL', unpack(free_names)) end
    if #free_keys > 0 then redis.call('ZREM', locks_key, unpack(free_keys)) end
  end
end

--- Drop at most `limit` locks whose time is over, from the index and (in simulated time) the keys.
function lock.sweep(limit)
  local over = redis.call('ZRANGEBYSCORE', locks_key, '-inf', clock.text(clock.now_ms), 'LIMIT', 0, limit)
  if #over == 0 then return end
  local names = {}
  for i = 1, #over do names[i] = lock_prefix .. over[i] end
  redis.call('DEL', unpack(names))
  redis.call('ZREM', locks_key, unpack(over))
end
