-- Shared by all parts of the script.
--
-- Rules for all parts: a charge depends only on what was read before the first write. Time is read once. Each log and override
-- of an op is a key in KEYS; listing overrides finds more through the index, in the same slot. Numbers are passed to Redis as
-- text, by string.format: some versions of Redis write large numbers as 2e+8. Creating functions costs time in each call, and so
-- do captured variables: pass state as arguments. A small log is read with one extra byte, to detect longer values.

local call_redis, pcall_redis = redis.call, redis.pcall
local struct_pack, struct_unpack = struct.pack, struct.unpack

-- The maximum number of units in a log. It is also the wait for a cost above the limit.
local MAX_UNITS = 2 ^ 46
local NEVER = -1
-- If a stamp is further ahead than this, the clock was set back.
local MAX_AHEAD = 1000
local MIN_GIVEN_TTL = 600000
-- The offset in `kinds` for the functions of later logs.
local LATER = 1000
local NUMBER_FORMAT = '>I6'

-- The TTL, as text, of a key whose log counts for `keep` milliseconds, and when to renew the TTL. The TTL exceeds `keep`, so that
-- most commits needn't renew it. It does so by more than a second, because a stamp may be that far ahead of the clock. With the
-- `clock` option, time may not advance, but Redis uses its own clock to expire keys.
local function ttl_of(keep, is_clock_given)
  local slack = keep / 4
  local lifetime = keep + (slack < 5000 and 5000 or slack - slack % 1)
  return string.format('%d', is_clock_given and lifetime < MIN_GIVEN_TTL and MIN_GIVEN_TTL or lifetime), lifetime
end
