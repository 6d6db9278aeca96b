--- Settling what a worker's jobs ended with.
-- Expects: jobs_key, tries_key, errors_key, where_key, running_key, dead_key, dead_max, dead_age_ms, again, list, and
-- lib/clock, lib/batch, lib/record, lib/tries, lib/lease, lib/lock, lib/ready, lib/totals, lib/done, lib/dead.
-- `settle.refused` is a flat list of id, word, for settlements that changed nothing.
local settle = {refused = {}}

--- Report that a settlement changed nothing.
local function refuse(id, entry)
  settle.refused[#settle.refused + 1] = id
  settle.refused[#settle.refused + 1] = (again and not entry) and 'gone' or 'stale'
end

--- Settle `count` jobs that are done, from `at` on: id, token, id, token ...
function settle.done(at, count)
  done.check()
  local asked, ids, ends, held, settled = {}, {}, {}, {}, {}
  for i = 1, count do asked[i] = list[at + 2 * (i - 1)] end
  local entries = batch.fields(running_key, asked)
  for i = 1, count do
    local id, token = asked[i], list[at + 2 * i - 1]
    local entry = not settled[id] and entries[i] -- named twice, it is nobody's the second time
    if lease.owns(entry, token) then
      settled[id] = true
      ids[#ids + 1] = id
      ends[#ends + 1] = id
      ends[#ends + 1] = lease.started_text(token) .. ' ' .. clock.text(clock.now_ms)
      if lease.has_lock(entry) then
        local header = record.read(redis.call('HGET', jobs_key, id))
        if header and header.mode then
          held[#held + 1] = header.key
          held[#held + 1] = id
        end
        redis.call('HDEL', where_key, id)
      end
    else
      refuse(id, entry)
    end
  end
  if #ids == 0 then return end
  batch.send('HDEL', running_key, ids)
  lock.free(held)
  done.add(ids, ends)
end

--- Settle one job that ended otherwise.
--   retry   a failure with attempts left: scheduled, `delay_ms` from now
--   bury    a failure without: dead
--   snooze  no failure: scheduled, no attempt used up
--   putoff  this worker does not know the job: the same, and counted, so that the pauses can grow
--   back    handed back unrun or unfinished: to the head of its queue, no attempt used up
function settle.other(word, id, token, delay_ms, reason, error_text, trace)
  local entry = redis.call('HGET', running_key, id)
  if not lease.owns(entry, token) then return refuse(id, entry) end
  dead.check(dead_key)
  local header = record.read(redis.call('HGET', jobs_key, id))
  local tried = tries.read(redis.call('HGET', tries_key, id))
  redis.call('HDEL', running_key, id)
  redis.call('HDEL', where_key, id)
  if word == 'bury' or word == 'retry' then
    tried.attempts = tried.attempts + (reason == 'malformed' and 0 or 1)
    tried.started_ms = tonumber(lease.started_text(token))
    if reason ~= 'malformed' then totals.add('failed', 1) end
  end
  if header and word ~= 'bury' and not ready.sound(header.queue, header.level) then
    dead.bury(dead_key, id, header, tried, dead.UNSOUND)
    dead.trim(dead_key, dead_max, dead_age_ms)
    return nil
  end
  if word == 'bury' or not header then
    dead.bury(dead_key, id, header, tried, {reason = header and reason or 'malformed', error = error_text,
      trace = trace ~= '' and trace or nil})
    dead.trim(dead_key, dead_max, dead_age_ms)
    return nil
  end
  if word == 'back' then
    if header.mode then lock.renew(header.key, clock.now_ms) end
    ready.push_head(header.queue, header.level, id)
    return nil
  end
  if word == 'retry' then
    tried.error = error_text
    redis.call('HSET', errors_key, id, trace)
  elseif word == 'putoff' then
    tried.putoffs = tried.putoffs + 1
  end
  if word ~= 'snooze' then tries.write(id, tried) end
  local due_ms = clock.after(delay_ms)
  if header.mode then lock.renew(header.key, due_ms) end
  ready.schedule(header.queue, id, due_ms)
  return nil
end
