-- The twin of override.ts: the override of a key, a record beside its logs.
--
-- Names: per part that may have an override, each behind a `|`, of each log behind a `;` its kind, its place in the words, and
-- behind a space the name of each limit, `=`, and the most that it can be.
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
local NO_OVERRIDE = 'not an override of format 1'

--- override
local steps = {}

-- The numbers of a rule by the name of their limit. nil if no limiter has written it.
local function numbers_of(rule)
  if rule == '' or rule == 'exempt' or rule == '{}' then return {} end
  local numbers, length, fields = {}, 1, { limit = true, windowMs = true, capacity = true, refill = true }
  if not string.find(rule, '^{.+}$') then return nil end
  -- Each with a comma before it.
  for name, own in string.gmatch(',' .. string.sub(rule, 2), ',"([%w._-]*)":{([^{}]*)}') do
    local changed, own_length = {}, own == '' and 1 or 0
    for field, digits in string.gmatch(',' .. own, ',"(%a+)":([1-9]%d*)') do
      if not fields[field] or digits + 0 > LARGEST then return nil end
      changed[field], own_length = digits + 0, own_length + #field + #digits + 4
    end
    if own_length ~= #own + 1 then return nil end
    numbers[name], length = changed, length + #name + #own + 6
  end
  return length == #rule and numbers or nil
end

local function left_of(ends, clock)
  return ends == FOREVER and FOREVER or ends > clock and ends - clock or 0
end

-- Of the reply of GET: the rule in force, the milliseconds until it and the block end, and when these do. Or nil, and what
-- is wrong.
local function in_force(raw, clock)
  if raw.err then return nil, raw.err end
  local blocked, ends, rule = string.match(raw, '^1 (%d+) (%d+) ([^\n]*)\n')
  if not blocked then return nil, NO_OVERRIDE end
  blocked, ends = blocked + 0, ends + 0
  if blocked > FOREVER or ends > FOREVER then return nil, NO_OVERRIDE end
  local rule_ms = rule == '' and 0 or left_of(ends, clock)
  return rule_ms == 0 and '' or rule, rule_ms, left_of(blocked, clock), ends, blocked
end

-- Gives the limit at `at` in the words its numbers, if they are for its kind and fit its log.
local function renumber(words, kind, p, at, most, own)
  if kind == 1 then
    local precision = words[p + 1]
    local units, window = own.limit or words[at + 1], own.windowMs or words[at] - precision + 1
    if own.capacity or own.refill or window < SHORTEST_WINDOW or window > LONGEST_WINDOW or window < precision then return end
    if math.min(units, math.ceil(window / precision) + 1) > 65536 then return end
    words[at], words[at + 1] = window + precision - 1, units
    local longest = p + 3
    for i = p + 5, math.abs(words[p]), 2 do
      if words[i] > words[longest] then longest = i end
    end
    words[p + 2] = math.min(words[longest + 1], math.ceil((words[longest] - precision + 1) / precision) + 1)
  elseif kind == 2 then
    local capacity, refill, parts = own.capacity or words[p + 4], own.refill or words[p + 1], words[p + 2]
    local fill = math.ceil(capacity * parts / refill)
    if own.limit or own.windowMs or capacity > most or fill > LONGEST_WINDOW then return end
    local most_parts = math.min(2 ^ 52, MAX_UNITS * parts, refill * LONGEST_WINDOW)
    words[p + 1], words[p + 3], words[p + 4] = refill, math.max(most_parts - most_parts % parts, capacity * parts), capacity
  elseif own.limit and own.limit <= most and not (own.windowMs or own.capacity or own.refill) then
    words[at] = own.limit
  end
end

-- Puts the numbers of a rule in the words of a part's logs.
local function apply(words, logs, rule, numbers)
  local _, limits = string.gsub(logs, '=', '')
  for kind, p, names in string.gmatch(logs, ';(%d+) (%d+)([^;]*)') do
    kind, p = kind + 0, p + 0
    -- Where its first limit is.
    local at = p + (kind > 5 and 2 or kind == 4 and 4 or 3)
    if rule == 'exempt' then words[p] = -math.abs(words[p]) end
    for name, most in string.gmatch(names, ' ([^ =]+)=(%d+)') do
      local own = numbers[name] or limits == 1 and numbers['']
      if own then renumber(words, kind, p, at, most + 0, own) end
      at = at + (kind == 1 and 2 or 1)
    end
  end
end

-- The words by rules, one behind the other, each after a line feed. Or nil if no limiter has written them.
local function words_by_rules(words, names, rules)
  local changed, parts = { unpack(words) }, string.gmatch(names, '|([^|]*)')
  for rule in string.gmatch(rules, '\n([^\n]*)') do
    local numbers, logs = numbers_of(rule), parts()
    if not numbers then return nil end
    if rule ~= '' then apply(changed, logs, rule, numbers) end
  end
  return changed
end

local known_words, known = nil, nil

-- Puts what is in force in the reply. Returns where the reply goes on, the words in force, how many requests are not
-- blocked, what is wrong with an override, if anything, and the op.
function steps.hold(raws, op, words, names, overridable, clock, wanted, first)
  local most_blocked, rules, after, is_any = 0, '', first + 1, false
  for i = 1, overridable do
    local rule, rule_ms, blocked_ms = '', 0, 0
    if raws[i] then
      rule, rule_ms, blocked_ms = in_force(raws[i], clock)
      if not rule then return first, words, 0, rule_ms, op end
      if blocked_ms > most_blocked then most_blocked = blocked_ms end
      is_any = is_any or rule_ms + blocked_ms > 0
    end
    rules = rules .. '\n' .. rule
    reply[after], reply[after + 1], reply[after + 2], after = rule, rule_ms, blocked_ms, after + 3
  end
  if known_words ~= words then known_words, known = words, {} end
  local numbers = known[rules] or words_by_rules(words, names, rules)
  known[rules] = numbers
  if not numbers then return first, words, 0, NO_OVERRIDE, op end
  if not is_any then return first, words, wanted, nil, op end
  reply[first] = OVERRIDDEN
  if most_blocked > 0 then op, wanted = op or { lease_ms = 0 }, 0 end
  return after, numbers, wanted, nil, op
end

steps.in_force, steps.numbers_of = in_force, numbers_of
return steps
