-- What every part of the script shares: constants, and names for what is called in every decision.

local call_redis, pcall_redis = redis.call, redis.pcall
local struct_pack, struct_unpack, string_sub = struct.pack, struct.unpack, string.sub

-- Units that a log can hold; and the wait for a cost above the limit.
local MAX_UNITS = 2 ^ 46
local NEVER = -1
local MIN_GIVEN_TTL = 600000
-- The code of a usual op's log is the number of its kind, from 1 to 7, and the sum of these. They mean: it is a shadow
-- limit's log, another log follows, the key may have an override. The last two are added for each further limit, and for
-- each part before it.
local SHADOW = 8
local MORE = 16
local OVERRIDABLE = 32
local PER_LIMIT = 64
local PER_PART = 65536
-- Above all kinds.
local LATER = 8

-- The stored form of a window log, one string per log. Integers are unsigned, big-endian, of so many bytes:
--   format        1  always 1; any other is refused, never guessed at
--   keep          6  the longest time for which any commit needed charges to count; after it they are gone
--   expires       6  when the key's TTL ends, by the store's clock
--   since         6  the time of its first charge, since it was last empty
--   lease         6  units taken on lease may be spent elsewhere for so long after their stamp,
--   leased        6  and none of them later than this
--   slots         2  pages that the ring has room for
--   base          6  the total before the oldest record
--   total, stamp  12 the newest record: the running total of all units up to and with it, and its time
--   head          2  slot of the ring's oldest page
--   pages         2  how many pages the ring holds
--   front         1  records in the front
--   back          1  records in the back
--   back          48 the records before the newest, in order of time, up to four
--   front         48 the oldest records, up to four, in the last places of four
--   ring          48 a slot: a page of four records, older than the back, newer than the front
-- Times are milliseconds, totals units; a record is total and stamp. A string ends after the last part that was
-- ever used.
--
-- Records come in at the back and leave from the front, so most decisions read and write these two and the
-- header, in one piece. Every fourth moves a page from the back to the ring, or from the ring to the front. Little
-- is read and written besides: Lua hashes each string that it is given.
--
-- TTL: renewed where it would end before stamp + keep, to keep + slack.
-- Invariants: stamps and totals rise from record to record; pages <= slots <= 16384; while the ring holds pages,
-- the front is not empty; a log without units is no key at all.
local FORMAT = 1
local HEADER_FORMAT = '>BI6I6I6I6I6I2I6I6I6I2I2BB'
local BACK = 57
-- What nearly every commit changes, and is written alone: from base to the last record of the back.
local PUSH_FORMAT = '>I6I6I6I2I2BBc0I6I6'
local HOT_OFFSET = '33'
local RECORD_FORMAT = '>I6I6'
local PAGE_FORMAT = '>I6I6I6I6I6I6I6I6'
local NUMBER_FORMAT = '>I6'
local TOTAL = 0
local STAMP = 6
local WIDTH = 12
local PAGE = 4
local PAGE_WIDTH = 48
local FRONT = 105
local EDGES = 153
local LAST_OF_EDGES = '152'
-- A ring that is not larger is kept when its log has run empty: it will be filled again.
local KEPT_SLOTS = 64
local FEW_PAGES = 32
local MANY_PAGES = 16380
-- Steps of a search in a ring: each third halves it.
local MOST_TRIES = 60
local MAX_PAGES = 16384

-- The stored form of token buckets, fixed windows and sliding counters: see their files.
local BUCKET_FORMAT = '>BI6I7I6I6'
local BUCKET_SIZE = 26
-- One byte more than it should have.
local LAST_OF_BUCKET = '26'
local MOST_PARTS = 2 ^ 52
local COUNTER_FORMAT = '>BI6I6'
local COUNTER_SIZE = 13
-- One byte more than it should have.
local LAST_OF_COUNTER = '13'
local TWO_WINDOWS_FORMAT = '>BI6I7I7I6'
local TWO_WINDOWS_SIZE = 27
-- One byte more than it should have.
local LAST_OF_TWO_WINDOWS = '27'

-- Numbers become text here, at a third of what Redis takes for it, and once for all ops of a call; and some
-- versions of Redis write 2e+8.
local texts = {}
local function text_of(number)
  local text = texts[number]
  if not text then
    text = string.format('%d', number)
    texts[number] = text
  end
  return text
end

-- Keys outlive what they hold by a while, so that their TTL is renewed now and then, not at each commit. By
-- more than a second at least: by so much may a stamp be ahead of the clock.
local function lifetime_of(keep)
  return keep + math.max(4000, math.floor(keep / 4))
end

-- Whether the TTL of a log whose newest charge was made at `stamp` is to be renewed by one made now: once in a part of
-- what keys outlive their logs by. With a clock that was handed in nobody knows how long ago that was.
local function needs_ttl(stamp, now, keep, is_clock_given)
  local part = math.max(2000, math.floor(keep / 8))
  return is_clock_given or now - now % part > stamp
end

-- With a clock that was handed in, time may stand still, but Redis expires by its own.
local function ttl_of(keep, is_clock_given)
  local lifetime = lifetime_of(keep)
  return text_of(is_clock_given and math.max(lifetime, MIN_GIVEN_TTL) or lifetime)
end
