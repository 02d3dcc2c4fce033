-- The stored form of window-log.ts: same functions, same order, after those that read and write.
--
-- Reads and writes: one string per log, made of
--   format       1 byte, 1; any other is refused, never guessed at
--   keep         6  the longest time for which any commit needed charges to count; after it they are gone
--   expires      6  when the key's TTL ends, by the store's clock
--   base         6  the total before the oldest record
--   stamp total  12 the newest record
--   lease leased 12 units taken on lease may be spent until `leased`, each for at most `lease` after its stamp
--   head count slots  3 each: first slot in use, slots in use, slots of the ring
--   ring         12 bytes a slot: stamp and running total
-- All integers unsigned, little-endian. Times in milliseconds, totals in units.
--
-- TTL: renewed where it would end before stamp + keep, to keep + slack.
-- Invariants: stamps and totals rise from record to record; slots = 0 or count <= slots <= 65535; a log
-- without records is no key at all. A log of more than CHUNK bytes is read and written in pieces.

local HEADER_FORMAT = '<BI6I6I6I6I6I6I6I3I3I3'
local HEADER = 52
local CHUNK = 508
local MAX_RECORDS = 65536
local MAX_REFUND_RECORDS = 4096
local MAX_TOTAL = 2 ^ 47
local STAMP = 0
local TOTAL = 6
local WIDTH = 12

local function empty_log(log)
  log.keep, log.expires, log.base, log.stamp, log.total = 0, 0, 0, 0, 0
  log.lease, log.leased, log.head, log.count, log.slots = 0, 0, 0, 0, 0
  -- `raw` is the first `loaded` bytes of what is stored; all of it where the log is `whole`.
  log.raw, log.loaded, log.whole = string.rep('\0', HEADER), HEADER, true
end

-- Fills in the log from its key; answers what is wrong with the value, if anything.
local function load_log(log)
  local raw = redis.pcall('GETRANGE', log.key, 0, CHUNK - 1)
  if type(raw) ~= 'string' then return raw.err end
  if raw == '' then
    empty_log(log)
    return nil
  end
  if string.byte(raw) ~= 1 or #raw < HEADER then return 'not a window log of format 1' end
  local _
  _, log.keep, log.expires, log.base, log.stamp, log.total, log.lease, log.leased, log.head, log.count, log.slots =
    struct.unpack(HEADER_FORMAT, raw)
  log.raw, log.loaded, log.whole = raw, #raw, HEADER + log.slots * WIDTH <= CHUNK
  local size = log.whole and #raw or redis.call('STRLEN', log.key)
  if size ~= HEADER + log.slots * WIDTH or log.count > log.slots or log.head > log.slots then
    return 'a damaged window log'
  end
  return nil
end

local function read(log, offset, length)
  if offset + length <= log.loaded then return string.sub(log.raw, offset + 1, offset + length) end
  return redis.call('GETRANGE', log.key, offset, offset + length - 1)
end

local function write(log, offset, bytes)
  if log.whole then
    log.raw = string.sub(log.raw, 1, offset) .. bytes .. string.sub(log.raw, offset + #bytes + 1)
  else
    redis.call('SETRANGE', log.key, offset, bytes)
    log.loaded = 0
  end
end

-- Stores what changed. `clock` is the time that TTLs are counted from.
local function save_log(log, clock)
  if log.total == log.base then
    redis.call('DEL', log.key)
    return
  end
  local ttl
  if log.expires < log.stamp + log.keep then
    local lifetime = log.keep + slack(log.keep)
    log.expires = clock + lifetime
    ttl = ttl_of(lifetime)
  end
  local header = struct.pack(
    HEADER_FORMAT, 1, log.keep, log.expires, log.base, log.stamp, log.total,
    log.lease, log.leased, log.head, log.count, log.slots
  )
  if not log.whole then
    redis.call('SETRANGE', log.key, 0, header)
    if ttl then redis.call('PEXPIRE', log.key, ttl) end
  elseif ttl then
    redis.call('SET', log.key, header .. string.sub(log.raw, HEADER + 1), 'PX', ttl)
  else
    redis.call('SET', log.key, header .. string.sub(log.raw, HEADER + 1), 'KEEPTTL')
  end
end

local function slot_of(log, index)
  return HEADER + (log.head + index) % log.slots * WIDTH
end

local function at(log, index, column)
  if index == log.count then
    if column == STAMP then return log.stamp end
    return log.total
  end
  local offset = slot_of(log, index) + column
  if offset + 6 <= log.loaded then return (struct.unpack('<I6', log.raw, offset + 1)) end
  return (struct.unpack('<I6', redis.call('GETRANGE', log.key, offset, offset + 5)))
end

local function first_above(log, column, bound)
  local low, step = 0, 1
  while low + step <= log.count and at(log, low + step - 1, column) <= bound do
    low = low + step
    step = step * 2
  end
  local high = math.min(low + step - 1, log.count)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if at(log, middle, column) <= bound then low = middle + 1 else high = middle end
  end
  return low
end

local function total_up_to(log, cut)
  if log.stamp <= cut then return log.total end
  local index = first_above(log, STAMP, cut)
  if index == 0 then return log.base end
  return at(log, index - 1, TOTAL)
end

-- Drops the oldest records of the ring.
local function drop(log, records)
  if records == 0 then return end
  log.base = at(log, records - 1, TOTAL)
  log.head = (log.head + records) % log.slots
  log.count = log.count - records
end

local function trim(log, now)
  local cut = now - log.keep
  if log.stamp <= cut then empty_log(log) else drop(log, first_above(log, STAMP, cut)) end
end

local function set(log, index, stamp, total)
  write(log, slot_of(log, index), struct.pack('<I6I6', stamp, total))
end

-- Lowers the totals of all ring records from `first` on, and moves them down by `places`.
local function lower(log, first, places, units)
  while first < log.count do
    local from, to = slot_of(log, first), slot_of(log, first - places)
    local room = HEADER + log.slots * WIDTH - math.max(from, to)
    local records = math.min(64, log.count - first, room / WIDTH)
    local format = '<' .. string.rep('I6I6', records)
    local numbers = { struct.unpack(format, read(log, from, records * WIDTH)) }
    for i = 2, 2 * records, 2 do numbers[i] = numbers[i] - units end
    write(log, to, struct.pack(format, unpack(numbers, 1, 2 * records)))
    first = first + records
  end
end

-- Lowers all totals by what no longer needs to be told apart; forgets the oldest beyond 2^46 units.
local function rebase(log, units)
  local shift = math.max(log.base, log.total + units - MAX_UNITS)
  drop(log, first_above(log, TOTAL, shift))
  lower(log, 0, 0, shift)
  log.base = 0
  log.total = log.total - shift
end

-- Doubles the ring, but not beyond what the limits can fill while that suffices.
local function enlarge(log, slots_wanted)
  local bound = log.count < slots_wanted and slots_wanted or MAX_RECORDS - 1
  local slots = math.min(math.max(2 * log.count, 1), bound)
  local split = log.head * WIDTH
  local older = read(log, HEADER + split, log.slots * WIDTH - split)
  local newer = read(log, HEADER, split)
  local padding = string.rep('\0', (slots - log.slots) * WIDTH)
  log.raw = string.rep('\0', HEADER) .. older .. newer .. padding
  log.loaded, log.whole, log.head, log.slots = #log.raw, true, 0, slots
end

-- Moves the newest record into the ring.
local function push(log, slots_wanted)
  if log.count == MAX_RECORDS - 1 then
    log.head = (log.head + 1) % log.slots
    log.count = log.count - 1
  elseif log.count == log.slots then
    enlarge(log, slots_wanted)
  end
  set(log, log.count, log.stamp, log.total)
  log.count = log.count + 1
end

local function append(log, stamp, units, records_wanted)
  if log.total + units > MAX_TOTAL then rebase(log, units) end
  if log.stamp ~= stamp and log.total > log.base then push(log, records_wanted - 1) end
  log.stamp = stamp
  log.total = log.total + units
end

local function merge(log, stamp)
  log.raw, log.loaded, log.whole = string.rep('\0', HEADER), HEADER, true
  log.stamp, log.head, log.count, log.slots, log.expires = stamp, 0, 0, 0, 0
end

local function subtract(log, stamp, units)
  local index = first_above(log, STAMP, stamp - 1)
  if at(log, index, STAMP) ~= stamp or log.count - index > MAX_REFUND_RECORDS then return 0 end
  local before = index == 0 and log.base or at(log, index - 1, TOTAL)
  local held = at(log, index, TOTAL) - before
  local returned = math.min(units, held)
  local removed = returned == held and 1 or 0
  lower(log, index + removed, removed, returned)
  log.total = log.total - returned
  if removed == 1 and log.count > 0 then
    if index == log.count then log.stamp = at(log, log.count - 1, STAMP) end
    log.count = log.count - 1
  end
  return returned
end
