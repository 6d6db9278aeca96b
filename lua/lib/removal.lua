--- Taking waiting or dead jobs away before they were done.
-- Expects: lib/job, lib/lock, lib/totals, lib/waiters.
local removal = {}

--- Take jobs away whole, with their locks; `headers[i]` is that of `ids[i]`, or false. Counted as `counter`.
function removal.jobs(ids, headers, counter)
  local held = {}
  for i = 1, #ids do
    local header = headers[i]
    if header and header.mode then
      held[#held + 1] = header.key
      held[#held + 1] = ids[i]
    end
  end
  lock.free(held)
  job.forget(ids)
  waiters.tell(ids, counter)
  totals.add(counter, #ids)
end
