-- Lists the entries of logs.
--
-- Reply  0, then per log a JSON array with the name, units and time of each entry, as text, oldest first

function ops.list(logs, words, _, _, _, now, filled)
  for i, log in ipairs(logs) do
    local list = log.entries ~= RESERVATION and log.tables.list
    reply[filled + 1 + i] = cjson.encode(list and list(log, words, log.p, now) or {})
  end
  reply[filled + 1] = 0
  return filled + 1 + #logs
end
