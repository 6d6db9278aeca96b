#!lua flags=allow-oom
--- Open a namespace: write its format down if it is new, and tell which it has.
-- Answers with the format's version; a client that knows only older ones must not touch it.
local meta_key = KEYS[1] -- hash format: version; partitions
local format   = ARGV[1] -- the version a new namespace gets

redis.call('HSETNX', meta_key, 'format', format)
redis.call('HSETNX', meta_key, 'partitions', '1')
return redis.call('HGET', meta_key, 'format')
