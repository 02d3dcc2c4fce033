-- Wraps a common script on a sorted set to match our guarantees. A call that is sent twice is charged once and gets the same
-- reply. Time doesn't go backwards if the clock is set back.
--
-- KEYS[2]  the receipt of the last call in this slot
-- ARGV[5]  the number of the call: 17 digits

local number = ARGV[5]
local receipt = redis.call('GET', KEYS[2])
if receipt and string.sub(receipt, 1, 17) == number then return cmsgpack.unpack(string.sub(receipt, 18)) end
local now = tonumber(ARGV[4])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local newest = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')[2]
ARGV[4] = newest and math.max(now, tonumber(newest)) or now
local function decide()
  --- script
end
local reply = decide()
redis.call('SET', KEYS[2], number .. cmsgpack.pack(reply), 'PX', 600000)
return reply
