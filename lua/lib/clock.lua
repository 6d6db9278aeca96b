--- The time of this script: an argument, or the server's own clock when the argument is -1.
-- Expects: asked_ms. Gives: clock.now_ms, clock.now_us, clock.simulated, clock.after, clock.text.
-- In simulated time no key gets a TTL: the server would count it by the wrong clock.
-- All its fields are named at once: a table that grows is laid out anew each time, which every script would pay for.
local clock = {simulated = asked_ms >= 0, now_ms = asked_ms, now_us = asked_ms * 1000, after = false, text = false}
if not clock.simulated then
  local time = redis.call('TIME')
  clock.now_us = time[1] * 1000000 + time[2]
  clock.now_ms = math.floor(clock.now_us / 1000)
end

--- The moment `ms` from now, rounded up: by the true clock, too, nothing may run before its delay is over.
function clock.after(ms)
  return ms > 0 and math.ceil(clock.now_us / 1000) + ms or clock.now_ms
end

--- A whole number as text; Lua alone would write 1e14 as `1e+14`.
function clock.text(number)
  return string.format('%d', number)
end
