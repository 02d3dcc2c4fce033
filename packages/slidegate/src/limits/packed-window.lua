-- The twin of packed-window.ts.
--
-- Words: precision, records that its limits can fill, then window and limit of each. A window is given with precision - 1 more: a
-- stamp is the start of its grain.
-- Answer: per limit the units used, if all that was asked for was admitted: then the newest stamp is the grain of now.
-- Else -1 less the units used, and behind all answers per limit: milliseconds until the cost fits once more (-1: never),
-- and until all is free.
-- Reads and writes: one string per log. Integers are unsigned, big-endian, of this many bytes:
--   format        1  always 1; any other is refused, never guessed at
--   keep          6  the longest time for which any commit needed charges to count; after it they are gone
--   expires       6  when the key's TTL ends, by the store's clock
--   since         6  the time of its first charge, since it was last empty
--   lease         6  units taken on lease may be spent elsewhere for this long after their stamp,
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
local MAX_PAGES = 16384
-- Steps of a search in a ring: each third halves it.
local MOST_TRIES = 60
local MAX_TOTAL = 2 ^ 47
local MAX_RECORDS = 65536
local MAX_PADDING = 4096
local MIN_REFUND_RECORDS = 256
local MAX_REFUND_RECORDS = 4096
local NO_WINDOW = 'not a window log of format 1'
local DAMAGED_WINDOW = 'a damaged window log'

--- before
-- Searches for the first record whose number at `column` is above the bound, from a place whose record is not; the
-- newest is. Answers the total before it, its stamp (nil for the newest's), and its place. Pages of the ring are
-- looked up as a name in a telephone book: where it should stand if records came evenly, and now and then in the middle.
-- Nothing if the ring is damaged.
local function find(
  key, raw, back, head, slots, pages, records, place, rest, taken, is_in_back, column, bound, newest
)
  local first_of_back = newest
  if not is_in_back then
    if back > 0 then first_of_back = struct_unpack(NUMBER_FORMAT, raw, BACK + column + 1) end
    if first_of_back <= bound then records, place, rest, taken, is_in_back = raw, BACK, back, pages, true end
  end
  local before, total, stamp, value
  if rest > 0 then
    total, stamp = struct_unpack(RECORD_FORMAT, records, place + (rest - 1) * WIDTH + 1)
    value = column == TOTAL and total or stamp
    if value > bound then
      -- Among these.
      repeat
        before = total
        total, stamp = struct_unpack(RECORD_FORMAT, records, place + 1)
        if (column == TOTAL and total or stamp) > bound then
          return before, stamp, records, place, rest, taken, is_in_back
        end
        place, rest = place + WIDTH, rest - 1
      until false
    end
  end
  if is_in_back then return total, nil, records, place + rest * WIDTH, 0, taken, true end

  before = total
  local low, low_value, high, high_value, next_page = taken, value, pages - 1, first_of_back, nil
  for tries = 1, MOST_TRIES do
    if low > high then
      -- Between two pages, or before the back.
      if next_page then
        return before, (struct_unpack(NUMBER_FORMAT, next_page, STAMP + 1)), next_page, 0, PAGE, low + 1, false
      end
      stamp = back > 0 and struct_unpack(NUMBER_FORMAT, raw, BACK + STAMP + 1) or nil
      return before, stamp, raw, BACK, back, pages, true
    end
    local part = tries % 3 == 0 and 0.5 or (bound - low_value) / (high_value - low_value)
    local page = low + (high - low + 1) * part
    page = page < high and page - page % 1 or high
    local offset = EDGES + (head + page) % slots * PAGE_WIDTH
    local found = call_redis('GETRANGE', key, string.format('%d', offset), string.format('%d', offset + PAGE_WIDTH - 1))
    if #found < PAGE_WIDTH then return nil end
    local total1, stamp1, total2, stamp2, total3, stamp3, total4, stamp4 = struct_unpack(PAGE_FORMAT, found)
    local value1, value2, value3, value4 = total1, total2, total3, total4
    if column == STAMP then value1, value2, value3, value4 = stamp1, stamp2, stamp3, stamp4 end
    if value1 > bound then
      high, high_value, next_page = page - 1, value1, found
    elseif value4 <= bound then
      low, low_value, before = page + 1, value4, total4
    elseif value2 > bound then
      return total1, stamp2, found, WIDTH, 3, page + 1, false
    elseif value3 > bound then
      return total2, stamp3, found, 2 * WIDTH, 2, page + 1, false
    else
      return total3, stamp4, found, 3 * WIDTH, 1, page + 1, false
    end
  end
end

-- When a charge made at `stamp` stops counting in a window.
local function expiry_of(stamp, window, keep, lease, leased)
  if leased > stamp then window = window + (leased - stamp < lease and leased - stamp or lease) end
  return stamp + (window < keep and window or keep)
end

--- load
local raw = pcall_redis('GETRANGE', key, '0', LAST_OF_EDGES)
local keep, expires, since, lease, leased, slots, base, total, stamp, head, pages, front, back
-- Whether the tables of rare operations write it.
local is_rare, is_restamped = cost * wanted > MAX_UNITS or op and op.lease_ms > 0, false
if raw == '' then
  keep, expires, since, lease, leased, slots, base, total, stamp, head, pages, front, back =
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
else
  local size = #raw
  if size < BACK then return nil, raw.err or NO_WINDOW end
  local format
  format, keep, expires, since, lease, leased, slots, base, total, stamp, head, pages, front, back =
    struct_unpack(HEADER_FORMAT, raw)
  if format ~= FORMAT then return nil, NO_WINDOW end
  if pages > slots or base > total or back > PAGE or size < BACK + back * WIDTH or front > PAGE
    or front > 0 and size < EDGES or front == 0 and pages > 0 then return nil, DAMAGED_WINDOW end
  if is_rare or leased > 0 or stamp > now or total > MAX_UNITS then
    is_rare = true
    if slots > 0 and call_redis('STRLEN', key) ~= EDGES + slots * PAGE_WIDTH then return nil, DAMAGED_WINDOW end
    if stamp > now then
      if stamp <= clock + MAX_AHEAD then return nil, stamp end
      -- All that it holds counts from now on.
      stamp, head, pages, front, back, is_restamped = now - now % words[p + 1], 0, 0, 0, 0, true
      if leased > now + lease then leased = now + lease end
    end
  end
end

-- Skips what no longer counts. A place in the log is told by five: `rest` records stand from `start` on in `records`, which
-- is the front, a page of the ring, or the back; `taken` pages of the ring lie before what follows them. No rest: the newest.
local gone = now - keep
local is_empty = stamp <= gone
local records, start, rest, taken, is_in_back = raw, EDGES - front * WIDTH, front, 0, false
local before, oldest_total, oldest_stamp, _ = base, total, stamp, nil
if is_empty then
  before = total
else
  if front == 0 then start, rest, is_in_back = BACK, back, true end
  if rest > 0 then
    oldest_total, oldest_stamp = struct_unpack(RECORD_FORMAT, raw, start + 1)
    -- Mostly but one is gone.
    if oldest_stamp <= gone and rest > 1 then
      before, start, rest = oldest_total, start + WIDTH, rest - 1
      oldest_total, oldest_stamp = struct_unpack(RECORD_FORMAT, raw, start + 1)
    end
    if oldest_stamp <= gone then
      before, _, records, start, rest, taken, is_in_back =
        find(key, raw, back, head, slots, pages, raw, start, rest, 0, is_in_back, STAMP, gone, stamp)
      if not before then return nil, DAMAGED_WINDOW end
      oldest_total, oldest_stamp = total, stamp
      if rest > 0 then oldest_total, oldest_stamp = struct_unpack(RECORD_FORMAT, records, start + 1) end
    end
  end
end
--- check
local longest, old = 0, nil
for i = p + 3, last, 2 do
  local window, before_window = words[i], before
  if window > longest then longest = window end
  if leased > 0 and now < leased + window then window = window + lease end
  if window < keep and not is_empty then
    local cut = now - window
    if stamp <= cut then
      before_window = total
    elseif oldest_stamp <= cut then
      before_window =
        find(key, raw, back, head, slots, pages, records, start, rest, taken, is_in_back, STAMP, cut, stamp)
      if not before_window then return nil, DAMAGED_WINDOW end
    end
  end
  local used = total - before_window
  if used < 0 then return nil, DAMAGED_WINDOW end
  reply[answer] = used
  answer = answer + 1
  local free = words[i + 1] - used
  if free < cost * fitting then fitting = free < cost and 0 or (free - free % cost) / cost end
end
-- A larger ring is read before anything is written. If the log is nearly full, its oldest records may have to be merged.
if (fitting > 0 or op and op.is_forced) and (back == PAGE or pages > MANY_PAGES) and not (is_empty or is_rare) then
  local left = pages - taken
  if back == PAGE and left >= slots and left > 0 or left > MANY_PAGES then
    if left > FEW_PAGES then
      is_rare = true
      if call_redis('STRLEN', key) ~= EDGES + slots * PAGE_WIDTH then return nil, DAMAGED_WINDOW end
    else
      old = call_redis('GETRANGE', key, string.format('%d', EDGES), string.format('%d', EDGES + slots * PAGE_WIDTH - 1))
      if #old < slots * PAGE_WIDTH then return nil, DAMAGED_WINDOW end
    end
  end
end
--- up
local units, newest, kept, new_stamp, lease_ms = 0, stamp, keep, nil, 0
if mine > 0 then
  units, new_stamp = cost * mine, now - now % words[p + 1]
  newest = new_stamp
  if op then lease_ms = op.lease_ms end
  -- Other limits may read the log over longer windows: of leased units, these have to know for longer, too.
  if is_empty then keep, lease, leased = 0, 0, 0 end
  kept = keep - lease
  if kept < longest then kept = longest end
  if lease_ms > 0 then
    if lease_ms > lease or now >= leased + keep then lease = lease_ms end
    if leased < now + lease_ms then leased = now + lease_ms end
  end
  kept = kept + lease
end
if mine < wanted or leased > 0 then
  -- As it will be after the commit. Reads come before it.
  answer = place
  for i = p + 3, last, 2 do
    local window, limit, used, retry = words[i], words[i + 1], reply[answer], 0
    -- For how long a charge counts, but for leases.
    local span = window < kept and window or kept
    local reset = (leased > newest and expiry_of(newest, window, kept, lease, leased) or newest + span) - now
    if reset < 0 then reset = 0 end
    local over = mine < asked and used + units + cost - limit or 0
    if over > 0 then
      if op and op.bans and not is_shadow then op.denied[k] = true end
      local above = total - used + over - 1
      if cost > limit then
        retry = NEVER
      elseif above >= total then
        retry = reset
      else
        local holder = oldest_stamp
        if oldest_total <= above then
          local found, after =
            find(key, raw, back, head, slots, pages, records, start, rest, taken, is_in_back, TOTAL, above, total)
          -- A damaged ring counts until all is free: what other logs have been charged by now stands.
          holder = found and after or stamp
        end
        retry = (leased > holder and expiry_of(holder, window, kept, lease, leased) or holder + span) - now
      end
    end
    reply[answer], reply[filled + 1], reply[filled + 2] = -1 - used, retry, reset
    answer, filled = answer + 1, filled + 2
  end
end
if is_rare then
  if mine > 0 or is_restamped and not is_look then
    local tables, log = tables_of(kinds, 1), { key = key }
    tables.load(log)
    if log.stamp > now then tables.restamp(log, words, p, now) end
    if units > 0 then tables.commit(log, words, p, last, now, units, lease_ms) end
    tables.save(log, words, p, clock, clock ~= reply[1])
  end
elseif mine > 0 then
  -- `older` are the records of the back that stay there, before the one that was the newest.
  local older, newest_total, new_front, page, ring = '', nil, nil, nil, nil
  local is_new = raw == '' or is_empty and slots > KEPT_SLOTS
  if is_empty then
    since, base, total, head, pages, front, back = now, 0, 0, 0, 0, 0, 0
    -- Written anew, without the ring.
    if is_new then expires, slots = 0, 0 end
  else
    base, pages, front = before, pages - taken, rest
    if is_in_back then
      front = 0
      if start > BACK then
        new_front = string.rep('\0', PAGE_WIDTH - rest * WIDTH) .. string.sub(raw, start + 1, BACK + back * WIDTH)
        front, back = rest, 0
      end
    elseif taken > 0 then
      new_front, head = records, (head + taken) % slots
    end
    local from = BACK
    if stamp ~= new_stamp then
      newest_total = total
      if back == PAGE then
        if pages == 0 and front < PAGE then
          from = BACK + (PAGE - front) * WIDTH
          new_front = string.sub(new_front or string.sub(raw, FRONT + 1), (PAGE - front) * WIDTH + 1)
            .. string.sub(raw, BACK + 1, from)
          front, back = PAGE, front
        elseif pages < slots then
          page, pages, back = EDGES + (head + pages) % slots * PAGE_WIDTH, pages + 1, 0
        else
          -- A larger ring.
          ring = string.sub(raw, BACK + 1, FRONT)
          if pages > 0 then
            ring = string.sub(old, head * PAGE_WIDTH + 1) .. string.sub(old, 1, head * PAGE_WIDTH) .. ring
          end
          -- Room for twice as many, but not beyond what the limits can fill while that suffices.
          local most = math.ceil((words[p + 2] - 1) / PAGE)
          if pages >= most then most = MAX_PAGES end
          head, slots = 0, math.min(math.max(2 * pages, 1), most)
          new_front = new_front or string.sub(raw, FRONT + 1)
          pages, back = pages + 1, 0
          ring = ring .. string.rep('\0', (slots - pages) * PAGE_WIDTH)
        end
      end
    end
    if back > 0 and (newest_total or new_front) then older = string.sub(raw, from + 1, from + back * WIDTH) end
    if newest_total then back = back + 1 end
  end
  if page then call_redis('SETRANGE', key, string.format('%d', page), string.sub(raw, BACK + 1, FRONT)) end
  total = total + units
  local ttl
  if expires < new_stamp + kept then
    ttl, expires = ttl_of(kept, clock ~= reply[1])
    expires = clock + expires
  end
  if newest_total and not new_front and not ttl and keep == kept then
    -- Nearly all commits.
    call_redis('SETRANGE', key, HOT_OFFSET, struct_pack(
      PUSH_FORMAT, base, total, new_stamp, head, pages, front, back, older, newest_total, stamp
    ))
  else
    local value = struct_pack(
      HEADER_FORMAT, FORMAT, kept, expires, since, 0, 0, slots, base, total, new_stamp, head, pages, front, back
    ) .. older
    if newest_total then value = value .. struct_pack(RECORD_FORMAT, newest_total, stamp) end
    if new_front then value = value .. string.rep('\0', FRONT - #value) .. new_front end
    if ring then value = value .. ring end
    if not (is_new or ring) then
      call_redis('SETRANGE', key, '0', value)
      if ttl then call_redis('PEXPIRE', key, ttl) end
    elseif ttl then
      call_redis('SET', key, value, 'PX', ttl)
    else
      call_redis('SET', key, value, 'KEEPTTL')
    end
  end
end
--- tables
local packed_window = {}

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
function packed_window.load(log)
  local raw = pcall_redis('GETRANGE', log.key, '0', LAST_OF_EDGES)
  if raw.err then return raw.err end
  log.page_at = nil
  if raw == '' then
    empty_log(log)
    return nil
  end
  if string.byte(raw) ~= FORMAT or #raw < BACK then return NO_WINDOW end
  local _, front, back
  _, log.keep, log.expires, log.since, log.lease, log.leased, log.slots, log.base, log.total, log.stamp, log.head,
    log.pages, front, back = struct_unpack(HEADER_FORMAT, raw)
  log.ring = nil
  local is_whole = log.slots == 0 and log.pages == 0 or call_redis('STRLEN', log.key) == EDGES + log.slots * PAGE_WIDTH
  if not is_whole or front > PAGE or back > PAGE or #raw < BACK + back * WIDTH or front > 0 and #raw < EDGES
    or log.pages > log.slots or log.pages > 0 and front == 0 or log.base > log.total then
    return DAMAGED_WINDOW
  end
  log.front = numbers_of(raw, EDGES - front * WIDTH, EDGES)
  log.back = numbers_of(raw, BACK, BACK + back * WIDTH)
  log.count = front + PAGE * log.pages + back
  return nil
end

local function read(log, offset, length)
  if length == 0 then return '' end
  return call_redis('GETRANGE', log.key, string.format('%d', offset), string.format('%d', offset + length - 1))
end

local function write(log, offset, bytes)
  call_redis('SETRANGE', log.key, string.format('%d', offset), bytes)
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

-- Room in a ring that has this many pages, all in use: twice as much, but not beyond what the limits can fill while that
-- suffices.
local function slots_for(pages, records_wanted)
  local wanted = math.ceil((records_wanted - 1) / PAGE)
  return math.min(math.max(2 * pages, 1), pages < wanted and wanted or MAX_PAGES)
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
function packed_window.save(log, words, p, clock, is_clock_given)
  if log.total == log.base then
    call_redis('DEL', log.key)
    return
  end
  make_edges_fit(log, words[p + 2])
  local ttl
  if log.expires < log.stamp + log.keep then
    ttl, log.expires = ttl_of(log.keep, is_clock_given)
    log.expires = clock + log.expires
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
    call_redis('SETRANGE', log.key, string.format('%d', EDGES + log.slots * PAGE_WIDTH - 1), '\0')
    call_redis('SETRANGE', log.key, '0', value)
    call_redis('PEXPIRE', log.key, ttl or (ttl_of(log.keep, is_clock_given)))
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

local function subtract(log, stamp, units, records)
  local index = first_above(log, STAMP, stamp - 1)
  local most = math.min(MAX_REFUND_RECORDS, math.max(MIN_REFUND_RECORDS, records))
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

function packed_window.restamp(log, words, p, now)
  log.stamp, log.head, log.pages, log.slots, log.count, log.expires = now - now % words[p + 1], 0, 0, 0, 0, 0
  log.front, log.back, log.ring = {}, {}, ''
  log.since, log.leased = math.min(log.since, now), math.min(log.leased, now + log.lease)
end

function packed_window.commit(log, words, p, last, now, units, lease)
  trim(log, now)
  local longest, stamp = log.keep - log.lease, now - now % words[p + 1]
  for i = p + 3, last, 2 do longest = math.max(longest, words[i]) end
  if lease > 0 then
    local is_in_force = now < log.leased + log.keep
    log.lease = is_in_force and math.max(log.lease, lease) or lease
    log.leased = math.max(log.leased, now + lease)
  end
  log.keep = longest + log.lease
  units = math.min(units, MAX_UNITS)
  if log.total + units > MAX_TOTAL then rebase(log, units) end
  if log.total == log.base then
    log.since = now
  elseif log.stamp ~= stamp then
    push(log)
  end
  log.stamp, log.total = stamp, log.total + units
end

function packed_window.refund(log, words, p, now, at_ms, units)
  local stamp = at_ms - at_ms % words[p + 1]
  if at_ms < log.since or stamp <= now - log.keep then return 0 end
  return subtract(log, stamp, units, words[p + 2])
end

function packed_window.charges(log, words, _, i, now, most)
  local window = words[i]
  if now < log.leased + window then window = window + log.lease end
  return newest_after(log, now - math.min(window, log.keep), most)
end
