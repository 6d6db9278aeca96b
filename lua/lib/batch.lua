--- Commands over long lists, in portions that fit Lua's stack (`unpack` fails at about 8,000 values).
-- Expects: nothing. A portion is even, so that pairs (field, value) are never torn apart.
local batch = {portion = 1000}

--- Send `command key` with all of `list` behind it, a portion at a time.
function batch.send(command, key, list)
  for first = 1, #list, batch.portion do
    redis.call(command, key, unpack(list, first, math.min(first + batch.portion - 1, #list)))
  end
end

--- The values of the fields `list` of the hash `key`, in order; false where there is none.
function batch.fields(key, list)
  if #list <= batch.portion then
    return #list == 0 and {} or redis.call('HMGET', key, unpack(list))
  end
  local values = {}
  for first = 1, #list, batch.portion do
    local part = redis.call('HMGET', key, unpack(list, first, math.min(first + batch.portion - 1, #list)))
    for i = 1, #part do values[first + i - 1] = part[i] end
  end
  return values
end
