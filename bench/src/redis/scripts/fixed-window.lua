-- The common fixed window: a counter whose first request sets the TTL.
--
-- KEYS[1]  the counter, one key per window
-- ARGV     limit; window in milliseconds
-- Reply    1 if admitted, otherwise 0; remaining requests

local limit = tonumber(ARGV[1])
local used = redis.call('INCR', KEYS[1])
if used == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
if used > limit then return { 0, 0 } end
return { 1, limit - used }
