-- Shared by all parts of the script.
--
-- Rules for all parts: a charge depends only on what was read before the first write. Time is read once. Each log and
-- override of an op is a key in KEYS. Listing overrides also reads keys found in the index, which are in the same slot.
-- Numbers are passed to Redis as text, by string.format: some versions of Redis write large numbers as 2e+8. Creating
-- functions costs time in each call, and so do captured variables: pass state as arguments. A small log is read with
-- one extra byte, to detect longer values.

local call_redis, pcall_redis = redis.call, redis.pcall
local struct_pack, struct_unpack = struct.pack, struct.unpack

-- The maximum number of units in a log.
local MAX_UNITS = 2 ^ 46
-- The wait for a cost above the limit.
local NEVER = -1
-- If a stamp is further ahead of the clock than this, the clock was set back.
local MAX_AHEAD = 1000
local MIN_GIVEN_TTL = 600000
-- The offset in `kinds` for the functions of an op's second and later logs.
local LATER = 1000
local NUMBER_FORMAT = '>I6'

-- Returns the TTL, as text, of a key whose log counts for `keep` milliseconds, and the TTL without the minimum, as a
-- number. The slack beyond `keep` saves most commits from renewing the TTL. It exceeds a second, because a stamp may be
-- that far ahead of the clock. The minimum is for the `clock` option: the given time might not advance, but Redis
-- expires keys by its own clock.
local function ttl_of(keep, is_clock_given)
  local slack = keep / 4
  local lifetime = keep + (slack < 5000 and 5000 or slack - slack % 1)
  return string.format('%d', is_clock_given and lifetime < MIN_GIVEN_TTL and MIN_GIVEN_TTL or lifetime), lifetime
end
