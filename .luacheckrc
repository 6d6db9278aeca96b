-- What a script may see inside the server: Lua 5.1, without the tables that Redis and Valkey do not both give.
std = "lua51"
read_globals = { "redis", "cjson", "KEYS", "ARGV" }
max_line_length = 120
-- 431: a part's parameter may have the name of a binding of the script that takes the part in.
ignore = { "431" }
