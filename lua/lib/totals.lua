--- Lifetime counters; they only grow. And their history: what they were when a minute, and a day, began to count.
--   enqueued refused done died failed crashed cancelled deleted expired, and `minute`: the last one that counted
-- The first script that counts anything in a new minute keeps the counters as they were before it; so what a minute
-- counted is what they were at the next one, less that, and a job costs one read more. (A counter for each minute
-- would cost every job a second write.) Each copy has the `minute` before it, and so they are a chain.
-- Expects: totals_key, history_prefix, and lib/clock.
local totals = {minutes_s = 25 * 3600, days_s = 400 * 86400, rolled = false}

--- Keep a copy of the counters for `unit`, a minute or a day. (If somebody's key of another type lies there, none.)
local function keep(unit, number, counters, life_s)
  local key = history_prefix .. unit .. ':' .. clock.text(number)
  local kept = redis.pcall('HSET', key, unpack(counters))
  if type(kept) == 'number' and not clock.simulated then redis.call('EXPIRE', key, life_s) end
end

--- Before anything is counted: begin a new minute, if this is one. Never an earlier one: where the clock went back
-- the last one counts on.
function totals.roll()
  totals.rolled = true
  local minute = math.floor(clock.now_ms / 60000)
  local last = tonumber(redis.call('HGET', totals_key, 'minute')) or 0
  if minute <= last then return end
  local counters = redis.call('HGETALL', totals_key)
  if last == 0 then counters[#counters + 1], counters[#counters + 2] = 'minute', '0' end
  keep('minute', minute, counters, totals.minutes_s)
  if math.floor(minute / 1440) > math.floor(last / 1440) then
    keep('day', math.floor(minute / 1440), counters, totals.days_s)
  end
  redis.call('HSET', totals_key, 'minute', clock.text(minute))
end

--- Add `count` to a counter.
function totals.add(counter, count)
  if count == 0 then return end
  if not totals.rolled then totals.roll() end
  redis.call('HINCRBY', totals_key, counter, count)
end
