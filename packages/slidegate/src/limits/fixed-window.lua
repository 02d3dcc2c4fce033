-- The twin of fixed-window.ts.
--
-- Params: LogParams and, for windows of a calendar, `edges`: when the windows around now begin, one behind the other and
-- without a gap, as the process that asks knows its calendar. `fromFirstHit`, where windows begin with their first charge.
-- Else they are of the length `precision`, aligned to the epoch.
-- Reads and writes: one string per log: format (1 byte, 1), time of the first charge in the window (6 bytes,
-- milliseconds), units charged in it (6 bytes); unsigned, big-endian.
-- TTL: set at the first charge in a window, to what is left of the window + slack.

local CLOCKS_APART = 'the clocks of Redis and of this process are more than two windows of its calendar apart'

local fixed_window = {}

-- When the window of now began; from the first hit on, the earliest that it may have.
local function earliest_start(params, now)
  local edges = params.edges
  if not edges then
    return params.fromFirstHit and now - params.precision + 1 or now - now % params.precision
  end
  if now < edges[1] or now >= edges[#edges] then error({ unusable = CLOCKS_APART }) end
  local i = #edges - 1
  while now < edges[i] do i = i - 1 end
  return edges[i]
end

-- When the window that was first charged at `since` ends.
local function end_of(params, since)
  local edges = params.edges
  if not edges then
    return (params.fromFirstHit and since or since - since % params.precision) + params.precision
  end
  for i = 1, #edges do
    if since < edges[i] then return edges[i] end
  end
  return math.huge
end

-- Whether what it holds is of the window of now.
local function is_open(counter, params, now)
  local earliest = earliest_start(params, now)
  return counter.units > 0 and counter.stamp >= earliest
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
    local left = end_of(counter.params, counter.stamp) - counter.stamp
    call_redis('SET', counter.key, raw, 'PX', ttl_of(left, is_clock_given))
  else
    call_redis('SET', counter.key, raw, 'KEEPTTL')
  end
end

function fixed_window.restamp(counter, _, now)
  counter.stamp, counter.fresh = now, true
end

function fixed_window.check(counter, params, now, used, is_later)
  -- Of a time to come, which may lie behind all that is known of a calendar.
  local is_over = is_later and now >= end_of(params, counter.stamp)
  local units = not is_over and is_open(counter, params, now) and counter.units or 0
  for i = 1, #params.limits do used[i] = units end
end

function fixed_window.commit(counter, params, now, units)
  if not is_open(counter, params, now) then
    counter.stamp, counter.units, counter.fresh = now, 0, true
  end
  counter.units = math.min(counter.units + units, MAX_UNITS)
end

function fixed_window.retry_after(counter, params, i, now, cost)
  if cost > params.limits[i] then return NEVER end
  return end_of(params, counter.stamp) - now
end

function fixed_window.reset_after(counter, params, _, now)
  return is_open(counter, params, now) and end_of(params, counter.stamp) - now or 0
end

function fixed_window.refund(counter, params, now, at_ms, units)
  local stamp = counter.stamp
  if not is_open(counter, params, now) or at_ms < stamp or at_ms >= end_of(params, stamp) then return 0 end
  local returned = math.min(units, counter.units)
  counter.units = counter.units - returned
  if counter.units == 0 then counter.stamp = 0 end
  return returned
end

return fixed_window
