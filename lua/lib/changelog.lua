--- The changelog: who did what, one line for all of a kind that one call of a script did.
--   act by at count ids ...      lists are joined by NUL; `count` is how many there were, also where not all are named
-- Two streams, each capped: `changelog` for what operators do, and workers to dead ones; `events` for what befalls jobs
-- by themselves. That may be so much that, in one stream, it would push out who paused a queue.
-- Expects: changelog_max, and lib/clock.
local changelog = {list_bytes = 2400}

--- A list as text: as many of its first entries as fit `list_bytes`.
function changelog.joined(list)
  local size, last = 0, 0
  while last < #list and size + #list[last + 1] <= changelog.list_bytes do
    last = last + 1
    size = size + #list[last] + 1
  end
  return table.concat(list, '\0', 1, last)
end

--- Write a line into the stream `key`: `by` did `act` to `ids`; no line where there are none. (nil: it was not done to
-- jobs.) `more` is a list of further fields and values. Where the stream has a foreign type there is no line, and
-- the action goes on.
function changelog.write(key, act, by, ids, more)
  if ids and #ids == 0 then return end
  redis.pcall('XADD', key, 'MAXLEN', '~', changelog_max, '*', 'act', act, 'by', by, 'at', clock.text(clock.now_ms),
    'count', ids and #ids or 0, 'ids', changelog.joined(ids or {}), unpack(more or {}))
end

--- The same for what was done to locks: `met` is a list of {id of the job, lock key, id of the other job}.
function changelog.write_locks(key, act, by, met, more)
  local ids, keys, others = {}, {}, {}
  for i = 1, #met do ids[i], keys[i], others[i] = met[i][1], met[i][2], met[i][3] end
  changelog.write(key, act, by, ids, {'keys', changelog.joined(keys), 'others', changelog.joined(others),
    unpack(more or {})})
end
