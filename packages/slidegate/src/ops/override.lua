-- Writes overrides: see limits/override.lua.
--
-- Reply  1 if a rule or a block was in force before, otherwise 0

--- records
-- Checks two names in the index, and removes those whose override has expired.
local function sweep(index, size, clock)
  if size == 0 then return end
  local first = clock % size
  for _, name in ipairs(call_redis('ZRANGE', index, string.format('%d', first), string.format('%d', first + 1))) do
    if call_redis('EXISTS', key_of(index, name)) == 0 then call_redis('ZREM', index, name) end
  end
end

-- Applies the op's change to the stored override, and drops a rule or a block that has ended. Returns whether either
-- was in force before.
local function change(key, index, run, given, clock, is_clock_given)
  local raw, size = pcall_redis('GET', key), pcall_redis('ZCARD', index)
  if type(size) == 'table' then error({ unusable = size.err }) end
  local blocked, ends, rule, known = 0, 0, '', ''
  if raw then blocked, ends, rule, known = read_override(raw, clock) end
  if not blocked then error({ unusable = ends }) end
  local existed = blocked + ends > 0
  local function ends_of(ms)
    return ms >= FOREVER and FOREVER or clock + ms
  end
  if run.rule then rule, ends = run.rule, run.rule == '' and 0 or ends_of(run.ruleMs) end
  if run.blockMs then blocked = run.blockMs == 0 and 0 or ends_of(run.blockMs) end
  local name = string.sub(key, #index - INDEX_LENGTH + 1, -1 - #OVERRIDE_END)
  local last = math.max(blocked, ends)
  if last <= clock then
    call_redis('DEL', key)
    call_redis('ZREM', index, name)
  else
    raw = string.format('1 %d %d ', blocked, ends) .. rule .. '\n' .. (given or known)
    local ttl = last < FOREVER and ttl_of(last - clock, is_clock_given)
    if ttl then call_redis('SET', key, raw, 'PX', ttl) else call_redis('SET', key, raw) end
    call_redis('ZADD', index, '0', name)
    if not ttl then
      call_redis('PERSIST', index)
    elseif size == 0 then
      call_redis('PEXPIRE', index, ttl)
    else
      call_redis('PEXPIRE', index, ttl, 'GT')
    end
  end
  sweep(index, size, clock)
  return existed
end

function ops.override(logs, words, run, _, clock, _, filled, k, overridable)
  local existed = 0
  for i = 1, overridable do
    local at = k + #logs + 2 * i - 2
    if change(KEYS[at], KEYS[at + 1], run, run.given and run.given[i], clock, clock ~= reply[1]) then existed = 1 end
  end
  if run.blockMs == 0 and not run.rule then
    for _, log in ipairs(logs) do
      if log.kind == 8 then
        log.tables.unblock(log)
        save(log, words, clock)
      end
    end
  end
  reply[filled + 1] = existed
  return filled + 1
end
