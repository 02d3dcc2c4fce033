-- The fixed window as the field writes it: a counter, and a TTL set by the first request.
--
-- KEYS[1]  the counter, one key for each window
-- ARGV     limit; window in milliseconds
-- Reply    1 if admitted, else 0; requests that still fit

local limit = tonumber(ARGV[1])
local used = redis.call('INCR', KEYS[1])
if used == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
if used > limit then return { 0, 0 } end
return { 1, limit - used }
