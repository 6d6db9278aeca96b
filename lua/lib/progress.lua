--- How far running jobs say they are; only while they run.
--   value at_ms text      value: 0 to 1, as it was sent; the text may be empty
-- Expects: progress_key, and lib/batch.
local progress = {some = nil}

--- Forget what jobs said whose runs are over. Where no job says anything that costs one look a script.
function progress.drop(ids)
  if progress.some == nil then
    local count = redis.pcall('HLEN', progress_key) -- of a foreign type: an error, and nothing of ours is there
    progress.some = type(count) == 'number' and count > 0
  end
  if progress.some then batch.send('HDEL', progress_key, ids) end
end
