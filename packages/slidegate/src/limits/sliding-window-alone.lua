-- What nearly every op is, once more and in one piece: a request against limits that share one window log.
-- The general driver does the same with functions and tables, which cost more than all of this. Twins by
-- test; whatever is unusual is left to the other one, before anything is written.

-- Ring records as one string, counted from the oldest; shorter than it should be only where the log is damaged.
local function records_of(key, head, slots, first, records)
  local slot = (head + first) % slots
  local from, after = HEADER + slot * WIDTH, HEADER + (slot + records) * WIDTH
  local ring_end = HEADER + slots * WIDTH
  if after <= ring_end then return call_redis('GETRANGE', key, text_of(from), text_of(after - 1)) end
  return call_redis('GETRANGE', key, text_of(from), text_of(ring_end - 1))
    .. call_redis('GETRANGE', key, text_of(HEADER), text_of(after - ring_end + HEADER - 1))
end

-- Index of the first record in the string whose number at `column` is above the bound.
local function first_in(records, column, bound)
  local low, high = 0, #records / WIDTH
  while low < high do
    local middle = (low + high - (low + high) % 2) / 2
    -- In parentheses: struct.unpack also answers where it stopped.
    if (struct_unpack(NUMBER_FORMAT, records, middle * WIDTH + column + 1)) <= bound then
      low = middle + 1
    else
      high = middle
    end
  end
  return low
end

-- Looks for the first record above the bound in larger and larger pieces, from the oldest on, or from the
-- newest for a window shorter than the longest. Answers its index, the piece, and the index of the piece's
-- first record; nothing, where it lies too deep.
local function look(key, head, slots, count, is_from_newest, column, bound)
  local records, first = PAGE, 0
  -- At first no further than the end of the ring: what lies behind it takes a second read.
  if not is_from_newest and records > slots - head then records = slots - head end
  while true do
    if records > count then records = count end
    if is_from_newest then first = count - records end
    local piece = records_of(key, head, slots, first, records)
    if #piece < records * WIDTH then return nil end
    local found = first_in(piece, column, bound)
    if records == count or is_from_newest and found > 0 or not is_from_newest and found < records then
      return first + found, piece, first
    end
    records = records < PAGE and PAGE or 4 * records
    if records > MAX_PIECE then return nil end
  end
end

-- Decides `wanted` requests, and writes the answer behind `filled` in the reply. Answers where the reply now
-- ends; nothing, where the general driver is needed.
local function decide_alone(key, params, longest, clock, run, reply, filled)
  local raw = pcall_redis('GETRANGE', key, '0', LAST_OF_HEADER)
  if raw.err then return nil end
  local size = #raw
  local keep, expires, slots, base, total, stamp, head, count, oldest_total, oldest_stamp = 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
  if size > 0 then
    if size < HEADER then return nil end
    local format, leased, _
    format, keep, expires, _, leased, slots, base, total, stamp, head, count, oldest_total, oldest_stamp =
      struct_unpack(HEADER_FORMAT, raw)
    -- Besides damage: leases, a clock that was set back, totals to be rebased, somebody's longer window.
    if format ~= FORMAT or leased > 0 or stamp > clock or total > MAX_UNITS or keep > longest
      or count > slots or head > slots then return nil end
  end
  local is_empty = stamp <= clock - keep

  local windows, limits, cost, wanted = params.windows, params.limits, run.cost, run.count

  -- Check.
  local admitted, gone, gone_total, left_total, left_stamp = wanted, 0, base, 0, 0
  for i = 1, #windows do
    local span = windows[i]
    if span > keep then span = keep end
    local cut = clock - span
    local before = base
    if stamp <= cut then
      before = total
    elseif count > 0 and oldest_stamp <= cut then
      local after, piece, first = look(key, head, slots, count, span < keep, STAMP, cut)
      if not after or after == first then return nil end
      before = struct_unpack(NUMBER_FORMAT, piece, (after - 1 - first) * WIDTH + TOTAL + 1)
      if span == keep then
        gone, gone_total = after, before
        if after < count then
          left_total, left_stamp = struct_unpack(RECORD_FORMAT, piece, (after - first) * WIDTH + 1)
        end
      end
    end
    local used = total - before
    reply[filled + 3 * i] = used
    local free = limits[i] - used
    if free < cost * admitted then admitted = free < cost and 0 or (free - free % cost) / cost end
  end

  -- Answer: as things will stand after the commit, of which the reads must come first.
  local units = cost * admitted
  local new_stamp = clock - clock % params.precision
  for i = 1, #windows do
    local place = filled + 3 * i
    local limit, window = limits[i], windows[i]
    local retry, reset = 0, new_stamp + window - clock
    if admitted == 0 then
      if window > keep then window = keep end
      reset = stamp + window - clock
      if reset < 0 then reset = 0 end
    end
    if admitted < wanted and reply[place] + units + cost > limit then
      local above = total + units + cost - limit - 1
      if cost > limit then
        retry = NEVER
      elseif above >= total then
        retry = reset
      elseif count == 0 then
        retry = stamp + window - clock
      elseif oldest_total > above then
        retry = oldest_stamp + window - clock
      else
        local index, piece, first = look(key, head, slots, count, window < keep, TOTAL, above)
        if not index then return nil end
        if index < count then
          retry = struct_unpack(NUMBER_FORMAT, piece, (index - first) * WIDTH + STAMP + 1) + window - clock
        else
          retry = stamp + window - clock
        end
      end
    end
    reply[place + 1], reply[place + 2] = retry, reset
  end

  if admitted > 0 then
    -- Commit.
    local ring
    if is_empty then
      base, total, stamp, head, count = 0, 0, new_stamp, 0, 0
      if size == 0 or slots > KEPT_SLOTS then expires, slots, ring = 0, 0, '' end
    elseif gone > 0 then
      base, head, count = gone_total, (head + gone) % slots, count - gone
      oldest_total, oldest_stamp = left_total, left_stamp
    end
    if stamp ~= new_stamp then
      if count == slots then
        if count > MAX_PIECE then return nil end
        ring = slots == 0 and '' or records_of(key, head, slots, 0, count)
        if #ring < count * WIDTH then return nil end
        local wider = math.min(math.max(2 * count, 4), count < params.records - 1 and params.records - 1 or MAX_SLOTS)
        ring = ring .. struct_pack(RECORD_FORMAT, total, stamp) .. string.rep('\0', (wider - slots - 1) * WIDTH)
        head, slots = 0, wider
      else
        local offset = HEADER + (head + count) % slots * WIDTH
        call_redis('SETRANGE', key, text_of(offset), struct_pack(RECORD_FORMAT, total, stamp))
      end
      if count == 0 then oldest_total, oldest_stamp = total, stamp end
      count = count + 1
    end
    total = total + units
    local ttl
    if expires < new_stamp + longest then
      expires = clock + lifetime_of(longest)
      ttl = ttl_of(longest, run.now)
    end
    if ring or ttl or keep < longest then
      local header = struct_pack(
        HEADER_FORMAT, FORMAT, longest, expires, 0, 0, slots, base, total, new_stamp, head, count,
        oldest_total, oldest_stamp
      )
      if not ring then
        call_redis('SETRANGE', key, '0', header)
        if ttl then call_redis('PEXPIRE', key, ttl) end
      elseif ttl then
        call_redis('SET', key, header .. ring, 'PX', ttl)
      else
        call_redis('SET', key, header .. ring, 'KEEPTTL')
      end
    else
      local is_same_oldest = gone == 0 and not is_empty and count > 1
      call_redis('SETRANGE', key, NEWEST_OFFSET, is_same_oldest
        and struct_pack(NEWEST_FORMAT, base, total, new_stamp, head, count)
        or struct_pack(OLDEST_FORMAT, base, total, new_stamp, head, count, oldest_total, oldest_stamp))
    end
  end
  reply[filled + 1], reply[filled + 2] = 0, admitted
  return filled + 2 + 3 * #windows
end
