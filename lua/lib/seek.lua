--- Finding where to go on in a sorted set, behind an entry that may have left it.
-- Expects: nothing.
local seek = {room_least = 1000}

--- How many entries a listing looks at at most, of a place that has `count` when it begins: as many as are there, and
-- as many again that come in between meanwhile.
function seek.room(count)
  return 2 * count + seek.room_least
end

--- Does text `a` come before text `b`, byte by byte? (How Lua itself compares depends on the server's locale.)
local function before(a, b)
  for i = 1, math.min(#a, #b) do
    local one, two = string.byte(a, i), string.byte(b, i)
    if one ~= two then return one < two end
  end
  return #a < #b
end

--- How many entries of `key` are not behind `member` at `score`, a text: the rank of the first one that is.
-- Entries of one score are ordered by their bytes; there may be many (all of midnight), so they are halved again and
-- again: O(log n). By ZRANK alone a page would end where its last entry has left meanwhile.
function seek.behind(key, score, member)
  local low = redis.call('ZCOUNT', key, '-inf', '(' .. score)
  local high = redis.call('ZCOUNT', key, '-inf', score)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local there = redis.call('ZRANGE', key, middle, middle)[1]
    if there and before(member, there) then high = middle else low = middle + 1 end
  end
  return low
end
