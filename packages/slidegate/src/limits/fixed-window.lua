-- The twin of fixed-window.ts.
--
-- Words: the length of a window, or 0 for windows of a calendar; 1 if windows begin with their first charge, or the number of
-- edges of a calendar; the limits; then the edges: when the windows around now begin, one behind the other and without a gap, as
-- the process that asks knows its calendar.
-- Answer: the units of this window before the op; and, if windows begin with their first charge, when that was.
-- Reads and writes: one string per log: format (1 byte, 1), time of the first charge in the window (6 bytes,
-- milliseconds), units charged in it (6 bytes); unsigned, big-endian.
-- TTL: set at the first charge in a window, to what is left of the window + slack.

local COUNTER_FORMAT = '>BI6I6'
local COUNTER_SIZE = 13
-- One byte more than it should have.
local LAST_OF_COUNTER = '13'
local NO_COUNTER = 'not a fixed window of format 1'
local CLOCKS_APART = 'the clocks of Redis and of this process are more than two windows of its calendar apart'

--- load
local raw = pcall_redis('GETRANGE', key, '0', LAST_OF_COUNTER)
local length, first_hit, end_of_limits = words[p + 1], words[p + 2], last
-- When this window began; from the first hit on, the earliest that it may have.
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
local since, used, is_new, is_restamped = now, 0, true, false
if raw ~= '' then
  if #raw ~= COUNTER_SIZE then return nil, raw.err or NO_COUNTER end
  local format, stamp, units = struct_unpack(COUNTER_FORMAT, raw)
  if format ~= 1 then return nil, NO_COUNTER end
  if stamp > now then
    if stamp <= clock + MAX_AHEAD then return nil, stamp end
    used, is_restamped = units, true
  elseif stamp >= start and units > 0 then
    since, used, is_new = stamp, units, false
  end
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
  local raw = pcall_redis('GETRANGE', counter.key, '0', LAST_OF_COUNTER)
  counter.stamp, counter.units = 0, 0
  if raw == '' then return nil end
  if #raw ~= COUNTER_SIZE then return raw.err or NO_COUNTER end
  local format
  format, counter.stamp, counter.units = struct_unpack(COUNTER_FORMAT, raw)
  return format ~= 1 and NO_COUNTER or nil
end

function fixed_window.save(counter)
  if counter.units == 0 then
    call_redis('DEL', counter.key)
  else
    call_redis('SETRANGE', counter.key, '7', struct_pack(NUMBER_FORMAT, counter.units))
  end
end

-- When the window that holds `ms` began and ends, if that is known.
local function window_at(words, p, last, ms, since)
  local length, first_hit = words[p + 1], words[p + 2]
  if length > 0 and first_hit == 1 then return ms - length + 1, since + length end
  if length > 0 then return ms - ms % length, since - since % length + length end
  local first = last - first_hit + 1
  if ms < words[first] or ms >= words[last] then error({ unusable = CLOCKS_APART }) end
  local start, ends = last - 1, first
  while ms < words[start] do start = start - 1 end
  while ends < last and since >= words[ends] do ends = ends + 1 end
  return words[start], words[ends]
end

function fixed_window.refund(counter, words, p, now, at_ms, units, _, last)
  local stamp = counter.stamp
  local start, ends = window_at(words, p, last, now, stamp)
  if counter.units == 0 or stamp < start or at_ms < stamp or at_ms >= ends then return 0 end
  local returned = math.min(units, counter.units)
  counter.units = counter.units - returned
  return returned
end
