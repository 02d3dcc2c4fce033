-- The common two-window counter: the count of the previous window is weighted by the share that a window ending now covers.
--
-- KEYS     counter of this window; counter of the previous window
-- ARGV     limit; window in milliseconds; unused; time in milliseconds
-- Reply    1 if admitted, otherwise 0; remaining requests

local limit = tonumber(ARGV[1])
local window = tonumber(ARGV[2])
local now = tonumber(ARGV[4])
local current = tonumber(redis.call('GET', KEYS[1]) or 0)
local previous = tonumber(redis.call('GET', KEYS[2]) or 0)
local used = current + math.floor(previous * (1 - now % window / window))
if used >= limit then return { 0, 0 } end
if redis.call('INCR', KEYS[1]) == 1 then redis.call('PEXPIRE', KEYS[1], 2 * window) end
return { 1, limit - used - 1 }
