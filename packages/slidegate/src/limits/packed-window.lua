-- The twin of packed-window.ts.

local packed_window = {}

-- For how long a charge counts in this window, as seen from now.
local function span_of(log, window, now)
  if now < log.leased + window then window = window + log.lease end
  return window < log.keep and window or log.keep
end

-- When a charge made at `stamp` stops counting in this window.
local function expiry_of(log, window, stamp)
  if log.leased > stamp then window = window + math.min(log.lease, log.leased - stamp) end
  return stamp + (window < log.keep and window or log.keep)
end

packed_window.load = load_log
packed_window.save = save_log

function packed_window.restamp(log, params, now)
  merge(log, now - now % params.precision)
  log.since = math.min(log.since, now)
  log.leased = math.min(log.leased, now + log.lease)
end

function packed_window.check(log, params, now, used, is_later)
  local windows = params.windows
  for i = 1, #windows do
    local units = log.total - total_up_to(log, now - span_of(log, windows[i], now))
    -- Of a time to come it is asked when all is written.
    if units < 0 and not is_later then error({ unusable = 'a damaged window log' }) end
    used[i] = math.max(0, units)
  end
end

function packed_window.commit(log, params, now, units, lease)
  trim(log, now)
  -- Other limits may read the log over longer windows: of leased units, these have to know for longer, too.
  local longest = math.max(log.keep - log.lease, unpack(params.windows))
  if lease > 0 then
    local in_force = now < log.leased + log.keep
    log.lease = in_force and math.max(log.lease, lease) or lease
    log.leased = math.max(log.leased, now + lease)
  end
  log.keep = longest + log.lease
  append(log, now, now - now % params.precision, math.min(units, MAX_UNITS))
end

function packed_window.retry_after(log, params, i, now, cost)
  local limit = params.limits[i]
  if cost > limit then return NEVER end
  local index = first_above(log, TOTAL, log.total + cost - limit - 1)
  return expiry_of(log, params.windows[i], at(log, index, STAMP)) - now
end

function packed_window.reset_after(log, params, i, now)
  local reset = expiry_of(log, params.windows[i], log.stamp) - now
  return reset > 0 and reset or 0
end

function packed_window.refund(log, params, now, at_ms, units)
  local stamp = at_ms - at_ms % params.precision
  if at_ms < log.since or stamp <= now - log.keep then return 0 end
  return subtract(log, stamp, units)
end

function packed_window.charges(log, params, i, now, most)
  return newest_after(log, now - span_of(log, params.windows[i], now), most)
end

return packed_window
