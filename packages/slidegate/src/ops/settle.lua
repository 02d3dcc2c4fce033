-- Settles a reservation.
--
-- Reply  1, then per log: units returned; or just 0 if the reservation was already settled or has expired

function ops.settle(logs, words, run, _, clock, now, filled)
  restamp(logs, words, now, clock)
  local rest, name, charged_at, first = run.actual - run.units, run.reservation, {}, filled + 1
  for _, log in ipairs(logs) do
    if log.entries == RESERVATION then
      local at_ms = log.tables.find(log, words, log.p, now, name)
      if not at_ms then
        reply[first] = 0
        return first
      end
      charged_at[#charged_at + 1] = at_ms
    end
  end
  for i, log in ipairs(logs) do
    reply[first + i] = 0
    if log.entries == RESERVATION then
      return_charge(log, words, now, clock, 0, 1, name)
    elseif rest > 0 and log.kind ~= 8 and log.entries ~= HOLDER then
      -- The limits may have changed to a kind that keeps entries. If so, the extra units become an entry, except in a
      -- log of holders.
      decide_one(log, words, now, clock, rest, { requests = 1, lease_ms = 0, is_forced = true, id = name })
    elseif rest < 0 and run.charged[i] and charged_at[run.parts[i]] == run.instants[i] then
      reply[first + i] = return_charge(log, words, now, clock, run.instants[i], -rest, '')
    end
  end
  reply[first] = 1
  return first + #logs
end
