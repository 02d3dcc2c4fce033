-- What every part of the script shares: constants, and names for what is called in every decision.

local call_redis, pcall_redis = redis.call, redis.pcall
local string_format = string.format
local struct_pack, struct_unpack = struct.pack, struct.unpack

-- Units that a log can hold; and the wait for a cost above the limit.
local MAX_UNITS = 2 ^ 46
local NEVER = -1
local MIN_GIVEN_TTL = 600000

-- The stored form of a window log, one string per log. Integers are unsigned, big-endian, of so many bytes:
--   format        1  always 1; any other is refused, never guessed at
--   keep          6  the longest time for which any commit needed charges to count; after it they are gone
--   expires       6  when the key's TTL ends, by the store's clock
--   lease         6  units taken on lease may be spent elsewhere for so long after their stamp,
--   leased        6  and none of them later than this
--   slots         3  records that the ring has room for
--   base          6  the total before the oldest record
--   total, stamp  12 the newest record: the running total of all units up to and with it, and its time
--   head          3  slot of the oldest of the other records
--   count         3  how many they are
--   oldest        12 a copy of the oldest of them: most decisions need no other
--   ring          12 a slot: total and stamp
-- Times are milliseconds, totals units. Little is read at a time: Lua hashes each string that it is given.
--
-- TTL: renewed where it would end before stamp + keep, to keep + slack.
-- Invariants: stamps and totals rise from record to record; count <= slots <= 65535; a log without units is
-- no key at all.
local FORMAT = 1
local HEADER_FORMAT = '>BI6I6I6I6I3I6I6I6I3I3I6I6'
local HEADER = 64
local LAST_OF_HEADER = '63'
-- What every commit changes, and what is changed where records leave, are written alone.
local NEWEST_FORMAT = '>I6I6I6I3I3'
local NEWEST_OFFSET = '28'
local OLDEST_FORMAT = '>I6I6I6I3I3I6I6'
local RECORD_FORMAT = '>I6I6'
local NUMBER_FORMAT = '>I6'
local TOTAL = 0
local STAMP = 6
local WIDTH = 12
-- Records are read by the page; by the usual op, no more than these.
local PAGE = 8
local MAX_PIECE = 128
local MAX_SLOTS = 65535
-- A ring that is not larger is kept when its log has run empty: it will be filled again.
local KEPT_SLOTS = 64

-- Numbers become text here, at a third of what Redis takes for it, and once for all ops of a call; and some
-- versions of Redis write 2e+8.
local texts = {}
local function text_of(number)
  local text = texts[number]
  if not text then
    text = string_format('%d', number)
    texts[number] = text
  end
  return text
end

-- Keys outlive what they hold by a while, so that their TTL is renewed now and then, not at each commit. By
-- more than a second at least: by so much may a stamp be ahead of the clock.
local function lifetime_of(keep)
  return keep + math.max(4000, math.floor(keep / 4))
end

-- With a clock that was handed in, time may stand still, but Redis expires by its own.
local function ttl_of(keep, is_clock_given)
  local lifetime = lifetime_of(keep)
  return text_of(is_clock_given and math.max(lifetime, MIN_GIVEN_TTL) or lifetime)
end
