-- The two-window counter as the field writes it: what was used in the window before counts by the share of it
-- that a window ending now would cover.
--
-- KEYS     counter of this window; counter of the window before
-- ARGV     limit; window in milliseconds; nothing; time in milliseconds
-- Reply    1 if admitted, else 0; requests that still fit

local limit = tonumber(ARGV[1])
local window = tonumber(ARGV[2])
local now = tonumber(ARGV[4])
local current = tonumber(redis.call('GET', KEYS[1]) or 0)
local previous = tonumber(redis.call('GET', KEYS[2]) or 0)
local used = current + math.floor(previous * (1 - now % window / window))
if used >= limit then return { 0, 0 } end
if redis.call('INCR', KEYS[1]) == 1 then redis.call('PEXPIRE', KEYS[1], 2 * window) end
return { 1, limit - used - 1 }
