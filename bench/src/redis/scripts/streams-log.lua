-- The common sliding window log on a stream: an entry per admitted request, trimmed by time.
--
-- KEYS[1]  the stream
-- ARGV     limit; window in milliseconds; unused; time in milliseconds, or '' for the server's
-- Reply    1 if admitted, otherwise 0; remaining requests

local now = tonumber(ARGV[4])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local limit = tonumber(ARGV[1])
local window = tonumber(ARGV[2])
redis.call('XTRIM', KEYS[1], 'MINID', '=', string.format('%.0f', now - window + 1))
local used = redis.call('XLEN', KEYS[1])
if used >= limit then return { 0, 0 } end
redis.call('XADD', KEYS[1], string.format('%.0f-*', now), 'r', '')
redis.call('PEXPIRE', KEYS[1], window)
return { 1, limit - used - 1 }
