-- The common sub-buckets: a hash with a counter per sixtieth of the window.
--
-- KEYS[1]  the hash: bucket -> requests
-- ARGV     limit; window in milliseconds; unused; time in milliseconds, or '' for the server's
-- Reply    1 if admitted, otherwise 0; remaining requests

local BUCKETS = 60

local now = tonumber(ARGV[4])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local limit = tonumber(ARGV[1])
local window = tonumber(ARGV[2])
local bucket = math.floor(now / (window / BUCKETS))
local used = 0
local fields = redis.call('HGETALL', KEYS[1])
for i = 1, #fields, 2 do
  if tonumber(fields[i]) <= bucket - BUCKETS then
    redis.call('HDEL', KEYS[1], fields[i])
  else
    used = used + fields[i + 1]
  end
end
if used >= limit then return { 0, 0 } end
redis.call('HINCRBY', KEYS[1], string.format('%.0f', bucket), 1)
redis.call('PEXPIRE', KEYS[1], window)
return { 1, limit - used - 1 }
