--- Settling what a worker's jobs ended with.
-- Expects: jobs_key, tries_key, errors_key, where_key, running_key, dead_key, dead_max, dead_age_ms, again, list, and
-- lib/clock, lib/batch, lib/record, lib/tries, lib/lease, lib/lock, lib/ready, lib/totals, lib/waiters, lib/progress,
-- lib/done, lib/kept, lib/dead.
-- `settle.refused` is a flat list of id, word, for settlements that changed nothing.
local settle = {refused = {}}

--- Report that a settlement changed nothing.
local function refuse(id, entry)
  settle.refused[#settle.refused + 1] = id
  settle.refused[#settle.refused + 1] = (again and not entry) and 'gone' or 'stale'
end

--- Let go of the lock of a job that is done: its key and id are added to `held`, to be freed at once with others.
local function let_go(id, held)
  dead.check(dead_key)
  local header = record.read(redis.call('HGET', jobs_key, id))
  if header and header.mode then
    held[#held + 1] = header.key
    held[#held + 1] = id
  end
  redis.call('HDEL', where_key, id)
end

--- Settle `count` jobs that are done, from `at` on, `stride` values each: id and token, and with a stride of 4 how
-- long what it returned is kept, and that. `ttl_ms` is '' for as long as the job is among the last finished ones,
-- '0' for not at all, '-1' until it is deleted. An empty result is None; with '0' it is one that could not be carried.
function settle.done(at, count, stride)
  local asked, out, ids, ended, results, held, settled = {}, {}, {}, {}, {}, {}, {}
  for i = 1, count do asked[i] = list[at + stride * (i - 1)] end
  local entries, kept_count = batch.fields(running_key, asked), 0
  for i = 1, count do
    local id, place = asked[i], at + stride * (i - 1)
    local token, entry = list[place + 1], not settled[id] and entries[i] -- named twice: nobody's the second time
    if lease.owns(entry, token) then
      settled[id] = true
      out[#out + 1] = id
      if lease.has_lock(entry) then let_go(id, held) end
      local ttl_ms, result = '', ''
      if stride > 2 then ttl_ms, result = list[place + 2], list[place + 3] end
      local text = lease.started_text(token) .. ' ' .. clock.text(clock.now_ms)
      if ttl_ms == '' then
        ids[#ids + 1], ended[#ended + 1], ended[#ended + 2] = id, id, text
        if result ~= '' then results[#ids] = result end
      elseif ttl_ms == '0' then
        -- Who waits by now is handed it all the same.
        waiters.tell({id}, result == '' and 'lost' or 'done', {result})
        ids[#ids + 1], ended[#ended + 1], ended[#ended + 2] = id, id, text .. ' -'
      else
        kept_count = kept_count + 1
        kept.add(id, text, result, tonumber(ttl_ms))
        waiters.tell({id}, 'done', {result})
      end
    else
      refuse(id, entry)
    end
  end
  if #out == 0 then return end
  batch.send('HDEL', running_key, out)
  progress.drop(out)
  lock.free(held)
  done.add(ids, ended, results)
  if kept_count > 0 then
    kept.drop(2 * kept_count)
    totals.add('done', kept_count)
  end
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
  local text = redis.call('HGET', jobs_key, id)
  local header = record.read(text)
  local tried = tries.read(redis.call('HGET', tries_key, id))
  redis.call('HDEL', running_key, id)
  redis.call('HDEL', where_key, id)
  progress.drop({id})
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
  redis.call('HSET', jobs_key, id, record.since(text, header, clock.text(due_ms)))
  ready.schedule(header.queue, id, due_ms)
  return nil
end
