#!lua flags=no-writes
--- Look at jobs by id.
-- Answers with a snapshot for each id, in order; an unknown id has the state `unknown`.
local jobs_key         = KEYS[1]  -- hash    id -> record
local bodies_key       = KEYS[2]  -- hash    id -> payload over 2 KiB
local tries_key        = KEYS[3]  -- hash    id -> what went wrong so far
local errors_key       = KEYS[4]  -- hash    id -> traceback
local where_key        = KEYS[5]  -- hash    id -> worker, of running jobs with a lock
local ends_key         = KEYS[6]  -- hash    id -> how a finished job ended
local gone_key         = KEYS[7]  -- hash    id -> word about a job that is gone
local workers_key      = KEYS[8]  -- zset    worker by lease end
local fallen_key       = KEYS[9]  -- zset    workers being recovered
local scheduled_prefix = KEYS[10] -- zsets   .. queue: ids by run_at_ms
local running_prefix   = KEYS[11] -- hashes  .. worker: id -> kind and token
local progress_key     = KEYS[12] -- hash    id -> how far it is, while it runs
local kept_key         = KEYS[13] -- zset    finished ids with a result_ttl, by its end
local ids, ids_at      = ARGV, 1            -- from here on the ids
--- @include lib/record.lua
--- @include lib/tries.lua
--- @include lib/place.lua
--- @include lib/snapshot.lua

local found = {}
for i = ids_at, #ids do found[i] = snapshot.of(ids[i], true) end
return found
