-- The twin of window-log.ts in its stored form, which prelude.lua tells: same functions, after those that read
-- and write. What a decision has to read, it has read before it writes.

local MAX_REFUND_RECORDS = 4096
local MAX_TOTAL = 2 ^ 47
local MAX_PADDING = 4096

local function empty_log(log)
  log.keep, log.expires, log.lease, log.leased, log.slots = 0, 0, 0, 0, 0
  log.base, log.total, log.stamp, log.head, log.count = 0, 0, 0, 0, 0
  log.oldest_total, log.oldest_stamp = 0, 0
  -- The ring's records, where all of it is written anew.
  log.ring = ''
end

-- Fills in the log from its key; answers what is wrong with the value, if anything.
local function load_log(log)
  local raw = pcall_redis('GETRANGE', log.key, '0', LAST_OF_HEADER)
  if type(raw) ~= 'string' then return raw.err end
  log.page_at = -1
  if raw == '' then
    empty_log(log)
    return nil
  end
  if string.byte(raw) ~= FORMAT or #raw < HEADER then return 'not a window log of format 1' end
  local _
  _, log.keep, log.expires, log.lease, log.leased, log.slots, log.base, log.total, log.stamp, log.head, log.count,
    log.oldest_total, log.oldest_stamp = struct_unpack(HEADER_FORMAT, raw)
  log.ring, log.is_header_changed = nil, false
  if call_redis('STRLEN', log.key) ~= HEADER + log.slots * WIDTH or log.count > log.slots or log.head > log.slots then
    return 'a damaged window log'
  end
  return nil
end

-- Stores what changed. `clock` is the time from which TTLs are counted.
local function save_log(log, clock, is_clock_given)
  if log.total == log.base then
    call_redis('DEL', log.key)
    return
  end
  local ttl
  if log.expires < log.stamp + log.keep then
    log.expires, log.is_header_changed = clock + lifetime_of(log.keep), true
    ttl = ttl_of(log.keep, is_clock_given)
  end
  if not (log.ring or log.is_header_changed) then
    call_redis('SETRANGE', log.key, NEWEST_OFFSET, struct_pack(
      OLDEST_FORMAT, log.base, log.total, log.stamp, log.head, log.count, log.oldest_total, log.oldest_stamp
    ))
    return
  end
  local header = struct_pack(
    HEADER_FORMAT, FORMAT, log.keep, log.expires, log.lease, log.leased, log.slots,
    log.base, log.total, log.stamp, log.head, log.count, log.oldest_total, log.oldest_stamp
  )
  if not log.ring then
    call_redis('SETRANGE', log.key, '0', header)
    if ttl then call_redis('PEXPIRE', log.key, ttl) end
    return
  end
  local value, size = header .. log.ring, HEADER + log.slots * WIDTH
  if size - #value > MAX_PADDING then
    -- Redis makes long padding in no time, and just as much as is asked for, where there is no key yet. SET
    -- comes first all the same: it is refused when memory is out.
    call_redis('SET', log.key, '')
    call_redis('DEL', log.key)
    call_redis('SETRANGE', log.key, text_of(size - 1), '\0')
    call_redis('SETRANGE', log.key, '0', value)
    call_redis('PEXPIRE', log.key, ttl or ttl_of(log.keep, is_clock_given))
    return
  end
  value = value .. string.rep('\0', size - #value)
  if ttl then
    call_redis('SET', log.key, value, 'PX', ttl)
  else
    call_redis('SET', log.key, value, 'KEEPTTL')
  end
end

local function read(log, offset, length)
  if length == 0 then return '' end
  return call_redis('GETRANGE', log.key, offset, offset + length - 1)
end

local function write(log, offset, bytes)
  call_redis('SETRANGE', log.key, offset, bytes)
  log.page_at = -1
end

local function slot_of(log, index)
  return HEADER + (log.head + index) % log.slots * WIDTH
end

-- Total and stamp of a record in the ring.
local function record_at(log, index)
  local offset = slot_of(log, index)
  local page_at = offset - (offset - HEADER) % (PAGE * WIDTH)
  if log.page_at ~= page_at then
    log.page, log.page_at = read(log, page_at, PAGE * WIDTH), page_at
  end
  return struct_unpack(RECORD_FORMAT, log.page, offset - page_at + 1)
end

local function at(log, index, column)
  local total, stamp
  if index == log.count then
    total, stamp = log.total, log.stamp
  elseif index == 0 then
    total, stamp = log.oldest_total, log.oldest_stamp
  else
    total, stamp = record_at(log, index)
  end
  return column == STAMP and stamp or total
end

-- After the oldest record has become another one.
local function find_oldest(log)
  if log.count > 0 then log.oldest_total, log.oldest_stamp = record_at(log, 0) end
end

local function first_above(log, column, bound)
  local count = log.count
  if count == 0 or at(log, 0, column) > bound then return 0 end
  local low, step = 1, 2
  while low + step <= count and at(log, low + step - 1, column) <= bound do
    low = low + step
    step = step * 2
  end
  local high = low + step - 1
  if high > count then high = count end
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
  find_oldest(log)
end

local function trim(log, now)
  local cut = now - log.keep
  if log.stamp > cut then
    drop(log, first_above(log, STAMP, cut))
  elseif log.ring or log.slots > KEPT_SLOTS then
    empty_log(log)
  else
    log.keep, log.lease, log.leased, log.is_header_changed = 0, 0, 0, true
    log.base, log.total, log.stamp, log.head, log.count = 0, 0, 0, 0, 0
  end
end

-- Lowers the totals of all ring records from `first` on, and moves them down by `places`.
local function lower(log, first, places, units)
  while first < log.count do
    local from, to = slot_of(log, first), slot_of(log, first - places)
    local end_of_ring = HEADER + log.slots * WIDTH
    local records = math.min(64, log.count - first, (end_of_ring - math.max(from, to)) / WIDTH)
    local format = '>' .. string.rep('I6I6', records)
    local numbers = { struct_unpack(format, read(log, from, records * WIDTH)) }
    for i = 1, 2 * records, 2 do numbers[i] = numbers[i] - units end
    write(log, to, struct_pack(format, unpack(numbers, 1, 2 * records)))
    first = first + records
  end
end

-- Lowers all totals by what no longer needs to be told apart; forgets the oldest beyond 2^46 units.
local function rebase(log, units)
  local shift = math.max(log.base, log.total + units - MAX_UNITS)
  drop(log, first_above(log, TOTAL, shift))
  lower(log, 0, 0, shift)
  find_oldest(log)
  log.base = 0
  log.total = log.total - shift
end

-- A larger ring, with one record more: twice as large, but not beyond what the limits can fill while that
-- suffices. Written by SET, which takes just the memory that it needs.
local function enlarge(log, record, slots_wanted)
  local bound = log.count < slots_wanted and slots_wanted or MAX_SLOTS
  local slots = math.min(math.max(2 * log.count, 4), bound)
  local split = log.head * WIDTH
  local older = read(log, HEADER + split, log.slots * WIDTH - split)
  local newer = read(log, HEADER, split)
  log.ring = older .. newer .. record
  log.head, log.slots, log.page_at = 0, slots, -1
end

-- Moves the newest record into the ring.
local function push(log, slots_wanted)
  if log.count == MAX_SLOTS then
    log.head = (log.head + 1) % log.slots
    log.count = log.count - 1
    find_oldest(log)
  end
  local record = struct_pack(RECORD_FORMAT, log.total, log.stamp)
  if log.count == 0 then log.oldest_total, log.oldest_stamp = log.total, log.stamp end
  if log.count == log.slots then
    enlarge(log, record, slots_wanted)
  else
    write(log, slot_of(log, log.count), record)
  end
  log.count = log.count + 1
end

local function append(log, stamp, units, records_wanted)
  if log.total + units > MAX_TOTAL then rebase(log, units) end
  if log.stamp ~= stamp and log.total > log.base then push(log, records_wanted - 1) end
  log.stamp = stamp
  log.total = log.total + units
end

local function merge(log, stamp)
  log.stamp, log.head, log.count, log.slots, log.expires, log.ring = stamp, 0, 0, 0, 0, ''
end

local function subtract(log, stamp, units)
  local index = first_above(log, STAMP, stamp - 1)
  if at(log, index, STAMP) ~= stamp or log.count - index > MAX_REFUND_RECORDS then return 0 end
  local held = at(log, index, TOTAL) - (index == 0 and log.base or at(log, index - 1, TOTAL))
  local returned = math.min(units, held)
  local removed = returned == held and 1 or 0
  if removed == 1 and log.count > 0 and index == log.count then log.stamp = at(log, log.count - 1, STAMP) end
  lower(log, index + removed, removed, returned)
  log.total = log.total - returned
  if log.count > 0 then log.count = log.count - removed end
  if index == 0 then find_oldest(log) end
  return returned
end
