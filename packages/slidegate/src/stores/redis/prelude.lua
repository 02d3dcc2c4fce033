-- What every part of the script shares. The parts are joined into one in the order that embed-lua.js gives.

-- Looked up once, not in every decision.
local call_redis, pcall_redis = redis.call, redis.pcall
local struct_pack, struct_unpack = struct.pack, struct.unpack
local string_byte, string_sub = string.byte, string.sub
local math_floor = math.floor

-- The kinds of limits by tag. Each has load, newest, restamp, check, commit, retry_after, reset_after,
-- refund and save; what they are for is told in limits/limit.ts.
local kinds = {}

-- Units that a log can hold; and the wait for a cost above the limit.
local MAX_UNITS = 2 ^ 46
local NEVER = -1

-- Keys outlive what they hold by a while, so that their TTL is renewed now and then, not at each commit. A
-- second of it at least: by so much may a stamp be ahead of the clock.
local function slack(keep)
  return math.max(1000, math_floor(keep / 4))
end

-- With a clock that was handed in, time may stand still, but Redis expires by its own.
local ttl_floor = 0

-- As text: some versions of Redis write large numbers as 2e+8.
local function ttl_of(lifetime)
  return string.format('%.0f', math.max(lifetime, ttl_floor))
end
