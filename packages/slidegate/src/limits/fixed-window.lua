-- The twin of fixed-window.ts.
--
-- Reads and writes: one string per log: format (1 byte, 1), start of the window (6 bytes, milliseconds),
-- units charged in it (6 bytes); unsigned, big-endian.
-- TTL: set at the first charge in a window, to its length + slack.

local COUNTER_FORMAT = '>BI6I6'
local COUNTER_SIZE = 13
-- One byte more than it should have.
local LAST_OF_COUNTER = '13'

local fixed_window = {}

local function start_of(now, window)
  return now - now % window
end

function fixed_window.load(counter)
  local raw = pcall_redis('GETRANGE', counter.key, '0', LAST_OF_COUNTER)
  if type(raw) ~= 'string' then return raw.err end
  counter.stamp, counter.units, counter.fresh = 0, 0, raw == ''
  if raw == '' then return nil end
  if #raw ~= COUNTER_SIZE or string.byte(raw) ~= 1 then return 'not a fixed window of format 1' end
  local _
  _, counter.stamp, counter.units = struct_unpack(COUNTER_FORMAT, raw)
  return nil
end

function fixed_window.save(counter, _, is_clock_given)
  if counter.units == 0 then
    call_redis('DEL', counter.key)
    return
  end
  local raw = struct_pack(COUNTER_FORMAT, 1, counter.stamp, counter.units)
  if counter.fresh then
    call_redis('SET', counter.key, raw, 'PX', ttl_of(counter.params.precision, is_clock_given))
  else
    call_redis('SET', counter.key, raw, 'KEEPTTL')
  end
end

function fixed_window.restamp(counter, params, now)
  counter.stamp, counter.fresh = start_of(now, params.precision), true
end

function fixed_window.check(counter, params, now, used)
  local units = counter.stamp == start_of(now, params.precision) and counter.units or 0
  for i = 1, #params.limits do used[i] = units end
end

function fixed_window.commit(counter, params, now, units)
  local start = start_of(now, params.precision)
  if counter.stamp ~= start then
    counter.stamp, counter.units, counter.fresh = start, 0, true
  end
  counter.units = math.min(counter.units + units, MAX_UNITS)
end

function fixed_window.retry_after(_, params, i, now, cost)
  if cost > params.limits[i] then return NEVER end
  return params.precision - now % params.precision
end

function fixed_window.reset_after(counter, params, _, now)
  local start = start_of(now, params.precision)
  return counter.units > 0 and counter.stamp == start and start + params.precision - now or 0
end

function fixed_window.refund(counter, params, now, at_ms, units)
  local is_gone = now >= counter.stamp + params.precision
  if is_gone or start_of(at_ms, params.precision) ~= counter.stamp then return 0 end
  local returned = math.min(units, counter.units)
  counter.units = counter.units - returned
  if counter.units == 0 then counter.stamp = 0 end
  return returned
end

return fixed_window
