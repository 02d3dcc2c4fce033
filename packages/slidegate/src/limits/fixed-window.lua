-- The twin of fixed-window.ts: the units of one window, which count until the window ends.
--
-- Words (numbers that the process sends): the length of a window; 1 if windows start with their first charge, otherwise
-- 0; the limits. For a calendar: 0; the number of edges; the limits; the edges. Edges are the start times of the
-- windows around now, in order and without gaps.
-- Answer: the units of this window before the op. If windows start with their first charge, also the time of that
-- charge.
-- Stored: one string, see docs/state.md.
-- TTL: the rest of the window plus slack, set by the window's first charge.

local COUNTER_FORMAT = '>BI6I6'
local COUNTER_SIZE = 13
local LAST_OF_COUNTER = '13'
local NO_COUNTER = 'not a fixed window of format 1'
local CLOCKS_APART = 'the clocks of Redis and this process are more than two calendar windows apart'

--- read
local raw = kinds[key]
if raw then kinds[key] = nil else raw = pcall_redis('GETRANGE', key, '0', LAST_OF_COUNTER) end
local since, used = 0, 0
if raw ~= '' then
  if #raw ~= COUNTER_SIZE then return nil, raw.err or NO_COUNTER end
  local format
  format, since, used = struct_unpack(COUNTER_FORMAT, raw)
  if format ~= 1 then return nil, NO_COUNTER end
end
--- load
local length, first_hit, end_of_limits = words[p + 1], words[p + 2], last
-- When this window began. With `first-hit`, the earliest time at which it could have begun.
local start, ends
if length > 0 then
  start = first_hit == 1 and now - length + 1 or now - now % length
else
  end_of_limits = last - first_hit
  local edge = last
  if now < words[end_of_limits + 1] or now >= words[last] then return nil, CLOCKS_APART end
  while now < words[edge] do edge = edge - 1 end
  start, ends = words[edge], words[edge + 1]
end
local is_new, is_restamped = false, false
if since > now then
  if since <= clock + MAX_AHEAD then return nil, since end
  since, is_new, is_restamped = now, true, true
elseif since < start or used == 0 then
  since, used, is_new = now, 0, true
end
--- check
for i = p + 3, end_of_limits do
  local free = words[i] - used
  if free < cost * fitting then fitting = free < cost and 0 or (free - free % cost) / cost end
end
reply[place], answer = used, place + 1
if length > 0 and first_hit == 1 then reply[answer], answer = since, answer + 1 end
--- up
if op and op.bans and not is_shadow then
  for i = p + 3, end_of_limits do
    if used + cost * mine + cost > words[i] then op.denied[k] = true end
  end
end
if mine > 0 or is_restamped and not is_look then
  local units = used + cost * mine
  if units > MAX_UNITS then units = MAX_UNITS end
  if is_new then
    ends = ends or (first_hit == 1 and since or start) + length
    call_redis(
      'SET', key, struct_pack(COUNTER_FORMAT, 1, since, units), 'PX', (ttl_of(ends - since, clock ~= reply[1]))
    )
  else
    call_redis('SETRANGE', key, '7', struct_pack(NUMBER_FORMAT, units))
  end
end
--- tables
local fixed_window = {}

function fixed_window.load(counter)
  local key = counter.key
  --- read
  counter.stamp, counter.units = since, used
end

-- When the window that contains `ms` began. With `first-hit`, the earliest time at which it could have begun.
local function earliest_start(words, p, last, ms)
  local length, edge = words[p + 1], last
  if length > 0 then return words[p + 2] == 1 and ms - length + 1 or ms - ms % length end
  while ms < words[edge] do edge = edge - 1 end
  return words[edge]
end

function fixed_window.refund(counter, words, p, now, at_ms, units)
  local last, stamp = counter.last, counter.stamp
  if words[p + 1] == 0 and (now < words[last - words[p + 2] + 1] or now >= words[last]) then
    error({ unusable = CLOCKS_APART })
  end
  if counter.units == 0 or stamp < earliest_start(words, p, last, now) or at_ms < stamp then return 0 end
  if stamp < earliest_start(words, p, last, at_ms) then return 0 end
  if units >= counter.units then
    call_redis('DEL', counter.key)
    return counter.units
  end
  call_redis('SETRANGE', counter.key, '7', struct_pack(NUMBER_FORMAT, counter.units - units))
  return units
end
