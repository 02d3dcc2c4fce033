-- The twin of sliding-counter.ts.
--
-- Reads and writes: one string per log: format (1 byte, 1), start of the newer window (6 bytes, milliseconds), units
-- charged in it and in the one before it (7 bytes each), time of the first charge (6 bytes); unsigned, big-endian.
-- TTL: set when it is first written in a window, to the length of two + slack.
-- Invariants: the start is a multiple of params.window; units <= 2^52 in each; two windows without units are no key at
-- all. Units above params.mostUnits, charged under larger limits, count as so many.

local MOST_UNITS = 2 ^ 52

local sliding_counter = {}

local function start_of(ms, window)
  return ms - ms % window
end

-- Units charged in the window that begins at `start`, and in the one before it.
local function units_at(counter, params, start)
  local current, previous = math.min(counter.current, params.mostUnits), math.min(counter.previous, params.mostUnits)
  if counter.stamp == start then return current, previous end
  return 0, counter.stamp == start - params.window and current or 0
end

-- Lets the window that begins at `start` be the newer one.
local function roll(counter, params, start)
  if counter.stamp == start then return end
  counter.current, counter.previous = units_at(counter, params, start)
  counter.stamp, counter.fresh = start, true
end

-- Milliseconds from the start of a window until more units than `room`, charged before it, count for no more.
local function fades_in(units, room, params)
  local elapsed = params.grains - math.floor(room * params.grains / units)
  return elapsed < params.grains and elapsed * params.precision or params.window
end

function sliding_counter.load(counter)
  local raw, params = pcall_redis('GETRANGE', counter.key, '0', LAST_OF_TWO_WINDOWS), counter.params
  if type(raw) ~= 'string' then return raw.err end
  counter.stamp, counter.current, counter.previous, counter.since, counter.fresh = 0, 0, 0, 0, raw == ''
  if raw == '' then return nil end
  if #raw == TWO_WINDOWS_SIZE and string.byte(raw) == 1 then
    local _
    _, counter.stamp, counter.current, counter.previous, counter.since = struct_unpack(TWO_WINDOWS_FORMAT, raw)
    local is_aligned = counter.stamp % params.window == 0
    if is_aligned and math.max(counter.current, counter.previous) <= MOST_UNITS then return nil end
  end
  return 'not a sliding counter of format 1'
end

function sliding_counter.save(counter, _, is_clock_given)
  if counter.current == 0 and counter.previous == 0 then
    call_redis('DEL', counter.key)
    return
  end
  local raw = struct_pack(
    TWO_WINDOWS_FORMAT, 1, counter.stamp, counter.current, counter.previous, counter.since
  )
  if counter.fresh then
    call_redis('SET', counter.key, raw, 'PX', ttl_of(2 * counter.params.window, is_clock_given))
  else
    call_redis('SET', counter.key, raw, 'KEEPTTL')
  end
end

function sliding_counter.restamp(counter, params, now)
  counter.stamp, counter.fresh = start_of(now, params.window), true
  counter.current, counter.previous = math.min(counter.current + counter.previous, params.mostUnits), 0
  counter.since = math.min(counter.since, now)
end

function sliding_counter.check(counter, params, now, used)
  local start = start_of(now, params.window)
  local current, previous = units_at(counter, params, start)
  local elapsed = math.floor((now - start) / params.precision)
  local units = current + previous - math.floor(previous * elapsed / params.grains)
  for i = 1, #params.limits do used[i] = units end
end

function sliding_counter.commit(counter, params, now, units)
  roll(counter, params, start_of(now, params.window))
  if counter.current == 0 and counter.previous == 0 then counter.since = now end
  counter.current = math.min(counter.current + units, params.mostUnits)
end

function sliding_counter.retry_after(counter, params, i, now, cost)
  local room = params.limits[i] - cost
  if room < 0 then return NEVER end
  local start = start_of(now, params.window)
  local current, previous = units_at(counter, params, start)
  if current <= room then return start + fades_in(previous, room - current, params) - now end
  return start + params.window + fades_in(current, room, params) - now
end

function sliding_counter.reset_after(counter, params, _, now)
  local start = start_of(now, params.window)
  local current, previous = units_at(counter, params, start)
  if current > 0 then return start + 2 * params.window - now end
  return previous > 0 and start + params.window - now or 0
end

function sliding_counter.refund(counter, params, now, at_ms, units)
  if at_ms < counter.since then return 0 end
  local start, charged_in = start_of(now, params.window), start_of(at_ms, params.window)
  local current, previous = units_at(counter, params, start)
  local held = 0
  if charged_in == start then
    held = current
  elseif charged_in == start - params.window then
    held = previous
  end
  local returned = math.min(units, held)
  if returned == 0 then return 0 end
  roll(counter, params, start)
  if charged_in == start then
    counter.current = counter.current - returned
  else
    counter.previous = counter.previous - returned
  end
  if counter.current == 0 and counter.previous == 0 then counter.stamp = 0 end
  return returned
end

return sliding_counter
