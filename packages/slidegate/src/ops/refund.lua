-- Refunds units of a charge.
--
-- Reply  per log: units returned

-- Whether logs that find requests by id still have this request. A repeated request may already have been refunded.
local function is_still_charged(logs, words, now, run, id)
  local entries = HOLDER
  for _, log in ipairs(logs) do
    if log.entries == REQUEST and not log.is_shadow then entries = REQUEST end
  end
  for _, log in ipairs(logs) do
    if log.entries == entries and not log.is_shadow then
      local at_ms, units = log.tables.find(log, words, log.p, now, id)
      if units ~= run.units or entries == REQUEST and at_ms ~= run.atMs then return false end
    end
  end
  return true
end

function ops.refund(logs, words, run, id, clock, now, filled)
  local is_charged = not run.mayRepeat or is_still_charged(logs, words, now, run, id)
  for i, log in ipairs(logs) do
    local is_mine = is_charged and run.charged[i]
    reply[filled + i] = is_mine and return_charge(log, words, now, clock, run.atMs, run.units, id) or 0
  end
  return filled + #logs
end
