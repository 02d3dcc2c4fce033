-- The common sliding window log: a sorted set with a member per admitted request.
--
-- KEYS[1]  the sorted set
-- ARGV     limit; window in milliseconds; unique member; time in milliseconds, or '' for the
--          server's
-- Reply    1 if admitted, otherwise 0; remaining requests

local now = tonumber(ARGV[4])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local limit = tonumber(ARGV[1])
local window = tonumber(ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - window)
local used = redis.call('ZCARD', KEYS[1])
if used >= limit then return { 0, 0 } end
redis.call('ZADD', KEYS[1], now, string.format('%.0f-%s', now, ARGV[3]))
redis.call('PEXPIRE', KEYS[1], window)
return { 1, limit - used - 1 }
