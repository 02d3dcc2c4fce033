-- The common GCRA script: a string with the time at which the next request would arrive at an even rate.
-- A caller may be ahead of that time by one window, which allows a burst of the whole limit.
--
-- KEYS[1]  the theoretical arrival time, in microseconds
-- ARGV     limit; window in milliseconds; unused; time in milliseconds, or '' for the server's
-- Reply    1 if admitted, otherwise 0; remaining requests

local now = tonumber(ARGV[4])
if now then
  now = now * 1000
else
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end
local window = tonumber(ARGV[2]) * 1000
local apart = window / tonumber(ARGV[1])
local arrival = math.max(tonumber(redis.call('GET', KEYS[1]) or 0), now) + apart
local ahead = arrival - now
-- Allows half a microsecond for rounding.
if ahead > window + 0.5 then return { 0, 0 } end
redis.call('SET', KEYS[1], string.format('%.0f', arrival), 'PX', math.max(1, math.ceil(ahead / 1000)))
return { 1, math.floor((window - ahead) / apart) }
