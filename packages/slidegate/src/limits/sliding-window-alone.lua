-- What nearly every op is, once more and in one piece: a request against limits that share one window log.
-- The general driver does the same with functions and tables, which cost more than all of this. Twins by
-- test; whatever is unusual is left to the other one, before anything is written.

-- Index of the first of the records in view whose number at `column` is above the bound.
local function first_in_view_above(view, column, bound)
  local low, high = 0, #view / WIDTH
  while low < high do
    local middle = (low + high - (low + high) % 2) / 2
    -- In parentheses: struct.unpack also answers where it stopped.
    if (struct_unpack(NUMBER_FORMAT, view, middle * WIDTH + column + 1)) <= bound then
      low = middle + 1
    else
      high = middle
    end
  end
  return low
end

-- The first records of the ring; fewer than wanted only where the log is damaged.
local function view_of(key, head, slots, wanted)
  local from, before_end = HEADER + head * WIDTH, slots - head
  if before_end >= wanted then return call_redis('GETRANGE', key, text_of(from), text_of(from + wanted * WIDTH - 1)) end
  return call_redis('GETRANGE', key, text_of(from), HEADER + slots * WIDTH - 1)
    .. call_redis('GETRANGE', key, HEADER, HEADER + (wanted - before_end) * WIDTH - 1)
end

-- Decides `wanted` requests, and writes the answer behind `filled` in the reply. Answers where the reply now
-- ends; nothing, where the general driver is needed.
local function decide_alone(key, params, longest, clock, cost, wanted, reply, filled)
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

  -- The oldest records, where the very oldest does not tell enough. All of them, if they are few.
  local windows, limits = params.windows, params.limits
  local view, in_view = nil, #windows > 1 and 3 * PAGE or PAGE
  if in_view > count then in_view = count end

  -- Check.
  local admitted, gone, gone_total = wanted, 0, base
  for i = 1, #windows do
    local span = windows[i]
    if span > keep then span = keep end
    local cut = clock - span
    local after, before = 0, base
    if stamp <= cut then
      before = total
    elseif count > 0 and oldest_stamp <= cut then
      view = view or view_of(key, head, slots, in_view)
      if #view < in_view * WIDTH then return nil end
      after = first_in_view_above(view, STAMP, cut)
      if after == in_view and in_view < count then return nil end
      before = struct_unpack(NUMBER_FORMAT, view, (after - 1) * WIDTH + TOTAL + 1)
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
        view = view or view_of(key, head, slots, in_view)
        if #view < in_view * WIDTH then return nil end
        local index = first_in_view_above(view, TOTAL, above)
        if index < in_view then
          retry = struct_unpack(NUMBER_FORMAT, view, index * WIDTH + STAMP + 1) + window - clock
        elseif in_view < count then
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
      base, total, stamp, head, count = 0, 0, new_stamp, 0, 0
      if size == 0 or slots > KEPT_SLOTS then expires, slots, ring = 0, 0, '' end
    elseif gone > 0 then
      base, head, count = gone_total, (head + gone) % slots, count - gone
      if count > 0 then
        -- Not in view only where all that is in view is gone, and that has been seen above.
        oldest_total, oldest_stamp = struct_unpack(RECORD_FORMAT, view, gone * WIDTH + 1)
      end
    end
    if stamp ~= new_stamp then
      if count == slots then
        if count > PAGE then return nil end
        ring = slots == 0 and '' or view_of(key, head, slots, slots)
        if #ring < slots * WIDTH then return nil end
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
      ttl = ttl_of(lifetime_of(longest))
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
