-- The twin of packed-window.ts.
--
-- Words: precision, then window and limit of each. A window is given with precision - 1 more: a stamp is the start of its grain.
-- Answer: per limit the units used, if all that was asked for was admitted: then the newest stamp is the grain of now.
-- Else -1 less the units used, and behind all answers per limit: milliseconds until the cost fits once more (-1: never),
-- and until all is free.
-- Reads and writes: one string per log. Integers are unsigned, big-endian, of this many bytes:
--   format        1  always 1; any other is refused, never guessed at
--   since         6  the time of its first charge, since it was last empty
--   slots         2  pages that the ring has room for
--   keep          6  the longest time for which any commit needed charges to count; after it they are gone
--   base          6  the total before the oldest record
--   total, stamp  12 the newest record: the running total of all units up to and with it, and its time
--   front         1  records in the front; 16 more if units have been taken on lease
--   back          1  records in the back
--   head          2  slot of the ring's oldest page
--   pages         2  how many pages the ring holds
--   back          48 the records before the newest, in order of time, up to four
--   lease         6  leased units may be spent elsewhere for this long after their stamp,
--   leased        6  and none of them later than this. Both hold only if `front` has its 16.
--   front         48 the oldest records, up to four, in the last places of four
--   ring          48 a slot: a page of four records, older than the back, newer than the front
-- Times are milliseconds, totals units; a record is total and stamp. A string ends after the last part that was
-- ever used.
--
-- Records come in at the back and leave from the front, so most decisions read and write these two and the
-- header, in one piece. Every fourth moves a page from the back to the ring, or from the ring to the front. Little
-- is read and written besides: Lua hashes each string that it is given. So edges and pages have four records: longer edges
-- are read and written at every decision, shorter ones move a page more often. 3 to 6 measured alike, 8 slower.
--
-- TTL: set to keep + slack once in a part of the time that is a second less than the slack, and when keep changes.
-- Invariants: stamps and totals rise from record to record; pages <= slots <= 16384; while the ring holds pages,
-- the front is not empty; a log without units is no key at all.

local FORMAT = 1
local HEADER_FORMAT = '>BI6I2I6I6I6I6BBI2I2'
local BACK = 39
-- What nearly every commit changes, and is written alone: from base to the last record of the back.
local PUSH_FORMAT = '>I6I6I6BBI2I2c0I6I6'
local HOT_OFFSET = '15'
local RECORD_FORMAT = '>I6I6'
local PAGE_FORMAT = '>I6I6I6I6I6I6I6I6'
local TOTAL = 0
local STAMP = 6
local WIDTH = 12
local PAGE = 4
local PAGE_WIDTH = 48
local HAS_LEASES = 16
local LEASES = 87
local FRONT = 99
local EDGES = 147
local LAST_OF_EDGES = '146'
-- A ring that is not larger is kept when its log has run empty: it will be filled again.
local KEPT_SLOTS = 64
local MANY_PAGES = 16380
local MAX_PAGES = 16384
-- Steps of a search in a ring: each third halves it.
local MOST_TRIES = 60
local MAX_TOTAL = 2 ^ 47
local MAX_RECORDS = 65536
local MIN_REFUND_RECORDS = 256
local MAX_REFUND_RECORDS = 4096
-- The header of a log that isn't there.
local EMPTY_WINDOW = '\1' .. string.rep('\0', 38)
local NO_WINDOW = 'not a window log of format 1'
local DAMAGED_WINDOW = 'a damaged window log'

--- shared
-- Records that the longest of its limits can fill.
local function records_of(words, p, last)
  local precision, longest = words[p + 1], p + 2
  for i = p + 4, last, 2 do
    if words[i] > words[longest] then longest = i end
  end
  return math.min(words[longest + 1], (words[longest] - words[longest] % precision) / precision + 1)
end

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
local size = #raw
if size < BACK then
  if raw ~= '' then return nil, raw.err or NO_WINDOW end
  raw = EMPTY_WINDOW
end
local format, since, slots, keep, base, total, stamp, front, back, head, pages = struct_unpack(HEADER_FORMAT, raw)
local lease, leased, is_restamped = 0, 0, false
if format ~= FORMAT then return nil, NO_WINDOW end
if front >= HAS_LEASES and size >= FRONT then
  front, lease, leased = front - HAS_LEASES, struct_unpack(RECORD_FORMAT, raw, LEASES + 1)
end
if front > 0 and (size < EDGES or front > PAGE) or back > 0 and size < BACK + back * WIDTH then
  return nil, DAMAGED_WINDOW
end
if stamp > now then
  if stamp <= clock + MAX_AHEAD then return nil, stamp end
  -- All that it holds counts from now on.
  stamp, slots, head, pages, front, back, is_restamped = now - now % words[p + 1], 0, 0, 0, 0, 0, true
  if since > now then since = now end
  if leased > now + lease then leased = now + lease end
end

-- Skips what no longer counts. A place in the log is told by five: `rest` records stand from `start` on in `records`, which
-- is the front, a page of the ring, or the back; `taken` pages of the ring lie before what follows them. No rest: the newest.
local gone = now - keep
local is_empty = stamp <= gone
local records, start, rest, taken, is_in_back = raw, EDGES - front * WIDTH, front, 0, false
local before, _, oldest_total, oldest_stamp = base, nil, nil, nil
if is_empty then
  before = total
else
  if front == 0 then start, rest, is_in_back = BACK, back, true end
  if rest == 0 then
    oldest_total, oldest_stamp = total, stamp
  else
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
local longest = 0
for i = p + 2, last, 2 do
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
-- All other reads come before the first write.
local old, is_rare = nil, nil
if (fitting > 0 or op and op.is_forced) and not is_empty then
  -- Tables have to lower all totals.
  is_rare = total > MAX_UNITS
  if back >= PAGE or is_rare or pages > MANY_PAGES then
    if back > PAGE or pages > slots or front == 0 and pages > 0 then return nil, DAMAGED_WINDOW end
    if rest + PAGE * (pages - taken) + back >= MAX_RECORDS - 1 and stamp ~= now - now % words[p + 1] then
      -- The oldest is merged into the next one: its units count for longer than they should, never for less.
      _, _, records, start, rest, taken, is_in_back =
        find(key, raw, back, head, slots, pages, records, start, rest, taken, is_in_back, TOTAL, oldest_total, total)
      if not records then return nil, DAMAGED_WINDOW end
    end
    if is_rare then
      local all = call_redis('GETRANGE', key, '0', '-1')
      if slots > 0 and #all ~= EDGES + slots * PAGE_WIDTH then return nil, DAMAGED_WINDOW end
    elseif back == PAGE and pages - taken >= slots and pages > taken then
      -- A larger ring.
      old = call_redis('GETRANGE', key, string.format('%d', EDGES), '-1')
      if #old ~= slots * PAGE_WIDTH then return nil, DAMAGED_WINDOW end
    end
  end
end
--- up
local units, newest, kept, new_stamp, lease_ms = 0, stamp, keep, nil, 0
if mine > 0 then
  units, new_stamp = cost * mine, now - now % words[p + 1]
  newest = new_stamp
  if units > MAX_UNITS then units = MAX_UNITS end
  -- Other limits may read the log over longer windows: of leased units, these have to know for longer, too.
  if is_empty then keep, lease, leased = 0, 0, 0 end
  kept = keep - lease
  if kept < longest then kept = longest end
  if op then
    lease_ms = op.lease_ms
    if lease_ms > 0 then
      if lease_ms > lease or now >= leased + keep then lease = lease_ms end
      if leased < now + lease_ms then leased = now + lease_ms end
    end
  end
  kept = kept + lease
end
if mine < wanted or leased > 0 then
  -- As it will be after the commit. Reads come before it.
  answer = place
  for i = p + 2, last, 2 do
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
if mine > 0 and is_rare then
  local tables, log = tables_of(kinds, 1), { key = key }
  tables.load(log)
  if is_restamped then log.records, log.slots, log.since, log.stamp = '', 0, since, stamp end
  tables.commit(log, now, gone, new_stamp, units)
  log.keep, log.lease, log.leased, log.ttl = kept, lease, leased, ttl_of(kept, clock ~= reply[1])
  tables.save(log)
elseif mine > 0 or is_restamped and not is_look then
  new_stamp = new_stamp or stamp
  -- `older` are the records of the back that stay there, before the one that was the newest.
  local older, newest_total, new_front, page, ring = '', nil, nil, nil, nil
  -- Writes the log again, without the ring.
  local is_new = size == 0 or is_restamped or is_empty and slots > KEPT_SLOTS
  if is_empty then
    since, base, total, head, pages, front, back = now, 0, 0, 0, 0, 0, 0
    if is_new then slots = 0 end
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
          ring = string.sub(raw, BACK + 1, LEASES)
          if pages > 0 then
            ring = string.sub(old, head * PAGE_WIDTH + 1) .. string.sub(old, 1, head * PAGE_WIDTH) .. ring
          end
          -- Room for twice as many, but not beyond what the limits can fill while that suffices.
          local most = math.ceil((records_of(words, p, last) - 1) / PAGE)
          if pages >= most then most = MAX_PAGES end
          head, slots = 0, math.min(math.max(2 * pages, 1), most)
          new_front = new_front or string.sub(raw, FRONT + 1)
          pages, back = pages + 1, 0
          ring = ring .. string.rep('\0', (slots - pages) * PAGE_WIDTH)
        end
      end
    end
    if back > 0 and (newest_total or new_front or leased > 0) then older = string.sub(raw, from + 1, from + back * WIDTH) end
    if newest_total then back = back + 1 end
  end
  if page then call_redis('SETRANGE', key, string.format('%d', page), string.sub(raw, BACK + 1, LEASES)) end
  total = total + units
  -- A second less than the slack: a stamp may be so far ahead of the clock.
  local part = kept < 20000 and 4000 or kept / 4 - 1000
  local is_due = now - now % part > stamp or keep ~= kept
  if leased > 0 then front = front + HAS_LEASES end
  if newest_total and not (new_front or is_due) and lease_ms == 0 then
    -- Nearly all commits.
    call_redis('SETRANGE', key, HOT_OFFSET, struct_pack(
      PUSH_FORMAT, base, total, new_stamp, front, back, head, pages, older, newest_total, stamp
    ))
  else
    local value = struct_pack(
      HEADER_FORMAT, FORMAT, since, slots, kept, base, total, new_stamp, front, back, head, pages
    ) .. older
    if newest_total then value = value .. struct_pack(RECORD_FORMAT, newest_total, stamp) end
    if leased > 0 or new_front then
      value = value .. string.rep('\0', LEASES - #value) .. struct_pack(RECORD_FORMAT, lease, leased)
    end
    if new_front then value = value .. new_front end
    if ring then value = value .. ring end
    local ttl = (is_due or is_new) and ttl_of(kept, clock ~= reply[1])
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

-- Fills in the log from its key; answers what is wrong with the value, if anything. `records` are all but the newest, as they
-- are stored, oldest first.
function packed_window.load(log)
  local raw = pcall_redis('GETRANGE', log.key, '0', '-1')
  if raw.err then return raw.err end
  log.since, log.slots, log.keep, log.base, log.total, log.stamp = 0, 0, 0, 0, 0, 0
  log.lease, log.leased, log.records = 0, 0, ''
  if raw == '' then return nil end
  if string.byte(raw) ~= FORMAT or #raw < BACK then return NO_WINDOW end
  local _, front, back, head, pages
  _, log.since, log.slots, log.keep, log.base, log.total, log.stamp, front, back, head, pages =
    struct_unpack(HEADER_FORMAT, raw)
  if front >= HAS_LEASES and #raw >= FRONT then
    front, log.lease, log.leased = front - HAS_LEASES, struct_unpack(RECORD_FORMAT, raw, LEASES + 1)
  end
  local is_whole = log.slots == 0 or #raw == EDGES + log.slots * PAGE_WIDTH
  if not is_whole or front > PAGE or back > PAGE or #raw < BACK + back * WIDTH or front > 0 and #raw < EDGES
    or pages > log.slots or pages > 0 and front == 0 or log.base > log.total then return DAMAGED_WINDOW end
  local split = EDGES + head * PAGE_WIDTH
  local ring = pages > 0 and string.sub(raw, split + 1) .. string.sub(raw, EDGES + 1, split) or ''
  log.records = string.sub(raw, EDGES - front * WIDTH + 1, EDGES) .. string.sub(ring, 1, pages * PAGE_WIDTH)
    .. string.sub(raw, BACK + 1, BACK + back * WIDTH)
  return nil
end

-- Stores all of it. A new TTL is in `ttl`.
function packed_window.save(log)
  if log.total == log.base then
    call_redis('DEL', log.key)
    return
  end
  local records, count, front, pages = log.records, #log.records / WIDTH, 0, 0
  if count > PAGE then front, pages = PAGE, math.floor(count / PAGE) - 1 end
  local split, slots = (front + pages * PAGE) * WIDTH, math.max(log.slots, pages)
  local value = struct_pack(
    HEADER_FORMAT, FORMAT, log.since, slots, log.keep, log.base, log.total, log.stamp,
    log.leased > 0 and front + HAS_LEASES or front, count - front - pages * PAGE, 0, pages
  ) .. string.sub(records, split + 1)
  if log.leased > 0 or front > 0 or slots > 0 then
    value = value .. string.rep('\0', LEASES - #value) .. struct_pack(RECORD_FORMAT, log.lease, log.leased)
      .. string.rep('\0', PAGE_WIDTH - front * WIDTH) .. string.sub(records, 1, split)
      .. string.rep('\0', (slots - pages) * PAGE_WIDTH)
  end
  if log.ttl then
    call_redis('SET', log.key, value, 'PX', log.ttl)
  else
    call_redis('SET', log.key, value, 'KEEPTTL')
  end
end

-- Total and stamp of a record. The newest is behind the others.
local function at(log, index)
  if index * WIDTH == #log.records then return log.total, log.stamp end
  return struct_unpack(RECORD_FORMAT, log.records, index * WIDTH + 1)
end

-- The place of the first record whose total or stamp is above the bound, or that of the newest.
local function first_above(log, column, bound)
  local low, high = 0, #log.records / WIDTH
  while low < high do
    local middle = math.floor((low + high) / 2)
    local total, stamp = at(log, middle)
    if (column == TOTAL and total or stamp) <= bound then low = middle + 1 else high = middle end
  end
  return low
end

local function total_before(log, index)
  return index == 0 and log.base or (at(log, index - 1))
end

-- The records from `first` on, with totals lowered by `units`.
local function lowered(log, first, units)
  local records = {}
  for index = first, #log.records / WIDTH - 1 do
    local total, stamp = at(log, index)
    records[#records + 1] = struct_pack(RECORD_FORMAT, total - units, stamp)
  end
  return table.concat(records)
end

local function drop(log, index)
  log.base, log.records = total_before(log, index), string.sub(log.records, index * WIDTH + 1)
end

-- The log must not be empty.
function packed_window.commit(log, now, gone, stamp, units)
  drop(log, first_above(log, STAMP, gone))
  if log.total + units > MAX_TOTAL then
    -- Lowers all totals by the base, or by more: units beyond 2^46 are forgotten, the oldest first.
    local shift = math.max(log.base, log.total + units - MAX_UNITS)
    drop(log, first_above(log, TOTAL, shift))
    log.records, log.base, log.total = lowered(log, 0, shift), 0, log.total - shift
  end
  if log.total == log.base then
    log.since = now
  elseif log.stamp ~= stamp then
    -- Merged into the next one: its units count for longer than they should, never for less.
    if #log.records >= (MAX_RECORDS - 1) * WIDTH then log.records = string.sub(log.records, WIDTH + 1) end
    log.records = log.records .. struct_pack(RECORD_FORMAT, log.total, log.stamp)
  end
  log.total, log.stamp = log.total + units, stamp
end

function packed_window.refund(log, words, p, now, at_ms, units)
  local stamp = at_ms - at_ms % words[p + 1]
  if at_ms < log.since or stamp <= now - log.keep then return 0 end
  local index, newest = first_above(log, STAMP, stamp - 1), #log.records / WIDTH
  local most = math.min(MAX_REFUND_RECORDS, math.max(MIN_REFUND_RECORDS, records_of(words, p, log.last)))
  local total, found = at(log, index)
  if found ~= stamp or newest - index > most then return 0 end
  -- A damaged log: no number below 0 may get into the reply, where it has a meaning.
  local held = total - total_before(log, index)
  if held <= 0 then return 0 end
  local returned = math.min(units, held)
  -- A record left with nothing is removed, so that no log has more records than units.
  local is_gone = returned == held
  if is_gone and index == newest and index > 0 then
    index = index - 1
    log.total, log.stamp = at(log, index)
    log.records = string.sub(log.records, 1, index * WIDTH)
  else
    log.records = string.sub(log.records, 1, index * WIDTH) .. lowered(log, is_gone and index + 1 or index, returned)
    log.total = log.total - returned
  end
  return returned
end

-- Stamp and units of the charges that count, in turn: the newest records, up to `most`, oldest first.
function packed_window.charges(log, words, p, i, now, most)
  if log.stamp > now then return { now - now % words[p + 1], log.total - log.base } end
  local window, newest = words[i], #log.records / WIDTH
  if now < log.leased + window then window = window + log.lease end
  local cut = now - math.min(window, log.keep)
  if log.stamp <= cut then return {} end
  local charges, from = {}, math.max(first_above(log, STAMP, cut), newest + 1 - most)
  local before = total_before(log, from)
  for index = from, newest do
    local total, stamp = at(log, index)
    charges[#charges + 1], charges[#charges + 2], before = stamp, total - before, total
  end
  return charges
end
