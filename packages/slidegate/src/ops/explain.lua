-- For a decision with the EXPLAIN option: explains each limit.
--
-- Reply  follows the reply to a peek. Per limit: a count, and that many durations until units become free. Both are
--        omitted for kinds whose durations the process computes. With CHARGES, for kinds that store them: the number of
--        charges, and for each its age in ms and its units. Per log of bans: level, denials, and the milliseconds until
--        the ban ends and since it began.

-- Appends the number of a limit's charges, then the age and units of each. Charges with the same stamp are merged.
local function tell_charges(log, words, i, now, most, filled)
  local charges, last = log.tables.charges(log, words, log.p, i, now, most), filled + 1
  for at_charge = 1, #charges, 2 do
    local age, units = now - charges[at_charge], charges[at_charge + 1]
    -- Only a damaged log has such charges. The reply must not contain negative numbers.
    if age < 0 or units < 0 then error({ unusable = 'a damaged log' }) end
    if at_charge > 1 and charges[at_charge] == charges[at_charge - 2] then
      reply[last] = reply[last] + units
    else
      reply[last + 1], reply[last + 2] = age, units
      last = last + 2
    end
  end
  reply[filled + 1] = (last - filled - 1) / 2
  return last
end

-- For each limit, appends a count (eleven or zero), that many durations until units become free, and the charges. Skips
-- the kinds whose durations the process computes.
function ops.explain(op, words, codes, k, now, clock, filled)
  local look, logs = { requests = 1, lease_ms = 0, is_look = true, id = op.id }, logs_of(words, codes, k)
  for _, log in ipairs(logs) do
    if log.kind ~= 8 and log.entries ~= RESERVATION and (log.kind == 1 or log.kind > 4) then
      local most = log.tables.charges and op.charges
      if most then load_log(log, words) end
      -- The places of the log's limits in `words`.
      local first, last, step = log.p + 2, log.last, 1
      if log.kind == 1 then first, step = log.p + 3, 2 elseif log.kind == 5 then first = log.p + 3 end
      for i = first, last, step do
        local at = (i - first) / step
        local used = -1 - decide_one(log, words, now, clock, 1, look)[2 + at]
        local tenths = used > 0 and 10 or -1
        reply[filled + 1], filled = tenths + 1, filled + 1
        for tenth = 0, tenths do
          local units = tenth == 0 and 1 or math.ceil(used * tenth / 10)
          local answer = decide_one(log, words, now, clock, words[i] - used + units, look)
          -- The answers are followed by two durations per limit.
          reply[filled + 1], filled = answer[2 + (last - first) / step + 1 + 2 * at], filled + 1
        end
        if most then filled = tell_charges(log, words, i - (log.kind == 1 and 1 or 0), now, most, filled) end
      end
    end
  end
  for _, log in ipairs(logs) do
    if log.kind == 8 then
      load_log(log, words)
      reply[filled + 3], reply[filled + 4], reply[filled + 1], reply[filled + 2] = log.tables.look(log, words, log.p, now)
      filled = filled + 4
    end
  end
  return filled
end
