-- The twin of override.ts: what is stored of a key besides its logs, and is read before them.
--
-- Reads and writes: one string per key: `1 blocked ends rule`, a line feed, and the key as it was given, if it is stored
-- otherwise. The format, until when the key is blocked, when the rule ends: milliseconds by the store's clock, 0 for not at
-- all, FOREVER for never; and the rule: nothing, `exempt`, or JSON of numbers by the name of their limit.
-- Index: a sorted set of the keys of a bucket that have one, all with the score 0, and so in the order of their bytes. A
-- name whose override is gone is dropped by the list, and by writes, each of which looks at two others.
-- TTL: none for what never ends, else until the latest end + slack. That of the index is the longest that was needed.

local FOREVER = 9007199254740991
local LARGEST = 1099511627776
local SHORTEST_WINDOW = 10
local LONGEST_WINDOW = 31622400000
local OVERRIDES_PAGE = 250
local PAGE_BYTES = 65536
-- How the key of an index ends, and that of an override.
local INDEX_LENGTH = 10
local OVERRIDE_END = ':o'

local override = {}

local function unusable()
  error({ unusable = 'not an override of format 1' })
end

local FIELDS = { limit = true, windowMs = true, capacity = true, refill = true }

-- The numbers of a rule, by the name of their limit. cjson reads what other parsers of JSON refuse: so it must look as if
-- it was written by JSON.stringify.
local function numbers_of(rule)
  if string.find(rule, '[^%w%p]') or string.find(rule, ':[^{1-9]') or string.find(rule, ':%d+[^%d,}]') then unusable() end
  local is_json, numbers = pcall(cjson.decode, rule)
  if not is_json or type(numbers) ~= 'table' or string_sub(rule, 1, 1) ~= '{' then unusable() end
  for _, own in pairs(numbers) do
    if type(own) ~= 'table' then unusable() end
    for field, number in pairs(own) do
      if not FIELDS[field] or type(number) ~= 'number' or number < 1 or number > LARGEST then unusable() end
    end
  end
  return numbers
end

-- What is stored, or nothing.
function override.read(key)
  local raw = pcall_redis('GET', key)
  if type(raw) == 'table' then error({ unusable = raw.err }) end
  if not raw then return nil end
  local blocked, ends, rule, given = string.match(raw, '^1 (%d+) (%d+) ([^\n]*)\n(.*)$')
  if not blocked or blocked + 0 > FOREVER or ends + 0 > FOREVER then unusable() end
  local numbers = rule ~= '' and rule ~= 'exempt' and numbers_of(rule) or nil
  return { blocked = blocked + 0, ends = ends + 0, rule = rule, numbers = numbers, given = given }
end

local function left_of(ends, clock)
  return ends == FOREVER and FOREVER or math.max(0, ends - clock)
end

-- What is in force: the rule, for how long, and for how long the key is blocked. Nothing if none is.
function override.in_force(record, clock)
  if not record then return nil end
  local rule_ms = record.rule == '' and 0 or left_of(record.ends, clock)
  local blocked_ms = left_of(record.blocked, clock)
  if rule_ms == 0 and blocked_ms == 0 then return nil end
  local numbers = rule_ms > 0 and record.numbers or nil
  return { rule = rule_ms == 0 and '' or record.rule, numbers = numbers, rule_ms = rule_ms, blocked_ms = blocked_ms }
end

-- Each kind that changes more than its limit: puts limit j by its own numbers, where they are for it and its log has room.
local renumber = {}

function renumber.w(params, j, own)
  local precision = params.precision
  local units, window = own.limit or params.limits[j], own.windowMs or params.windows[j] - precision + 1
  if own.capacity or own.refill or window < SHORTEST_WINDOW or window > LONGEST_WINDOW or window < precision then return end
  if math.min(units, math.ceil(window / precision) + 1) > 65536 then return end
  params.limits[j], params.windows[j] = units, window + precision - 1
  local longest = 1
  for i = 2, #params.windows do
    if params.windows[i] > params.windows[longest] then longest = i end
  end
  local grains = math.ceil((params.windows[longest] - precision + 1) / precision)
  params.records = math.min(params.limits[longest], grains + 1)
end

function renumber.t(params, j, own)
  local capacity, refill, parts = own.capacity or params.limits[j], own.refill or params.refill, params.parts
  local fill = math.ceil(capacity * parts / refill)
  if own.limit or own.windowMs or capacity > params.most[j] or fill > LONGEST_WINDOW then return end
  params.limits[j], params.windows[j], params.refill = capacity, fill, refill
  local most = math.min(2 ^ 52, MAX_UNITS * parts, refill * LONGEST_WINDOW)
  params.mostDebt = math.max(most - most % parts, capacity * parts)
end

local function renumber_limit(params, j, own)
  local units = own.limit
  if not units or own.windowMs or own.capacity or own.refill or units > params.most[j] then return end
  params.limits[j] = units
  if params.kind == 'z' or params.kind == 'x' then params.records = math.max(unpack(params.limits)) end
end

-- What the log is told while these numbers are in force.
function override.params(declared, numbers, is_only)
  local params = {}
  for name, value in pairs(declared) do params[name] = value end
  params.limits, params.windows = { unpack(declared.limits) }, { unpack(declared.windows) }
  for j, name in ipairs(declared.names) do
    local own = numbers[name] or is_only and numbers['']
    if own then (renumber[declared.kind] or renumber_limit)(params, j, own) end
  end
  return params
end

-- Writes an override, and its name into the index; or neither, if nothing of it is in force.
local function write(key, index, size, name, record, clock, is_clock_given)
  if not override.in_force(record, clock) then
    call_redis('DEL', key)
    call_redis('ZREM', index, name)
    return
  end
  local ends = math.max(record.blocked, record.rule == '' and 0 or record.ends)
  local raw = '1 ' .. text_of(record.blocked) .. ' ' .. text_of(record.ends) .. ' ' .. record.rule .. '\n' .. record.given
  local ttl = ends < FOREVER and ttl_of(ends - clock, is_clock_given)
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

local function key_of(index, name)
  return string_sub(index, 1, -1 - INDEX_LENGTH) .. name .. OVERRIDE_END
end

local function sweep(index, size, clock)
  if size == 0 then return end
  local first = clock % size
  for _, name in ipairs(call_redis('ZRANGE', index, text_of(first), text_of(first + 1))) do
    if call_redis('EXISTS', key_of(index, name)) == 0 then call_redis('ZREM', index, name) end
  end
end

-- Puts what the op says in place of what is stored. A half that has ended is forgotten. Answers whether anything was in
-- force.
function override.change(stored, run, clock)
  local record, before, size = stored.record, stored.in_force, pcall_redis('ZCARD', stored.index)
  if type(size) == 'table' then error({ unusable = size.err }) end
  local function ends_of(ms)
    return ms >= FOREVER and FOREVER or clock + ms
  end
  record = record or { blocked = 0, ends = 0, rule = '', given = '' }
  record.rule = run.rule or before and before.rule or ''
  if run.rule then record.ends = run.rule == '' and 0 or ends_of(run.ruleMs) end
  if not before or before.blocked_ms == 0 then record.blocked = 0 end
  if run.blockMs then record.blocked = run.blockMs == 0 and 0 or ends_of(run.blockMs) end
  record.given = run.given or record.given
  local name = string_sub(stored.key, #stored.index - INDEX_LENGTH + 1, -1 - #OVERRIDE_END)
  write(stored.key, stored.index, size, name, record, clock, run.is_clock_given)
  sweep(stored.index, size, clock)
  return before ~= nil
end

-- A page of the overrides whose keys come after one: where the next begins, or '', then of each its key, as it was given,
-- rule, and milliseconds until the rule and the block end.
function override.page(index, after, clock)
  local from = after == '' and '-' or '(' .. after
  local names = pcall_redis('ZRANGE', index, from, '+', 'BYLEX', 'LIMIT', '0', text_of(OVERRIDES_PAGE))
  if names.err then error({ unusable = names.err }) end
  local page, bytes = { '' }, 0
  for i, name in ipairs(names) do
    local is_read, record = pcall(override.read, key_of(index, name))
    local in_force = is_read and override.in_force(record, clock)
    if in_force then
      local at = #page
      page[at + 1], page[at + 2], page[at + 3] = name, record.given, in_force.rule
      page[at + 4], page[at + 5] = text_of(in_force.rule_ms), text_of(in_force.blocked_ms)
      bytes = bytes + #in_force.rule + #record.given
    elseif is_read and not record then
      call_redis('ZREM', index, name)
    end
    if i == OVERRIDES_PAGE or bytes >= PAGE_BYTES then
      page[1] = name
      break
    end
  end
  return page
end

return override
