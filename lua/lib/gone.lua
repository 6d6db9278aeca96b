--- Words about jobs that are gone: cancelled, expired.
-- Expects: gone_key, left_key, gone_max, and lib/batch.
local gone = {}

--- Keep a word about ids that are gone; it stays readable for the last `gone_max` of them. (At most 1,000 more than
-- came are dropped: a bound that was lowered must not make one script endless.)
function gone.tell(ids, word)
  if #ids == 0 then return end
  local words = {}
  for i = 1, #ids do words[2 * i - 1], words[2 * i] = ids[i], word end
  batch.send('HSET', gone_key, words)
  batch.send('LPUSH', left_key, ids)
  local over = redis.call('LLEN', left_key) - gone_max
  if over > 0 then
    batch.send('HDEL', gone_key, redis.call('RPOP', left_key, math.min(over, #ids + batch.portion)))
  end
end

--- Forget the word about an id that comes again. (Its place in the list, too: else the old place, when it is the
-- oldest, would take a newer word about the same id with it.) O(ids that left after it).
function gone.forget(id)
  if redis.call('HDEL', gone_key, id) == 1 then redis.call('LREM', left_key, 1, id) end
end
