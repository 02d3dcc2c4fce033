-- The twin of window-log.ts in its stored form, which prelude.lua tells: same functions, after those that read
-- and write. What a decision has to read, it has read before it writes.

local MIN_REFUND_RECORDS, MAX_REFUND_RECORDS = 256, 4096
local MAX_TOTAL = 2 ^ 47
local MAX_RECORDS = 65536
local MAX_PADDING = 4096

-- Room in a ring that has so many pages, all in use: twice as much, but not beyond what the limits can fill while that
-- suffices.
local function slots_for(pages, records_wanted)
  local wanted = math.ceil((records_wanted - 1) / PAGE)
  return math.min(math.max(2 * pages, 1), pages < wanted and wanted or MAX_PAGES)
end

-- Front and back are lists of numbers: total, stamp, total, stamp, ... `count` is all records but the newest.
local function empty_log(log)
  log.keep, log.expires, log.since, log.lease, log.leased, log.slots = 0, 0, 0, 0, 0, 0
  log.base, log.total, log.stamp, log.head, log.pages, log.count = 0, 0, 0, 0, 0, 0
  log.front, log.back = {}, {}
  -- The ring's pages, where all of it is written anew.
  log.ring = ''
end

local function numbers_of(records, from, to)
  if from == to then return {} end
  local numbers = { struct_unpack('>' .. string.rep('I6', (to - from) / STAMP), records, from + 1) }
  -- struct.unpack also answers where it stopped.
  numbers[#numbers] = nil
  return numbers
end

local function records_of(numbers, first, last)
  return struct_pack('>' .. string.rep('I6', last - first + 1), unpack(numbers, first, last))
end

-- Fills in the log from its key; answers what is wrong with the value, if anything.
local function load_log(log)
  local raw = pcall_redis('GETRANGE', log.key, '0', LAST_OF_EDGES)
  if type(raw) ~= 'string' then return raw.err end
  log.page_at = nil
  if raw == '' then
    empty_log(log)
    return nil
  end
  if string.byte(raw) ~= FORMAT or #raw < BACK then return 'not a window log of format 1' end
  local _, front, back
  _, log.keep, log.expires, log.since, log.lease, log.leased, log.slots, log.base, log.total, log.stamp, log.head,
    log.pages, front, back = struct_unpack(HEADER_FORMAT, raw)
  log.ring = nil
  local is_whole = log.slots == 0 and log.pages == 0 or call_redis('STRLEN', log.key) == EDGES + log.slots * PAGE_WIDTH
  if not is_whole or front > PAGE or back > PAGE or #raw < BACK + back * WIDTH or front > 0 and #raw < EDGES
    or log.pages > log.slots or log.pages > 0 and front == 0 or log.base > log.total then
    return 'a damaged window log'
  end
  log.front = numbers_of(raw, EDGES - front * WIDTH, EDGES)
  log.back = numbers_of(raw, BACK, BACK + back * WIDTH)
  log.count = front + PAGE * log.pages + back
  return nil
end

local function read(log, offset, length)
  if length == 0 then return '' end
  return call_redis('GETRANGE', log.key, text_of(offset), text_of(offset + length - 1))
end

local function write(log, offset, bytes)
  call_redis('SETRANGE', log.key, text_of(offset), bytes)
  log.page_at = nil
end

local function offset_of(log, page)
  return EDGES + (log.head + page) % log.slots * PAGE_WIDTH
end

-- A page of the ring as it is stored.
local function page_of(log, page)
  local offset = offset_of(log, page)
  if log.page_at ~= offset then
    log.page, log.page_at = read(log, offset, PAGE_WIDTH), offset
  end
  return log.page
end

-- Total and stamp of a record besides the newest.
local function record_at(log, index)
  local front = #log.front / 2
  if index < front then return log.front[2 * index + 1], log.front[2 * index + 2] end
  index = index - front
  if index >= PAGE * log.pages then
    index = index - PAGE * log.pages
    return log.back[2 * index + 1], log.back[2 * index + 2]
  end
  local place = index % PAGE
  return struct_unpack(RECORD_FORMAT, page_of(log, (index - place) / PAGE), place * WIDTH + 1)
end

-- Moves the ring's oldest page to the front, which is empty.
local function fill_front(log)
  log.front = numbers_of(page_of(log, 0), 0, PAGE_WIDTH)
  log.head, log.pages = (log.head + 1) % log.slots, log.pages - 1
end

-- Appends a page of records to the ring. Where it is full it becomes larger, and is written by SET, which takes just the
-- memory that it needs.
local function append_page(log, page, records_wanted)
  if log.pages < log.slots then
    write(log, offset_of(log, log.pages), page)
  else
    local split = log.head * PAGE_WIDTH
    local older = read(log, EDGES + split, log.slots * PAGE_WIDTH - split)
    log.ring = older .. read(log, EDGES, split) .. page
    log.head, log.slots, log.page_at = 0, slots_for(log.pages, records_wanted), nil
  end
  log.pages = log.pages + 1
end

-- Front and back hold a page each: what is more goes to the front while there is no ring, else to the ring.
local function make_edges_fit(log, records_wanted)
  local front, back = log.front, log.back
  while #back > 2 * PAGE do
    if log.pages == 0 and #front < 2 * PAGE then
      front[#front + 1], front[#front + 2] = table.remove(back, 1), table.remove(back, 1)
    else
      append_page(log, records_of(back, 1, 2 * PAGE), records_wanted)
      for _ = 1, 2 * PAGE do table.remove(back, 1) end
    end
  end
end

-- Stores what changed. `clock` is the time from which TTLs are counted.
local function save_log(log, clock, is_clock_given)
  if log.total == log.base then
    call_redis('DEL', log.key)
    return
  end
  make_edges_fit(log, log.params.records)
  local ttl
  if log.expires < log.stamp + log.keep then
    log.expires = clock + lifetime_of(log.keep)
    ttl = ttl_of(log.keep, is_clock_given)
  end
  local front, back = log.front, log.back
  local value = struct_pack(
    HEADER_FORMAT, FORMAT, log.keep, log.expires, log.since, log.lease, log.leased, log.slots, log.base, log.total,
    log.stamp, log.head, log.pages, #front / 2, #back / 2
  ) .. records_of(back, 1, #back)
  if log.slots > 0 or #front > 0 then
    local padding = string.rep('\0', EDGES - #value - #front * STAMP)
    value = value .. padding .. records_of(front, 1, #front)
  end
  if not log.ring then
    call_redis('SETRANGE', log.key, '0', value)
    if ttl then call_redis('PEXPIRE', log.key, ttl) end
    return
  end
  value = value .. log.ring
  local padding = log.slots > 0 and EDGES + log.slots * PAGE_WIDTH - #value or 0
  if padding > MAX_PADDING then
    -- Redis makes long padding in no time, and just as much as is asked for, where there is no key yet. SET
    -- comes first all the same: it is refused when memory is out.
    call_redis('SET', log.key, '')
    call_redis('DEL', log.key)
    call_redis('SETRANGE', log.key, text_of(EDGES + log.slots * PAGE_WIDTH - 1), '\0')
    call_redis('SETRANGE', log.key, '0', value)
    call_redis('PEXPIRE', log.key, ttl or ttl_of(log.keep, is_clock_given))
    return
  end
  value = value .. string.rep('\0', padding)
  if ttl then
    call_redis('SET', log.key, value, 'PX', ttl)
  else
    call_redis('SET', log.key, value, 'KEEPTTL')
  end
end

local function at(log, index, column)
  local total, stamp
  if index == log.count then
    total, stamp = log.total, log.stamp
  else
    total, stamp = record_at(log, index)
  end
  return column == STAMP and stamp or total
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

-- Stamp and units of what was charged after `cut`, one behind the other: the newest records, so many at most, oldest first.
local function newest_after(log, cut, most)
  local charges = {}
  if log.stamp <= cut then return charges end
  local from = math.max(first_above(log, STAMP, cut), log.count + 1 - most)
  local before = log.base
  if from > 0 then before = at(log, from - 1, TOTAL) end
  for index = from, log.count do
    local stamp, total = log.stamp, log.total
    if index < log.count then total, stamp = record_at(log, index) end
    charges[#charges + 1], charges[#charges + 2] = stamp, total - before
    before = total
  end
  return charges
end

-- Drops the oldest records besides the newest.
local function drop(log, records)
  if records == 0 then return end
  log.base = at(log, records - 1, TOTAL)
  log.count = log.count - records
  local left = records
  while true do
    local taken = math.min(left, #log.front / 2)
    log.front = { unpack(log.front, 2 * taken + 1) }
    left = left - taken
    if #log.front > 0 or log.count == 0 and left == 0 then return end
    if log.pages > 0 then
      local skipped = math.min((left - left % PAGE) / PAGE, log.pages)
      log.head, log.pages, left = (log.head + skipped) % log.slots, log.pages - skipped, left - skipped * PAGE
      if log.pages > 0 then fill_front(log) end
    elseif left == 0 then
      return
    else
      log.front, log.back = log.back, {}
    end
  end
end

local function trim(log, now)
  local cut = now - log.keep
  if log.stamp > cut then
    drop(log, first_above(log, STAMP, cut))
  elseif log.ring or log.slots > KEPT_SLOTS then
    empty_log(log)
  else
    log.keep, log.lease, log.leased = 0, 0, 0
    log.base, log.total, log.stamp, log.head, log.pages, log.count = 0, 0, 0, 0, 0, 0
    log.front, log.back = {}, {}
  end
end

local function lower_totals(numbers, first, units)
  for i = first, #numbers, 2 do numbers[i] = numbers[i] - units end
end

-- Lowers the totals of all records from `first` on, but for the newest's.
local function lower(log, first, units)
  lower_totals(log.front, 2 * first + 1, units)
  local in_ring = math.max(0, first - #log.front / 2)
  local page = math.floor(in_ring / PAGE)
  while page < log.pages do
    -- Neighbours in one piece, and no more than unpack can take.
    local offset = offset_of(log, page)
    local pages = math.min(8, log.pages - page, (EDGES + log.slots * PAGE_WIDTH - offset) / PAGE_WIDTH)
    local numbers = numbers_of(read(log, offset, pages * PAGE_WIDTH), 0, pages * PAGE_WIDTH)
    lower_totals(numbers, 2 * math.max(0, in_ring - page * PAGE) + 1, units)
    write(log, offset, records_of(numbers, 1, #numbers))
    page = page + pages
  end
  lower_totals(log.back, 2 * math.max(0, in_ring - PAGE * log.pages) + 1, units)
end

-- Removes a record from the ring: those of its page and later ones move up, and the last page, which would not be
-- full, to the back.
local function remove_from_ring(log, index)
  local place = index % PAGE
  local page = (index - place) / PAGE
  local numbers = numbers_of(page_of(log, page), 0, PAGE_WIDTH)
  table.remove(numbers, 2 * place + 1)
  table.remove(numbers, 2 * place + 1)
  for next_page = page + 1, log.pages - 1 do
    local moved = numbers_of(page_of(log, next_page), 0, PAGE_WIDTH)
    numbers[2 * PAGE - 1], numbers[2 * PAGE] = moved[1], moved[2]
    write(log, offset_of(log, next_page - 1), records_of(numbers, 1, 2 * PAGE))
    numbers = { unpack(moved, 3) }
  end
  log.pages = log.pages - 1
  for _, number in ipairs(log.back) do numbers[#numbers + 1] = number end
  log.back = numbers
end

-- Removes a record besides the newest.
local function remove(log, index)
  local front, back = log.front, log.back
  log.count = log.count - 1
  if index < #front / 2 then
    table.remove(front, 2 * index + 1)
    table.remove(front, 2 * index + 1)
    if #front == 0 and log.pages > 0 then fill_front(log) end
    return
  end
  index = index - #front / 2
  if index < PAGE * log.pages then
    remove_from_ring(log, index)
    return
  end
  index = index - PAGE * log.pages
  table.remove(back, 2 * index + 1)
  table.remove(back, 2 * index + 1)
end

-- Lowers all totals by what no longer needs to be told apart; forgets the oldest beyond 2^46 units.
local function rebase(log, units)
  local shift = math.max(log.base, log.total + units - MAX_UNITS)
  drop(log, first_above(log, TOTAL, shift))
  lower(log, 0, shift)
  log.base = 0
  log.total = log.total - shift
end

-- Moves the newest record to the back.
local function push(log)
  if log.count >= MAX_RECORDS - 1 then
    -- Merged into the next one: its units count for longer than they should, never for less.
    local base = log.base
    drop(log, 1)
    log.base = base
  end
  log.back[#log.back + 1], log.back[#log.back + 2] = log.total, log.stamp
  log.count = log.count + 1
end

local function append(log, now, stamp, units)
  if log.total + units > MAX_TOTAL then rebase(log, units) end
  if log.total == log.base then
    log.since = now
  elseif log.stamp ~= stamp then
    push(log)
  end
  log.stamp = stamp
  log.total = log.total + units
end

local function merge(log, stamp)
  log.stamp, log.head, log.pages, log.slots, log.count, log.expires = stamp, 0, 0, 0, 0, 0
  log.front, log.back, log.ring = {}, {}, ''
end

local function subtract(log, stamp, units)
  local index = first_above(log, STAMP, stamp - 1)
  local most = math.min(MAX_REFUND_RECORDS, math.max(MIN_REFUND_RECORDS, log.params.records))
  if at(log, index, STAMP) ~= stamp or log.count - index > most then return 0 end
  local held = at(log, index, TOTAL) - (index == 0 and log.base or at(log, index - 1, TOTAL))
  -- A damaged log: no number below 0 may get into the reply, where it has a meaning.
  if held <= 0 then return 0 end
  local returned = math.min(units, held)
  if index < log.count then lower(log, index, returned) end
  log.total = log.total - returned
  if returned < held then return returned end
  -- A record left with nothing is removed, so that no log has more records than units.
  if index < log.count then
    remove(log, index)
  elseif index > 0 then
    log.stamp = at(log, index - 1, STAMP)
    remove(log, index - 1)
  end
  return returned
end
