--- A job's record: a header that Lua reads, then the payload, which it never does.
--   1 NUL queue NUL level NUL enqueued_ms NUL {tag value NUL} NUL payload
-- Tags, only where the job has them: m mode, k lock key, t ttl_ms of the lock, x expires_ms; d, always the last one,
-- since when it waits, where that is not since its enqueue: when it was due, or came back.
-- Payloads over `inline_max` bytes live in `bodies`, and the record ends at its header: reading
-- 100 headers must not read 100 x 256 KiB.
-- Expects: nothing.
local record = {inline_max = 2048}

--- The header of a record as a table, or nil if it is no record of ours.
function record.read(text)
  if not text then return nil end
  local queue, level, enqueued_ms, at = string.match(text, '^1%z(%Z+)%z(%d)%z(%d+)%z()')
  if not queue then return nil end
  local header = {queue = queue, level = level, enqueued_ms = tonumber(enqueued_ms), ttl_ms = 0}
  while string.byte(text, at) ~= 0 do
    local tag, value, after = string.match(text, '^(%l)(%Z*)%z()', at)
    if not tag then return nil end
    if tag == 'm' then header.mode = value
    elseif tag == 'k' then header.key = value
    elseif tag == 't' then header.ttl_ms = tonumber(value) or 0
    elseif tag == 'x' then header.expires_ms = tonumber(value)
    elseif tag == 'd' then header.since_ms, header.since_at = tonumber(value), at
    end
    at = after
  end
  if (header.mode == nil) ~= (header.key == nil) then return nil end
  header.inline, header.payload_at = at < #text, at + 1
  return header
end

--- The text of a record; `payload` is '' where it goes to `bodies`.
function record.text(queue, level, enqueued_text, tags, payload)
  return '1\0' .. queue .. '\0' .. level .. '\0' .. enqueued_text .. '\0' .. tags .. '\0' .. payload
end

--- The tags of a job: its lock (mode '' without one), when it expires ('' for never), since when it waits ('' for its
-- enqueue).
function record.tags(mode, key, ttl_text, expires_text, since_text)
  local tags = ''
  if mode ~= '' then tags = 'm' .. mode .. '\0k' .. key .. '\0' end
  if mode ~= '' and ttl_text ~= '0' then tags = tags .. 't' .. ttl_text .. '\0' end
  if expires_text ~= '' then tags = tags .. 'x' .. expires_text .. '\0' end
  return since_text == '' and tags or tags .. 'd' .. since_text .. '\0'
end

--- The same record with another time since when its job waits.
function record.since(text, header, since_text)
  local closing_at = header.payload_at - 1
  return string.sub(text, 1, (header.since_at or closing_at) - 1) .. 'd' .. since_text .. '\0'
    .. string.sub(text, closing_at)
end
