-- What every part of the script shares: constants, and names for what is called in every decision.

local call_redis, pcall_redis = redis.call, redis.pcall
local struct_pack, struct_unpack = struct.pack, struct.unpack
local string_sub = string.sub

-- Units that a log can hold; and the wait for a cost above the limit.
local MAX_UNITS = 2 ^ 46
local NEVER = -1

-- The stored form of a window log, one string per log. Integers are unsigned, big-endian, of so many bytes:
--   format   1  always 1; any other is refused, never guessed at
--   keep     6  the longest time for which any commit needed charges to count; after it they are gone
--   expires  6  when the key's TTL ends, by the store's clock
--   lease    6  units taken on lease may be spent elsewhere for so long after their stamp,
--   leased   6  and none of them later than this
--   slots    3  records that the ring has room for
--   base     6  the total before the oldest record
--   stamp    6  the newest record: its time,
--   total    6  and the running total of all units up to and with it
--   head     3  slot of the oldest of the other records
--   count    3  how many they are
--   ring     12 a slot: running total and stamp
-- Times are milliseconds, totals units. A record ends in the byte that changes most, for the sake of Lua, which
-- keeps each string once and finds it by a hash of some of its bytes, counted from the end.
--
-- TTL: renewed where it would end before stamp + keep, to keep + slack.
-- Invariants: stamps and totals rise from record to record; count <= slots <= 65535; a log without units is
-- no key at all.
local FORMAT = 1
local HEADER_FORMAT = '>BI6I6I6I6I3I6I6I6I3I3'
local HEADER = 52
-- The fields that every commit changes stand together, so that they are written alone.
local TAIL_FORMAT = '>I6I6I6I3I3'
local TAIL_OFFSET = '28'
local RECORD_FORMAT = '>I6I6'
local NUMBER_FORMAT = '>I6'
local TOTAL = 0
local STAMP = 6
local WIDTH = 12
-- Read at once: the header, and a ring of up to 38 slots. Beyond that records are read by the page.
local LAST_OF_CHUNK = '507'
local PAGE = 384
local MAX_SLOTS = 65535

-- With a clock that was handed in, time may stand still, but Redis expires by its own.
local ttl_floor = 0

-- Keys outlive what they hold by a while, so that their TTL is renewed now and then, not at each commit. A
-- second of it at least: by so much may a stamp be ahead of the clock.
local function lifetime_of(keep)
  return keep + math.max(1000, math.floor(keep / 4))
end

-- As text: some versions of Redis write large numbers as 2e+8.
local function ttl_of(lifetime)
  return string.format('%.0f', math.max(lifetime, ttl_floor))
end
