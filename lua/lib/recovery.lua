--- Giving jobs back: those of a worker that fell, left, or never heard of its claim.
-- Expects: jobs_key, tries_key, where_key, workers_key, fallen_key, running_prefix, worker_prefix, dead_key,
-- max_crashes, dead_max, dead_age_ms, and lib/clock, lib/record, lib/tries, lib/lease, lib/lock, lib/ready,
-- lib/totals, lib/progress, lib/dead.
-- What it did is noted for the changelog: `workers` recovered, `ids` taken from them, how many of them `crashed`, and
-- those of them that were `buried` for it.
local recovery = {jobs_max = 500, workers = {}, ids = {}, crashed = 0, buried = {}}

local noted = {}

--- Note that a worker is recovered.
local function note(worker)
  if noted[worker] then return end
  noted[worker] = true
  recovery.workers[#recovery.workers + 1] = worker
end

--- Give one job back to the head of its queue. `crashed`: its process died with it, which is an attempt; after
-- `max_crashes` of them it is buried, so that no job can bring down one worker after the other.
local function give_back(running_key, id, token, worker, crashed)
  dead.check(dead_key)
  local text = redis.call('HGET', jobs_key, id)
  local header = record.read(text)
  redis.call('HDEL', running_key, id)
  redis.call('HDEL', where_key, id)
  progress.drop({id})
  local tried = tries.read(redis.call('HGET', tries_key, id))
  if crashed then
    tried.attempts, tried.crashes = tried.attempts + 1, tried.crashes + 1
    tried.started_ms = tonumber(lease.started_text(token))
    tried.error = 'the worker ' .. worker .. ' died while it ran this job'
    totals.add('crashed', 1)
    recovery.crashed = recovery.crashed + 1
    if header then tries.write(id, tried) end
  end
  if not header then
    dead.bury(dead_key, id, nil, tried, dead.MALFORMED)
  elseif crashed and tried.crashes >= max_crashes then
    recovery.buried[#recovery.buried + 1] = id
    dead.bury(dead_key, id, header, tried, {reason = 'crashed',
      error = 'crashed ' .. tried.crashes .. ' times, the last time with the worker ' .. worker})
  elseif not ready.sound(header.queue, header.level) then
    dead.bury(dead_key, id, header, tried, dead.UNSOUND)
  else
    if header.mode then lock.renew(header.key, clock.now_ms) end
    -- One that was not begun has waited all the time.
    if crashed then redis.call('HSET', jobs_key, id, record.since(text, header, clock.text(clock.now_ms))) end
    ready.push_head(header.queue, header.level, id)
    return
  end
  dead.trim(dead_key, dead_max, dead_age_ms)
end

--- The entries of a worker as {id, entry, fence}, the highest fence first: given back in this order to the heads
-- of their queues, the one that was claimed first is first again.
local function entries(running_key)
  local all, sorted = redis.pcall('HGETALL', running_key), {} -- of a foreign type: an error, which has no items
  for i = 1, #all, 2 do
    sorted[#sorted + 1] = {id = all[i], entry = all[i + 1], fence = lease.fence(lease.token(all[i + 1]))}
  end
  table.sort(sorted, function(a, b) return a.fence > b.fence end)
  return sorted
end

--- Give back what `worker` holds, at most `limit` jobs; answers how many. `crashed`: see give_back; only jobs
-- claimed to start count a crash, for what lay in the hand was never begun.
function recovery.worker(worker, limit, crashed)
  local running_key = running_prefix .. worker
  local all = entries(running_key)
  local count = math.min(#all, limit)
  for i = 1, count do
    local one = all[i]
    recovery.ids[#recovery.ids + 1] = one.id
    give_back(running_key, one.id, lease.token(one.entry), worker, crashed and lease.to_start(one.entry))
  end
  if count > 0 then note(worker) end
  if count == #all then
    redis.call('ZREM', fallen_key, worker)
    redis.call('DEL', worker_prefix .. worker)
  end
  return count
end

--- Take a worker's lease away: from now on it is told `lost`, and its tokens are worth nothing once its jobs are
-- given back. First this, then the jobs; the other way round it could claim in between.
function recovery.fell(worker)
  redis.call('ZREM', workers_key, worker)
  redis.call('ZADD', fallen_key, clock.text(clock.now_ms), worker)
  note(worker)
end

--- Recover workers whose lease is over, and what is left of earlier ones; at most jobs_max jobs a call.
-- Answers how many jobs went back.
function recovery.sweep()
  local over = redis.call('ZRANGEBYSCORE', workers_key, '-inf', clock.text(clock.now_ms), 'LIMIT', 0, 100)
  for _, worker in ipairs(over) do recovery.fell(worker) end
  local count = 0
  for _, worker in ipairs(redis.call('ZRANGE', fallen_key, 0, 99)) do
    if count >= recovery.jobs_max then break end
    count = count + recovery.worker(worker, recovery.jobs_max - count, true)
  end
  return count
end

--- Give back, uncounted, what `worker` holds but does not name, if older than a lease: a claim whose answer
-- never arrived. `named` is a set of ids.
function recovery.unheard(worker, named, lease_ms)
  local running_key = running_prefix .. worker
  for _, one in ipairs(entries(running_key)) do
    if not named[one.id] and one.fence + lease_ms * 1000 < clock.now_us then
      give_back(running_key, one.id, lease.token(one.entry), worker, false)
    end
  end
end
