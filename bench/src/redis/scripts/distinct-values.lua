-- The common script for exact distinct values: a sorted set of values by the time of their last request.
--
-- KEYS[1]  the sorted set
-- ARGV     limit; window in milliseconds; the request's value; time in milliseconds, or '' for the server's
-- Reply    1 if admitted, otherwise 0; remaining values

local now = tonumber(ARGV[4])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local limit = tonumber(ARGV[1])
local window = tonumber(ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - window)
local is_known = redis.call('ZSCORE', KEYS[1], ARGV[3])
local used = redis.call('ZCARD', KEYS[1])
if not is_known then
  if used >= limit then return { 0, 0 } end
  used = used + 1
end
redis.call('ZADD', KEYS[1], now, ARGV[3])
redis.call('PEXPIRE', KEYS[1], window)
return { 1, limit - used }
