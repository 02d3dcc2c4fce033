-- A usual op on a packed window: see stores/redis/usual.lua. Its numbers are its precision and the records that its limits
-- fill; then each window and its limit.
--
-- A place in the log is told by five: `rest` records stand from `place` on in `records`, which is the front, a
-- page of the ring, or the back; `taken` pages of the ring lie before what follows them. No rest: the newest.

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
    local found = call_redis('GETRANGE', key, text_of(offset), text_of(offset + PAGE_WIDTH - 1))
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

--- load
local raw = pcall_redis('GETRANGE', key, '0', LAST_OF_EDGES)
local keep, expires, since, slots, base, total, stamp, head, pages, front, back
if raw == '' then
  keep, expires, slots, base, total, stamp, head, pages, front, back = 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
else
  local size = #raw
  if size < BACK then return nil end
  local format, leased, _
  format, keep, expires, since, _, leased, slots, base, total, stamp, head, pages, front, back =
    struct_unpack(HEADER_FORMAT, raw)
  -- Besides damage: leases, a clock that was set back, totals to be rebased.
  if format ~= FORMAT or leased > 0 or stamp > now or total > MAX_UNITS or pages > slots
    or front > 0 and (size < EDGES or front > PAGE) or size < BACK + back * WIDTH then return nil end
end

-- Skips what no longer counts.
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
      if not before then return nil end
      oldest_total, oldest_stamp = total, stamp
      if rest > 0 then oldest_total, oldest_stamp = struct_unpack(RECORD_FORMAT, records, start + 1) end
    end
  end
end
--- check
local longest, old = 0, nil
for i = p + 3, last, 2 do
  local window, before_window = numbers[i], before
  if window > longest then longest = window end
  if window < keep and not is_empty then
    local cut = now - window
    if stamp <= cut then
      before_window = total
    elseif oldest_stamp <= cut then
      before_window =
        find(key, raw, back, head, slots, pages, records, start, rest, taken, is_in_back, STAMP, cut, stamp)
      if not before_window then return nil end
    end
  end
  local used = total - before_window
  -- Damaged.
  if used < 0 then return nil end
  reply[answer] = used
  answer = answer + 3
  local free = numbers[i + 1] - used
  if free < cost * fitting then fitting = free < cost and 0 or (free - free % cost) / cost end
end
-- The general driver merges the oldest records, and makes large rings larger.
if back == PAGE and fitting > 0 and not is_empty then
  local left = pages - taken
  if left > MANY_PAGES then return nil end
  if left >= slots and left > 0 then
    if left > FEW_PAGES then return nil end
    old = call_redis('GETRANGE', key, text_of(EDGES), text_of(EDGES + slots * PAGE_WIDTH - 1))
    if #old < slots * PAGE_WIDTH then return nil end
  end
end
--- answer
-- As it will be after the commit. All reads come before it.
local units, new_stamp = cost * mine, now - now % numbers[p + 1]
answer = place
for i = p + 3, last, 2 do
  local window, limit, retry, reset = numbers[i], numbers[i + 1], 0, 0
  if mine > 0 then
    reset = new_stamp + window - now
  else
    if window > keep then window = keep end
    if stamp + window > now then reset = stamp + window - now end
  end
  if mine < wanted then
    local over = reply[answer] + units + cost - limit
    if over > 0 then
      local above = total - reply[answer] + over - 1
      if cost > limit then
        retry = NEVER
      elseif above >= total then
        retry = reset
      elseif oldest_total > above then
        retry = oldest_stamp + window - now
      else
        local found, after =
          find(key, raw, back, head, slots, pages, records, start, rest, taken, is_in_back, TOTAL, above, total)
        -- The ring is damaged. Once something is written it is too late for the general driver.
        if not found and all == 0 then return nil end
        retry = (after or stamp) + window - now
      end
    end
  end
  reply[answer + 1], reply[answer + 2] = retry, reset
  answer = answer + 3
end
--- commit
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
      new_front = string.rep('\0', PAGE_WIDTH - rest * WIDTH) .. string_sub(raw, start + 1, BACK + back * WIDTH)
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
        new_front = string_sub(new_front or string_sub(raw, FRONT + 1), (PAGE - front) * WIDTH + 1)
          .. string_sub(raw, BACK + 1, from)
        front, back = PAGE, front
      elseif pages < slots then
        page, pages, back = EDGES + (head + pages) % slots * PAGE_WIDTH, pages + 1, 0
      else
        -- A larger ring.
        ring = string_sub(raw, BACK + 1, FRONT)
        if pages > 0 then
          ring = string_sub(old, head * PAGE_WIDTH + 1) .. string_sub(old, 1, head * PAGE_WIDTH) .. ring
        end
        -- Room for twice as many, but not beyond what the limits can fill while that suffices.
        local most = math.ceil((numbers[p + 2] - 1) / PAGE)
        if pages >= most then most = MAX_PAGES end
        head, slots = 0, math.min(math.max(2 * pages, 1), most)
        new_front = new_front or string_sub(raw, FRONT + 1)
        pages, back = pages + 1, 0
        ring = ring .. string.rep('\0', (slots - pages) * PAGE_WIDTH)
      end
    end
  end
  if back > 0 and (newest_total or new_front) then older = string_sub(raw, from + 1, from + back * WIDTH) end
  if newest_total then back = back + 1 end
end
if page then call_redis('SETRANGE', key, text_of(page), string_sub(raw, BACK + 1, FRONT)) end
total = total + units
local kept, ttl = (is_empty or keep < longest) and longest or keep, nil
if expires < new_stamp + kept then
  expires = now + lifetime_of(kept)
  ttl = ttl_of(kept, is_clock_given)
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
