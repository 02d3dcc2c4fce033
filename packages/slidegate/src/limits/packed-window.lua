-- The twin of packed-window.ts: stamps and running totals in a ring. Both ends of the ring are stored next to the header.
--
-- Words (numbers that the process sends): the precision, then each limit's window and maximum. The windows are
-- precision - 1 longer than declared, because a stamp is the start of its grain.
-- Answer: if all requests were admitted, the units used per limit; the newest stamp is then the current grain.
-- Otherwise, -1 minus the units used. In that case, two durations per limit come after the answers of all logs:
-- milliseconds until the cost fits (-1: never), and until the limit is unused.
-- Stored: one string, see docs/state.md. The back has up to four records before the newest, and the front has up to four of the
-- oldest. A page in the ring has four records.
-- TTL: `keep` (how long charges count) plus slack. Set when `keep` changes, and by the first commit in each period. A
-- period is a second shorter than the slack.
-- Invariants: stamps and totals rise from record to record. pages <= slots <= 16384. While the ring has pages, the front
-- isn't empty. A log without units has no key.
--
-- Records enter at the back and leave at the front. So most decisions read and write only the back, the front and the header, in
-- one piece. Every fourth decision moves a page from the back to the ring, or from the ring to the front.

local FORMAT = 1
local HEADER_FORMAT = '>BI6I2I6I6I6I6BBI2I2'
local BACK = 39
-- The format of the part that nearly every commit changes: from base to the last record in the back.
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
-- A ring of up to this many slots is kept when the log becomes empty.
local KEPT_SLOTS = 64
local MANY_PAGES = 16380
local MAX_PAGES = 16384
-- Operations other than decisions read and write a ring of up to this many slots as a whole.
local LARGE_RING = 64
-- Empty pages are written in chunks of this many bytes.
local MOST_ZEROS = 4096
-- Maximum number of steps in a search. Every third step halves the range.
local MOST_TRIES = 60
local MAX_TOTAL = 2 ^ 47
local MAX_RECORDS = 65536
local MIN_REFUND_RECORDS = 256
local MAX_REFUND_RECORDS = 4096
-- The header of a log without a key.
local EMPTY_WINDOW = '\1' .. string.rep('\0', 38)
local NO_WINDOW = 'not a window log of format 1'
local DAMAGED_WINDOW = 'a damaged window log'

--- shared
-- The maximum number of records that the limit with the longest window can fill.
local function records_of(words, p, last)
  local precision, longest = words[p + 1], p + 2
  for i = p + 4, last, 2 do
    if words[i] > words[longest] then longest = i end
  end
  return math.min(words[longest + 1], (words[longest] - words[longest] % precision) / precision + 1)
end

--- before
-- Finds the first record whose total or stamp (see `column`) exceeds the bound. The newest record's value must exceed it;
-- that of the first record at the given place must not. Returns the total before the found record, its stamp (nil for the newest
-- one) and its place; nothing if the ring is damaged. This is an interpolation search: it reads the page where the
-- bound would be if records were evenly spaced. Every third read is of the middle page.
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
      -- The record is one of these.
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
      -- The record is the first one in the next page, or in the back.
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

--- read
local raw = pcall_redis('GETRANGE', key, '0', LAST_OF_EDGES)
local size = #raw
if size < BACK then
  if raw ~= '' then return nil, raw.err or NO_WINDOW end
  raw = EMPTY_WINDOW
end
local format, since, slots, keep, base, total, stamp, front, back, head, pages = struct_unpack(HEADER_FORMAT, raw)
local lease, leased = 0, 0
if format ~= FORMAT then return nil, NO_WINDOW end
if front >= HAS_LEASES and size >= FRONT then
  front, lease, leased = front - HAS_LEASES, struct_unpack(RECORD_FORMAT, raw, LEASES + 1)
end
if front > 0 and (size < EDGES or front > PAGE) or back > 0 and size < BACK + back * WIDTH then
  return nil, DAMAGED_WINDOW
end
--- load
local is_restamped = false
if stamp > now then
  if stamp <= clock + MAX_AHEAD then return nil, stamp end
  -- All units count as if they were charged now.
  stamp, slots, head, pages, front, back, is_restamped = now - now % words[p + 1], 0, 0, 0, 0, 0, true
  if since > now then since = now end
  if leased > now + lease then leased = now + lease end
end

-- Skips records that no longer count. Five values describe a place in the log: `records` is the text of the front, a
-- page or the back. `start` is the offset of the next record in it, and `rest` is the number of records from there on.
-- `taken` is the number of the ring's pages before that text. If `rest` is 0, the place is the newest record.
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
    -- Usually, only one record no longer counts.
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
-- All other reads must come before the first write, so they are here.
local old, wrapped, is_rare, rare = nil, nil, nil, nil
if (fitting > 0 or op and op.is_forced) and not is_empty then
  -- If the total is this large, the functions in `tables` lower all totals.
  is_rare = total > MAX_UNITS
  if back >= PAGE or is_rare or pages > MANY_PAGES then
    if back > PAGE or pages > slots or front == 0 and pages > 0 then return nil, DAMAGED_WINDOW end
    if rest + PAGE * (pages - taken) + back >= MAX_RECORDS - 1 and stamp ~= now - now % words[p + 1] then
      -- Merges the oldest record into the next one. Its units then count for too long, but never for too short a time.
      _, _, records, start, rest, taken, is_in_back =
        find(key, raw, back, head, slots, pages, records, start, rest, taken, is_in_back, TOTAL, oldest_total, total)
      if not records then return nil, DAMAGED_WINDOW end
    end
    if is_rare then
      rare = { key = key }
      local _, damage = tables_of(kinds, 1).load(rare)
      if damage then return nil, damage end
    elseif back == PAGE and pages - taken >= slots and pages > taken then
      -- The ring must grow. Reads it in chronological order, from its first page.
      local split = EDGES + head * PAGE_WIDTH
      old = call_redis('GETRANGE', key, string.format('%d', split), '-1')
      wrapped = head > 0 and call_redis('GETRANGE', key, string.format('%d', EDGES), string.format('%d', split - 1)) or ''
      if #old + #wrapped ~= slots * PAGE_WIDTH then return nil, DAMAGED_WINDOW end
    end
  end
end
--- up
local units, newest, kept, new_stamp, lease_ms = 0, stamp, keep, nil, 0
if mine > 0 then
  units, new_stamp = cost * mine, now - now % words[p + 1]
  newest = new_stamp
  if units > MAX_UNITS then units = MAX_UNITS end
  -- Other limits may read the log over longer windows. It keeps records for the longest window, plus the lease.
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
  -- The times that will apply after the commit, computed before it.
  answer = place
  for i = p + 2, last, 2 do
    local window, limit, used, retry = words[i], words[i + 1], reply[answer], 0
    -- The time for which a charge counts without a lease.
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
          -- If the ring is damaged, reports when the limit is unused. It is too late to fail: other logs may be charged.
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
  local tables = tables_of(kinds, 1)
  if is_restamped then rare.pieces, rare.count, rare.slots, rare.since, rare.stamp = {}, 0, 0, since, stamp end
  tables.commit(rare, now, gone, new_stamp, units)
  rare.keep, rare.lease, rare.leased = kept, lease, leased
  tables.save(rare)
  call_redis('PEXPIRE', key, (ttl_of(kept, clock ~= reply[1])))
elseif mine > 0 or is_restamped and not is_look then
  new_stamp = new_stamp or stamp
  -- `older` contains the records that stay in the back, before the former newest record.
  local older, newest_total, new_front, page, ring = '', nil, nil, nil, nil
  -- If true, the whole log is written, without the ring.
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
          -- Moves the back to a larger ring.
          ring = string.sub(raw, BACK + 1, LEASES)
          -- Doubles the slots, up to the number that the limits can fill. If the log already has that many, up to the maximum.
          local most = math.ceil((records_of(words, p, last) - 1) / PAGE)
          if pages >= most then most = MAX_PAGES end
          head, slots = 0, math.min(math.max(2 * pages, 1), most)
          new_front = new_front or string.sub(raw, FRONT + 1)
          pages, back = pages + 1, 0
        end
      end
    end
    if back > 0 and (newest_total or new_front or leased > 0) then older = string.sub(raw, from + 1, from + back * WIDTH) end
    if newest_total then back = back + 1 end
  end
  if page then call_redis('SETRANGE', key, string.format('%d', page), string.sub(raw, BACK + 1, LEASES)) end
  total = total + units
  -- A period of the TTL is a second shorter than the slack, because a stamp may be that far ahead of the clock.
  local part = kept < 20000 and 4000 or kept / 4 - 1000
  local is_due = now - now % part > stamp or keep ~= kept
  if leased > 0 then front = front + HAS_LEASES end
  if newest_total and not (new_front or is_due) and lease_ms == 0 then
    -- The usual commit.
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
    if ring then
      -- string.rep appends byte by byte, which is slow.
      local function empty_pages(count)
        if count < PAGE then return string.rep('\0', count * PAGE_WIDTH) end
        local part = empty_pages((count - count % PAGE) / PAGE)
        return part .. part .. part .. part .. string.rep('\0', count % PAGE * PAGE_WIDTH)
      end
      value = value .. (old or '') .. (wrapped or '') .. ring .. empty_pages(slots - pages)
    end
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

-- `pieces` locates all records except the newest, oldest first. `raw` is the value, or its beginning if the ring is large.
function packed_window.load(log)
  local key = log.key
  --- read
  if back > PAGE or pages > slots or pages > 0 and front == 0 or base > total then return nil, DAMAGED_WINDOW end
  if slots > 0 then
    local is_large, size_of_ring = slots > LARGE_RING, slots * PAGE_WIDTH
    local rest = call_redis('GETRANGE', key, string.format('%d', is_large and EDGES + size_of_ring - 1 or EDGES), '-1')
    if head >= slots or #rest ~= (is_large and 1 or size_of_ring) then return nil, DAMAGED_WINDOW end
    if not is_large then raw = raw .. rest end
  end
  log.since, log.slots, log.keep, log.base, log.total, log.stamp = since, slots, keep, base, total, stamp
  log.lease, log.leased, log.raw, log.count = lease, leased, raw, front + PAGE * pages + back
  log.pieces = {}
  if front > 0 then log.pieces[1] = { count = front, start = EDGES - front * WIDTH } end
  if pages > 0 then
    local unwrapped = math.min(pages, slots - head)
    log.pieces[2] = { count = PAGE * unwrapped, start = EDGES + head * PAGE_WIDTH }
    log.pieces[3] = { count = PAGE * (pages - unwrapped), start = EDGES }
  end
  if back > 0 then log.pieces[#log.pieces + 1] = { count = back, start = BACK } end
  -- The number of records, from the oldest on, that `save` leaves in place.
  log.settled = head == 0 and front == PAGE and PAGE * (1 + pages) or 0
end

local function read_piece(log, piece, first, last)
  local start, stop, text = piece.start + first * WIDTH, piece.start + last * WIDTH - 1, piece.text or log.raw
  if stop < #text then return string.sub(text, start + 1, stop + 1) end
  return call_redis('GETRANGE', log.key, string.format('%d', start), string.format('%d', stop))
end

-- Returns the records from one index to another, as one string per piece.
local function texts_of(log, from, to)
  local texts = {}
  for i = 1, #log.pieces do
    local piece = log.pieces[i]
    local first, last = from > 0 and from or 0, to < piece.count and to or piece.count
    if first < last then texts[#texts + 1] = read_piece(log, piece, first, last) end
    from, to = from - piece.count, to - piece.count
  end
  return texts
end

local function text_of(log, from, to)
  return from < to and table.concat(texts_of(log, from, to)) or ''
end

-- Replaces the records from `index` on with those in `text`.
local function replace(log, index, text)
  log.kept, log.count = index, index + #text / WIDTH
  for i = 1, #log.pieces do
    local piece = log.pieces[i]
    if piece.count > index then piece.count = index end
    index = index - piece.count
  end
  if text ~= '' then log.pieces[#log.pieces + 1] = { count = #text / WIDTH, start = 0, text = text } end
end

-- Writes the log, with the ring starting at the first slot. Records already in place aren't written again.
function packed_window.save(log)
  if log.total == log.base then
    call_redis('DEL', log.key)
    return
  end
  local front, pages = 0, 0
  if log.count > PAGE then front, pages = PAGE, math.floor(log.count / PAGE) - 1 end
  local split, slots = front + pages * PAGE, math.max(log.slots, pages)
  local edges = struct_pack(
    HEADER_FORMAT, FORMAT, log.since, slots, log.keep, log.base, log.total, log.stamp,
    log.leased > 0 and front + HAS_LEASES or front, log.count - split, 0, pages
  ) .. text_of(log, split, log.count)
  if log.leased > 0 or front > 0 or slots > 0 then
    edges = edges .. string.rep('\0', LEASES - #edges) .. struct_pack(RECORD_FORMAT, log.lease, log.leased)
      .. string.rep('\0', PAGE_WIDTH - front * WIDTH) .. text_of(log, 0, front)
  end
  if slots <= LARGE_RING or slots ~= log.slots then
    local zeros = string.rep('\0', (slots - pages) * PAGE_WIDTH)
    call_redis('SET', log.key, edges .. text_of(log, front, split) .. zeros, 'KEEPTTL')
    return
  end
  local from = math.max(front, math.min(log.kept, log.settled, split))
  -- All reads must come before the first write.
  local texts, offset, size = texts_of(log, from, split), EDGES + (from - front) * WIDTH, EDGES + slots * PAGE_WIDTH
  local zeros = string.rep('\0', math.min(MOST_ZEROS, (slots - pages) * PAGE_WIDTH))
  call_redis('SETRANGE', log.key, '0', edges)
  while offset < size do
    local text = table.remove(texts, 1) or string.sub(zeros, 1, size - offset)
    call_redis('SETRANGE', log.key, string.format('%d', offset), text)
    offset = offset + #text
  end
end

-- Returns the total and stamp of a record. The newest record has the highest index.
local function at(log, index)
  if index == log.count then return log.total, log.stamp end
  for i = 1, #log.pieces do
    local piece = log.pieces[i]
    local start, text = piece.start + index * WIDTH, piece.text or log.raw
    if index < piece.count then
      if start < #text then return struct_unpack(RECORD_FORMAT, text, start + 1) end
      return struct_unpack(RECORD_FORMAT, read_piece(log, piece, index, index + 1))
    end
    index = index - piece.count
  end
end

-- Returns the index of the first record whose total or stamp exceeds the bound, or of the newest record.
local function first_above(log, column, bound)
  local low, high = 0, log.count
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

-- Returns the records from `first` on, with totals lowered by `units`.
local function lowered(log, first, units)
  local records, text = {}, text_of(log, first, log.count)
  for start = 1, #text, WIDTH do
    local total, stamp = struct_unpack(RECORD_FORMAT, text, start)
    records[#records + 1] = struct_pack(RECORD_FORMAT, total - units, stamp)
  end
  return table.concat(records)
end

-- Adds a charge to a log that isn't empty.
function packed_window.commit(log, now, gone, stamp, units)
  local first, shift, pushed = first_above(log, STAMP, gone), 0, ''
  log.base = total_before(log, first)
  if log.total + units > MAX_TOTAL then
    -- Lowers all totals by the base. Above 2^46 units, lowers them further to drop the oldest units.
    shift = math.max(log.base, log.total + units - MAX_UNITS)
    first, log.base = first_above(log, TOTAL, shift), shift
  end
  if log.total == log.base then
    log.since = now
  elseif log.stamp ~= stamp then
    -- Merges the oldest record into the next one. Its units then count for too long, but never for too short a time.
    if log.count - first >= MAX_RECORDS - 1 then first = first + 1 end
    pushed = struct_pack(RECORD_FORMAT, log.total - shift, log.stamp)
  end
  replace(log, 0, lowered(log, first, shift) .. pushed)
  log.base, log.total, log.stamp = log.base - shift, log.total + units - shift, stamp
end

function packed_window.refund(log, words, p, now, at_ms, units)
  local stamp = at_ms - at_ms % words[p + 1]
  if at_ms < log.since or stamp <= now - log.keep then return 0 end
  local index, newest = first_above(log, STAMP, stamp - 1), log.count
  local most = math.min(MAX_REFUND_RECORDS, math.max(MIN_REFUND_RECORDS, records_of(words, p, log.last)))
  local total, found = at(log, index)
  if found ~= stamp or newest - index > most then return 0 end
  -- The units of the record. 0 or less if the log is damaged.
  local held = total - total_before(log, index)
  if held <= 0 then return 0 end
  local returned = math.min(units, held)
  -- An empty record is removed, so no log has more records than units.
  local is_gone = returned == held
  if is_gone and index == newest and index > 0 then
    log.total, log.stamp = at(log, index - 1)
    replace(log, index - 1, '')
  else
    replace(log, index, lowered(log, is_gone and index + 1 or index, returned))
    log.total = log.total - returned
  end
  packed_window.save(log)
  return returned
end

-- Returns the stamp and units of each charge that counts, oldest first. Lists up to `most` of the newest charges.
function packed_window.charges(log, words, p, i, now, most)
  if log.stamp > now then return { now - now % words[p + 1], log.total - log.base } end
  local window = words[i]
  if now < log.leased + window then window = window + log.lease end
  local cut = now - math.min(window, log.keep)
  if log.stamp <= cut then return {} end
  local charges, from = {}, math.max(first_above(log, STAMP, cut), log.count + 1 - most)
  local before, text = total_before(log, from), text_of(log, from, log.count)
  for start = 1, #text, WIDTH do
    local total, stamp = struct_unpack(RECORD_FORMAT, text, start)
    charges[#charges + 1], charges[#charges + 2], before = stamp, total - before, total
  end
  charges[#charges + 1], charges[#charges + 2] = log.stamp, log.total - before
  return charges
end
