-- The general driver, as main.lua calls it.

local logs_by_run = {}

-- The parameters of a usual op's log, by its kind: from two numbers, and one before each limit.
local usual_kinds = {
  function(params, first, second)
    params.kind, params.precision, params.records = 'w', first, second
  end,
  function(params, first, second)
    params.kind, params.precision, params.refill, params.parts = 't', 1, first, second
    params.mostDebt, params.windows = params.windows[1], { math.ceil(params.limits[1] * second / first) }
  end,
  function(params, first, second)
    params.kind, params.precision, params.fromFirstHit = 'f', first, second == 1
  end,
  function(params, first, second)
    params.kind, params.window, params.precision = 'c', first, second
    params.mostUnits, params.grains = params.windows[1], math.ceil(first / second)
  end,
}

-- The same run as an object: see main.lua.
local function usual_run(codes, numbers, cost, count, names)
  local sets, place, known, log = {}, 1, names and cjson.decode(names) or {}, 1
  repeat
    local code, params = codes[place], { limits = {}, windows = {} }
    local limits = (code % PER_PART - code % PER_LIMIT) / PER_LIMIT + 1
    for i = 1, limits do
      params.windows[i], params.limits[i] = numbers[place + 1 + 2 * i], numbers[place + 2 + 2 * i]
    end
    usual_kinds[code % SHADOW](params, numbers[place + 1], numbers[place + 2])
    params.shadow = code % MORE >= SHADOW
    if known[log] then params.names, params.most = known[log].names, known[log].most end
    local part = (code - code % PER_PART) / PER_PART + 1
    sets[part] = sets[part] or {}
    table.insert(sets[part], params)
    place, log = place + 3 + 2 * limits, log + 1
  until code % OVERRIDABLE < MORE
  return { type = 'consume', cost = cost, count = count, leaseMs = 0, sets = sets, overridable = { names ~= nil } }
end

-- Answers where the reply now ends, and how many keys have been read.
local function apply(run, clock, is_clock_given, filled, keys_read)
  run.is_clock_given = is_clock_given
  local logs = logs_by_run[run] or logs_of(run)
  logs_by_run[run] = logs
  local keys_after = keys_read + logs.keys
  if run.type == 'reset' then
    for i = 1, #logs do
      local log = logs[i]
      log.key = KEYS[keys_read + log.key_place]
      call_redis('DEL', log.key)
      if log.kind.reset then log.kind.reset(log) end
    end
    return filled, keys_after
  end
  logs.first_key = KEYS[keys_read + 1]
  local damage = load(logs, keys_read)
  if damage then
    reply[filled + 1], reply[filled + 2] = UNREADABLE, damage
    return filled + 2, keys_after
  end
  local now = settle_instant(logs, clock)
  local first = filled
  if now > clock then
    reply[filled + 1], reply[filled + 2] = AHEAD, now - clock
    first = filled + 2
  end
  if not ops[run.type] then beyond() end
  local is_done, result = true
  if logs.overrides then
    -- The tables of the op before are used again.
    local is_any = logs.is_held
    for _, each in ipairs(logs.overrides) do
      each.key, each.index = KEYS[keys_read + each.place], KEYS[keys_read + each.place + 1]
      each.raw, each.record, each.in_force = pcall_redis('GET', each.key), nil, nil
      is_any = is_any or each.raw
    end
    if is_any then is_done, result = pcall(override().hold, logs, clock) end
  end
  if is_done then is_done, result = pcall(ops[run.type], logs, run, clock, now, first) end
  if is_done then return result, keys_after end
  -- What Redis refuses is for the whole call; a log whose numbers lead nowhere, or of which its kind says that it cannot
  -- be used, is this op's affair.
  local reason = type(result) == 'table' and result.unusable
  if type(result) == 'string' and string.find(result, 'data string too short', 1, true) then reason = 'a damaged log' end
  if not reason then error(result, 0) end
  reply[filled + 1], reply[filled + 2] = UNREADABLE, reason
  return filled + 2, keys_after
end

return apply, usual_run
