-- What every part of the script shares.
--
-- Rules of all parts: a charge depends only on what was read before the first write. On the way up only waits are read; a
-- damaged ring then counts until all is free. Time is read once. Numbers go to Redis as text. Each log and override of an op
-- is a key in KEYS; the list of overrides finds more by the index, in the same slot. Functions cost at each call, and so do
-- captured variables: pass state as arguments.

local call_redis, pcall_redis = redis.call, redis.pcall
local struct_pack, struct_unpack = struct.pack, struct.unpack

-- Units that a log can hold; and the wait for a cost above the limit.
local MAX_UNITS = 2 ^ 46
local NEVER = -1
-- A stamp that is further ahead of the clock was made before the clock was set back.
local MAX_AHEAD = 1000
local MIN_GIVEN_TTL = 600000
-- Where in `kinds` the functions of later logs are.
local LATER = 1000
local NUMBER_FORMAT = '>I6'

-- Numbers become text by string.format: some versions of Redis write large ones as 2e+8.

-- The TTL of a key whose log counts for `keep` milliseconds, as text, and the milliseconds after which it has to be renewed. Keys
-- outlive their logs, so that most commits leave the TTL alone. By more than a second at least: a stamp may be so far ahead of
-- the clock. With a clock that was handed in, time may stand still, but Redis expires by its own.
local function ttl_of(keep, is_clock_given)
  local slack = keep / 4
  local lifetime = keep + (slack < 5000 and 5000 or slack - slack % 1)
  return string.format('%d', is_clock_given and lifetime < MIN_GIVEN_TTL and MIN_GIVEN_TTL or lifetime), lifetime
end
