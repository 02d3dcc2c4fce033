-- What nearly every op is, once more and in one piece: a request against limits that share one window log.
-- The general driver does the same with functions and tables, which cost more than all of this. Twins by
-- test; whatever is unusual is left to the other one, before anything is written.

-- Index of the first of `seen` ring records whose number at `column` is above the bound.
local function first_seen_above(view, view_at, head, slots, seen, column, bound)
  local low, high = 0, seen
  while low < high do
    local middle = (low + high - (low + high) % 2) / 2
    local slot = head + middle
    if slot >= slots then slot = slot - slots end
    -- In parentheses: struct.unpack also answers where it stopped.
    if (struct_unpack(NUMBER_FORMAT, view, view_at + slot * WIDTH + column)) <= bound then
      low = middle + 1
    else
      high = middle
    end
  end
  return low
end

-- Decides `wanted` requests, and writes the answer behind `filled` in the reply. Answers where the reply now
-- ends; nothing, where the general driver is needed.
local function decide_alone(key, params, longest, clock, cost, wanted, reply, filled)
  local raw = pcall_redis('GETRANGE', key, '0', LAST_OF_CHUNK)
  if raw.err then return nil end
  local size = #raw
  local keep, expires, slots, base, stamp, total, head, count = 0, 0, 0, 0, 0, 0, 0, 0
  if size > 0 then
    if size < HEADER then return nil end
    local format, leased, _
    format, keep, expires, _, leased, slots, base, stamp, total, head, count = struct_unpack(HEADER_FORMAT, raw)
    -- Besides damage: leases, a clock that was set back, totals to be rebased, somebody's longer window.
    if format ~= FORMAT or leased > 0 or stamp > clock or total > MAX_UNITS or keep > longest
      or count > slots or head > slots then return nil end
  end
  local is_small = HEADER + slots * WIDTH == size
  local is_empty = stamp <= clock - keep

  -- The records in sight: all of a small ring, the oldest of a large one. Offsets as struct.unpack counts.
  local seen, view, view_at = count, raw, HEADER + 1
  if count > 0 and not is_small then
    seen = math.min(PAGE / WIDTH, count, slots - head)
    local from = HEADER + head * WIDTH
    view, view_at = call_redis('GETRANGE', key, from, from + seen * WIDTH - 1), 1 - head * WIDTH
  end
  local oldest_stamp, oldest_total
  if count > 0 then oldest_total, oldest_stamp = struct_unpack(RECORD_FORMAT, view, view_at + head * WIDTH) end

  -- Check.
  local windows, limits = params.windows, params.limits
  local admitted, gone, gone_total = wanted, 0, base
  for i = 1, #windows do
    local span = windows[i]
    if span > keep then span = keep end
    local cut = clock - span
    local after, before = 0, base
    if stamp <= cut then
      before = total
    elseif count > 0 and oldest_stamp <= cut then
      after = first_seen_above(view, view_at, head, slots, seen, STAMP, cut)
      if after == seen and seen < count then return nil end
      before = struct_unpack(NUMBER_FORMAT, view, view_at + (head + after - 1) % slots * WIDTH + TOTAL)
    end
    if span == keep then gone, gone_total = after, before end
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
      elseif count > 0 and oldest_total > above then
        retry = oldest_stamp + window - clock
      else
        local index = first_seen_above(view, view_at, head, slots, seen, TOTAL, above)
        if index < seen then
          retry = struct_unpack(NUMBER_FORMAT, view, view_at + (head + index) % slots * WIDTH + STAMP) + window - clock
        elseif seen < count then
          return nil
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
      expires, slots, base, stamp, total, head, count, ring = 0, 0, 0, new_stamp, 0, 0, 0, ''
    elseif gone > 0 then
      base, head, count = gone_total, (head + gone) % slots, count - gone
    end
    if stamp ~= new_stamp then
      local record = struct_pack(RECORD_FORMAT, total, stamp)
      if count < slots then
        call_redis('SETRANGE', key, HEADER + (head + count) % slots * WIDTH, record)
      elseif is_small then
        local wider = math.min(math.max(2 * count, 4), count < params.records - 1 and params.records - 1 or MAX_SLOTS)
        ring = string_sub(raw, HEADER + head * WIDTH + 1) .. string_sub(raw, HEADER + 1, HEADER + head * WIDTH)
          .. record .. string.rep('\0', (wider - slots - 1) * WIDTH)
        head, slots = 0, wider
      else
        return nil
      end
      count = count + 1
    end
    total = total + units
    local ttl
    if expires < new_stamp + longest then
      expires = clock + lifetime_of(longest)
      ttl = ttl_of(lifetime_of(longest))
    end
    if ring or ttl or keep < longest then
      local header = struct_pack(
        HEADER_FORMAT, FORMAT, longest, expires, 0, 0, slots, base, new_stamp, total, head, count
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
      call_redis('SETRANGE', key, TAIL_OFFSET, struct_pack(TAIL_FORMAT, base, new_stamp, total, head, count))
    end
  end
  reply[filled + 1], reply[filled + 2] = 0, admitted
  return filled + 2 + 3 * #windows
end
