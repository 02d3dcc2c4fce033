-- The twin of sliding-counter.ts: the units of two windows. The units in the previous window are weighted by
-- that window's overlap with the sliding window.
--
-- Words (numbers that the process sends): the window, the precision, the maximum units per window, the limits.
-- Answer: the units in the current window and in the previous one, before the op.
-- Stored: one string, see docs/state.md.
-- TTL: set by the first write in a window, to the length of two windows plus slack.
-- Invariants: the start is a multiple of the window. If neither window has units, there is no key. If units exceed
-- the maximum, because they were charged under larger limits, they count as the maximum.

local TWO_WINDOWS_FORMAT = '>BI6I7I7I6'
local TWO_WINDOWS_SIZE = 27
local LAST_OF_TWO_WINDOWS = '27'
local MOST_IN_WINDOW = 2 ^ 52
local NO_TWO_WINDOWS = 'not a sliding counter of format 1'

--- read
local raw = kinds[key]
if raw then kinds[key] = nil else raw = pcall_redis('GETRANGE', key, '0', LAST_OF_TWO_WINDOWS) end
local window, stamp, current, previous, since = words[p + 1], -1, 0, 0, 0
if raw ~= '' then
  if #raw ~= TWO_WINDOWS_SIZE then return nil, raw.err or NO_TWO_WINDOWS end
  local format
  format, stamp, current, previous, since = struct_unpack(TWO_WINDOWS_FORMAT, raw)
  if format ~= 1 or stamp % window ~= 0 or current > MOST_IN_WINDOW or previous > MOST_IN_WINDOW then
    return nil, NO_TWO_WINDOWS
  end
end
--- load
local most_units, start, is_new, is_restamped = words[p + 3], now - now % window, true, false
if stamp > now then
  if stamp <= clock + MAX_AHEAD then return nil, stamp end
  current, previous, is_restamped = current + previous, 0, true
  if since > now then since = now end
elseif stamp == start then
  is_new = false
else
  current, previous = 0, stamp == start - window and current or 0
end
if current > most_units then current = most_units end
if previous > most_units then previous = most_units end
--- check
local precision = words[p + 2]
local elapsed, grains = (now - start) / precision, window / precision
if grains % 1 > 0 then grains = grains - grains % 1 + 1 end
local faded = previous * (elapsed - elapsed % 1) / grains
local used = current + previous - (faded - faded % 1)
for i = p + 4, last do
  local free = words[i] - used
  if free < cost * fitting then fitting = free < cost and 0 or (free - free % cost) / cost end
end
reply[place], reply[place + 1], answer = current, previous, place + 2
--- up
if op and op.bans and not is_shadow then
  for i = p + 4, last do
    if used + cost * mine + cost > words[i] then op.denied[k] = true end
  end
end
if mine > 0 or is_restamped and not is_look then
  if current == 0 and previous == 0 then since = now end
  current = current + cost * mine
  if current > most_units then current = most_units end
  local value = struct_pack(TWO_WINDOWS_FORMAT, 1, start, current, previous, since)
  if is_new then
    call_redis('SET', key, value, 'PX', (ttl_of(2 * window, clock ~= reply[1])))
  else
    call_redis('SETRANGE', key, '0', value)
  end
end
--- tables
local sliding_counter = {}

function sliding_counter.load(counter, words, p)
  local key = counter.key
  --- read
  counter.stamp, counter.current, counter.previous, counter.since = stamp, current, previous, since
end

function sliding_counter.refund(counter, words, p, now, at_ms, units, _, is_clock_given)
  if at_ms < counter.since then return 0 end
  local window, most_units = words[p + 1], words[p + 3]
  local start, charged_in = now - now % window, at_ms - at_ms % window
  local current, previous = math.min(counter.current, most_units), math.min(counter.previous, most_units)
  if counter.stamp ~= start then current, previous = 0, counter.stamp == start - window and current or 0 end
  local held = charged_in == start and current or charged_in == start - window and previous or 0
  local returned = math.min(units, held)
  if returned == 0 then return 0 end
  if charged_in == start then current = current - returned else previous = previous - returned end
  local raw = struct_pack(TWO_WINDOWS_FORMAT, 1, start, current, previous, counter.since)
  if current == 0 and previous == 0 then
    call_redis('DEL', counter.key)
  elseif counter.stamp ~= start then
    call_redis('SET', counter.key, raw, 'PX', (ttl_of(2 * window, is_clock_given)))
  else
    call_redis('SET', counter.key, raw, 'KEEPTTL')
  end
  return returned
end
