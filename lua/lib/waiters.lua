--- Callers who wait for the end of a job, and are told it: the list of one process gets the end, and its one
-- blocking pop serves all its callers.
--   waiters: id -> process/ticket process/ticket ...
--   answers: id NUL ticket NUL word NUL text      text: the result of a finished job, the error of a dead one
-- The ticket is a number that grows with each caller of a process: who came later is not told an earlier end, where an
-- id came again meanwhile.
-- Expects: waiters_key, answers_prefix, and lib/batch.
local waiters = {lists_max = 100, answers_s = 60}

--- Tell whoever waits for one of `ids` that it ended with `word`; `texts[i]` goes with `ids[i]`, if there are any.
-- A key of a foreign type in the way costs the callers their answer, and nobody a job.
function waiters.tell(ids, word, texts)
  local count = redis.pcall('HLEN', waiters_key)
  if #ids == 0 or count == 0 or type(count) ~= 'number' then return end
  local lists = batch.fields(waiters_key, ids)
  for i = 1, #ids do
    if lists[i] then
      local told = '\0' .. word .. '\0' .. (texts and texts[i] or '')
      for process, ticket in string.gmatch(lists[i], '(%S+)/(%d+)') do
        local key, text = answers_prefix .. process, ids[i] .. '\0' .. ticket .. told
        if type(redis.pcall('LPUSH', key, text)) == 'number' then redis.call('EXPIRE', key, waiters.answers_s) end
      end
      redis.call('HDEL', waiters_key, ids[i])
    end
  end
end

--- Note that the list of `process` is to get the end of `id`, with the highest ticket that asked. (A job that more
-- processes wait for than `lists_max` tells the last of them.)
function waiters.add(id, process, ticket)
  local names = {}
  for other, number in string.gmatch(redis.call('HGET', waiters_key, id) or '', '(%S+)/(%d+)') do
    if other ~= process then
      names[#names + 1] = other .. '/' .. number
    elseif tonumber(number) > tonumber(ticket) then
      ticket = number
    end
  end
  local first = math.max(#names - waiters.lists_max + 2, 1)
  names[#names + 1] = process .. '/' .. ticket
  redis.call('HSET', waiters_key, id, table.concat(names, ' ', first))
end
