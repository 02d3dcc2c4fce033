-- A page of overrides: see limits/override.lua.
--
-- Reply  0, then JSON: the start of the next page or '', then each key and its stored override

--- records
-- Appends a page, which starts with the first key after `run.after`.
function ops.overrides(_, _, run, _, clock, _, filled, k)
  local index, from = KEYS[k], run.after == '' and '-' or '(' .. run.after
  local names = pcall_redis('ZRANGE', index, from, '+', 'BYLEX', 'LIMIT', '0', string.format('%d', OVERRIDES_PAGE))
  if names.err then error({ unusable = names.err }) end
  local told, bytes = { '' }, 0
  for i, name in ipairs(names) do
    local raw = pcall_redis('GET', key_of(index, name))
    if not raw then
      call_redis('ZREM', index, name)
    elseif read_override(raw, clock) then
      told[#told + 1], told[#told + 2] = name, raw
    end
    bytes = bytes + (raw and #raw or 0)
    if i == OVERRIDES_PAGE or bytes >= PAGE_BYTES then
      told[1] = name
      break
    end
  end
  reply[filled + 1], reply[filled + 2] = 0, cjson.encode(told)
  return filled + 2
end
