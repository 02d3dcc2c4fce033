-- The common counting semaphore: a sorted set of holders by the time of acquisition. ZREM releases a slot.
--
-- KEYS[1]  the sorted set
-- ARGV     slots; TTL of a slot in milliseconds; holder; time in milliseconds, or '' for the server's
-- Reply    1 if admitted, otherwise 0; free slots

local now = tonumber(ARGV[4])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local limit = tonumber(ARGV[1])
local ttl = tonumber(ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ttl)
local used = redis.call('ZCARD', KEYS[1])
if used >= limit then return { 0, 0 } end
redis.call('ZADD', KEYS[1], now, ARGV[3])
redis.call('EXPIRE', KEYS[1], math.ceil(ttl / 1000))
return { 1, limit - used - 1 }
