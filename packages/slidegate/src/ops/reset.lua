-- Deletes every log without reading it.
--
-- Reply  nothing

function ops.reset(logs, _, _, _, _, _, filled)
  for _, log in ipairs(logs) do
    call_redis('DEL', log.key)
    if log.tables.reset then log.tables.reset(log) end
  end
  return filled
end
