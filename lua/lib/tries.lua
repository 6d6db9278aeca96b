--- What went wrong with a job so far; only for jobs that failed, crashed, died or were put off.
--   attempts NUL crashes NUL putoffs NUL died_ms NUL started_ms NUL reason NUL last_error
-- died_ms is 0 while the job is not among the dead; tracebacks lie apart, in `errors`.
-- Expects: tries_key.
local tries = {}

--- An entry as a table; an absent or unreadable one reads as that of a job which never failed.
function tries.read(text)
  local attempts, crashes, putoffs, died_ms, started_ms, reason, error_text =
    string.match(text or '', '^(%d+)%z(%d+)%z(%d+)%z(%d+)%z(%d+)%z(%Z*)%z(.*)$')
  return {
    attempts = tonumber(attempts) or 0, crashes = tonumber(crashes) or 0, putoffs = tonumber(putoffs) or 0,
    died_ms = tonumber(died_ms) or 0, started_ms = tonumber(started_ms) or 0,
    reason = reason or '', error = error_text or '',
  }
end

--- Store the entry of `id`. (Joined by hand: in Lua 5.1 `%s` ends at a NUL, and an error text may hold one.)
function tries.write(id, entry)
  local numbers = string.format('%d\0%d\0%d\0%d\0%d\0', entry.attempts, entry.crashes, entry.putoffs,
    entry.died_ms, entry.started_ms)
  redis.call('HSET', tries_key, id, numbers .. entry.reason .. '\0' .. entry.error)
end
