-- A usual op on a sliding counter: see stores/redis/usual.lua. Its numbers are its window and precision; then for each
-- limit the units that a window counts at most, and the limit.

--- load
local raw = pcall_redis('GETRANGE', key, '0', LAST_OF_TWO_WINDOWS)
local window, precision = numbers[p + 1], numbers[p + 2]
local start, most = now - now % window, numbers[p + 3]
local current, previous, since, is_new = 0, 0, 0, true
if raw ~= '' then
  if #raw ~= TWO_WINDOWS_SIZE then return nil end
  local format, stamp
  format, stamp, current, previous, since = struct_unpack(TWO_WINDOWS_FORMAT, raw)
  if format ~= 1 or stamp > start or stamp % window ~= 0 or current > most or previous > most then return nil end
  if stamp == start then
    is_new = false
  else
    current, previous = 0, stamp == start - window and current or 0
  end
end
local grains = math.ceil(window / precision)
--- check
local used = current + previous - math.floor(previous * math.floor((now - start) / precision) / grains)
for i = p + 3, last, 2 do
  local free = numbers[i + 1] - used
  if free < cost * fitting then fitting = free < cost and 0 or (free - free % cost) / cost end
  answer = answer + 3
end
--- answer
local counted = current + cost * mine
if counted > most then counted = most end
local reset = counted > 0 and start + 2 * window - now or previous > 0 and start + window - now or 0
answer = place
for i = p + 3, last, 2 do
  local limit, retry = numbers[i + 1], 0
  if mine < wanted and used + cost * mine + cost > limit then
    local room = limit - cost
    if room < 0 then
      retry = NEVER
    else
      -- Until enough of a window has passed that no more units than there is room for count of the one before it.
      local units, free, ends = counted, room, start + window
      if counted <= room then units, free, ends = previous, room - counted, start end
      local elapsed = grains - math.floor(free * grains / units)
      retry = ends + (elapsed < grains and elapsed * precision or window) - now
    end
  end
  reply[answer], reply[answer + 1], reply[answer + 2] = used, retry, reset
  answer = answer + 3
end
--- commit
if current == 0 and previous == 0 then since = now end
local value = struct_pack(TWO_WINDOWS_FORMAT, 1, start, counted, previous, since)
if is_new then
  call_redis('SET', key, value, 'PX', ttl_of(2 * window, is_clock_given))
else
  call_redis('SETRANGE', key, '0', value)
end
