-- The twin of override.ts: the override of a key, a record beside its logs.
--
-- Reads and writes: one string per key: `1 blocked ends rule`, a line feed, and the caller's key, if it is stored hashed.
-- 1 is the format. `blocked` and `ends` are when the block and the rule end, in milliseconds of the store's clock: 0 if
-- there is none, FOREVER for never. The rule is empty, `exempt`, or JSON with numbers by the name of their limit.
-- Index: a sorted set per bucket of the keys that have an override. All scores are 0, so it is in the order of bytes. The
-- list drops names whose override is gone, and so does each write for two names.
-- TTL: none if it never ends, else until the later end + slack. The index has the longest TTL of its overrides.

-- 2^52: node-redis misreads 2^53 - 1.
local FOREVER = 4503599627370496
local LARGEST = 1099511627776
local SHORTEST_WINDOW = 10
local LONGEST_WINDOW = 31622400000
local OVERRIDES_PAGE = 250
local PAGE_BYTES = 65536
-- The length of '~overrides' in the key of an index; the end of the key of an override.
local INDEX_LENGTH = 10
local OVERRIDE_END = ':o'

local steps = {}

local function unusable()
  error({ unusable = 'not an override of format 1' })
end

local FIELDS = { limit = true, windowMs = true, capacity = true, refill = true }

-- The numbers of a rule, by the name of their limit. cjson reads more than JSON: only what a limiter writes is a rule.
local function numbers_of(rule)
  if not string.find(rule, '^{[%w%p]+$') or string.find(rule, ':[^{1-9]') or string.find(rule, ':%d+[^%d,}]') then unusable() end
  local is_json, numbers = pcall(cjson.decode, rule)
  if not is_json then unusable() end
  for _, own in pairs(numbers) do
    if type(own) ~= 'table' then unusable() end
    for field, number in pairs(own) do
      if not FIELDS[field] or type(number) ~= 'number' or number > LARGEST then unusable() end
    end
  end
  return numbers
end

-- Reads the reply of GET.
local function parse(raw)
  if type(raw) == 'table' then error({ unusable = raw.err }) end
  local blocked, ends, rule, given_at = string.match(raw, '^1 (%d+) (%d+) ([^\n]*)\n()')
  if not blocked or math.max(blocked + 0, ends + 0) > FOREVER then unusable() end
  local numbers = rule ~= '' and rule ~= 'exempt' and numbers_of(rule) or {}
  return { blocked = blocked + 0, ends = ends + 0, rule = rule, raw = raw, given_at = given_at, numbers = numbers }
end

-- The key as it was given. It may be long, and decisions do without it.
local function given_of(record)
  return record and string_sub(record.raw, record.given_at) or ''
end

local function left_of(ends, clock)
  return ends == FOREVER and FOREVER or math.max(0, ends - clock)
end

-- The part that is in force: the rule, and the milliseconds until it and the block end. nil if there is none.
local function in_force(record, clock)
  local rule_ms = record.rule == '' and 0 or left_of(record.ends, clock)
  local blocked_ms = left_of(record.blocked, clock)
  if rule_ms == 0 and blocked_ms == 0 then return nil end
  return { rule = rule_ms == 0 and '' or record.rule, rule_ms = rule_ms, blocked_ms = blocked_ms }
end

-- Kinds that can change more than their limit: gives limit j its numbers, if they are for its kind and fit its log.
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

-- The parameters of a log with these numbers.
local function params_by(declared, numbers, is_only)
  local params = {}
  for name, value in pairs(declared) do params[name] = value end
  params.limits, params.windows = { unpack(declared.limits) }, { unpack(declared.windows) }
  for j, name in ipairs(declared.names) do
    local own = numbers[name] or is_only and numbers['']
    if own then (renumber[declared.kind] or renumber_limit)(params, j, own) end
  end
  return params
end

-- Applies the overrides in force to the parts of an op.
function steps.hold(logs, clock)
  logs.blocked_ms, logs.is_overridden, logs.is_held = 0, false, true
  for _, each in ipairs(logs.overrides) do
    each.record = each.raw and parse(each.raw)
    each.in_force = each.raw and in_force(each.record, clock)
    local rule, limits = each.in_force and each.in_force.rule or '', 0
    for i = 1, #logs do
      local log = logs[i]
      if log.part == each.part and log.counts then
        limits = limits + #log.declared.limits
        log.params, log.is_shadow = log.declared, log.declared.shadow or rule == 'exempt'
      end
    end
    for i = 1, #logs do
      local log = logs[i]
      if rule ~= '' and log.part == each.part and log.counts then
        log.params = params_by(log.declared, each.record.numbers, limits == 1)
      end
    end
    if each.in_force then
      logs.is_overridden, logs.blocked_ms = true, math.max(logs.blocked_ms, each.in_force.blocked_ms)
    end
  end
  logs.is_held = logs.is_overridden
end

-- Replies what is in force, for each part that may have an override.
function steps.tell(logs, filled)
  reply[filled + 1] = OVERRIDDEN
  filled = filled + 1
  for _, each in ipairs(logs.overrides) do
    local told = each.in_force
    reply[filled + 1] = told and told.rule or ''
    reply[filled + 2], reply[filled + 3] = told and told.rule_ms or 0, told and told.blocked_ms or 0
    filled = filled + 3
  end
  return filled
end

-- Writes an override and its name in the index. Removes both if nothing is in force.
local function write(key, index, size, name, record, clock, is_clock_given)
  if not in_force(record, clock) then
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

-- Changes the stored override as the op says. Drops a half that has ended. Returns whether anything was in force before.
function steps.change(stored, run, clock)
  local record, before, size = stored.record, stored.in_force, pcall_redis('ZCARD', stored.index)
  if type(size) == 'table' then error({ unusable = size.err }) end
  local function ends_of(ms)
    return ms >= FOREVER and FOREVER or clock + ms
  end
  local given = run.given and run.given[stored.part] or given_of(record)
  record = record or { blocked = 0, ends = 0, rule = '' }
  record.rule = run.rule or before and before.rule or ''
  if run.rule then record.ends = run.rule == '' and 0 or ends_of(run.ruleMs) end
  if not before or before.blocked_ms == 0 then record.blocked = 0 end
  if run.blockMs then record.blocked = run.blockMs == 0 and 0 or ends_of(run.blockMs) end
  record.given = given
  local name = string_sub(stored.key, #stored.index - INDEX_LENGTH + 1, -1 - #OVERRIDE_END)
  write(stored.key, stored.index, size, name, record, clock, run.is_clock_given)
  sweep(stored.index, size, clock)
  return before and true or false
end

-- A page of overrides, from the key behind `after`. First where the next page begins, or ''. Then for each: its key, the
-- caller's key, the rule, and the milliseconds until rule and block end.
function steps.page(index, after, clock)
  local from = after == '' and '-' or '(' .. after
  local names = pcall_redis('ZRANGE', index, from, '+', 'BYLEX', 'LIMIT', '0', text_of(OVERRIDES_PAGE))
  if names.err then error({ unusable = names.err }) end
  local page, bytes = { '' }, 0
  for i, name in ipairs(names) do
    local raw = pcall_redis('GET', key_of(index, name))
    local is_read, record = true
    if raw then is_read, record = pcall(parse, raw) end
    local told = raw and is_read and in_force(record, clock)
    if told then
      local at = #page
      page[at + 1], page[at + 2], page[at + 3] = name, given_of(record), told.rule
      page[at + 4], page[at + 5] = text_of(told.rule_ms), text_of(told.blocked_ms)
    elseif not raw then
      call_redis('ZREM', index, name)
    end
    bytes = bytes + (raw and #raw or 0)
    if i == OVERRIDES_PAGE or bytes >= PAGE_BYTES then
      page[1] = name
      break
    end
  end
  return page
end

return steps
