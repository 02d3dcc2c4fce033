-- The general driver: any op on any logs. The twin of ../driver.ts.

local MAX_AHEAD = 1000
-- What may stand in place of an op's first integer.
local UNREADABLE = -1
local AHEAD = -2

-- The kinds of limits by tag. Each has load and save, which know how its log is stored, and restamp, check,
-- commit, retry_after, reset_after and refund, which are told of in limits/limit.ts. A log's newest stamp is
-- its field `stamp`.
local kinds = { w = sliding_window, f = fixed_window }

-- The logs of the run's ops: the same tables serve one op after the other.
local function logs_of(run)
  local logs = {}
  for _, set in ipairs(run.sets) do
    for _, params in ipairs(set) do
      logs[#logs + 1] = { kind = kinds[params.kind], params = params, is_shadow = params.shadow, used = {}, charged = 0 }
    end
  end
  return logs
end

-- Reads the logs of an op; answers what is wrong with one of them, if anything.
local function load(logs, keys_read)
  local damage
  for i = 1, #logs do
    local log = logs[i]
    log.key, log.charged, log.is_changed = KEYS[keys_read + i], 0, false
    damage = log.kind.load(log) or damage
  end
  return damage
end

local function settle_instant(logs, clock)
  local now = clock
  for i = 1, #logs do
    local newest = logs[i].stamp
    if newest > now and newest <= clock + MAX_AHEAD then now = newest end
  end
  return now
end

local function restamp(logs, now)
  for i = 1, #logs do
    local log = logs[i]
    if log.stamp > now then
      log.kind.restamp(log, log.params, now)
      log.is_changed = true
    end
  end
end

-- Requests of this cost that fit all limits of the log, up to `count`.
local function room_in(log, cost, count)
  local limits, used = log.params.limits, log.used
  for i = 1, #limits do
    local free = limits[i] - used[i]
    if free < cost then return 0 end
    if free < cost * count then count = math.floor(free / cost) end
  end
  return count
end

local function check(logs, now, cost, count)
  for i = 1, #logs do
    local log = logs[i]
    log.kind.check(log, log.params, now, log.used)
    if not log.is_shadow then count = room_in(log, cost, count) end
  end
  return count
end

local function commit(logs, now, cost, admitted, lease)
  for i = 1, #logs do
    local log = logs[i]
    local units = cost * (log.is_shadow and room_in(log, cost, admitted) or admitted)
    if units > 0 then
      log.kind.commit(log, log.params, now, units, lease)
      log.charged, log.is_changed = units, true
    end
  end
end

local function answer(logs, now, cost, count, filled)
  for i = 1, #logs do
    local log = logs[i]
    local kind, params, charged, used = log.kind, log.params, log.charged, log.used
    local limits = params.limits
    for j = 1, #limits do
      local retry = 0
      if charged < cost * count and used[j] + charged + cost > limits[j] then
        retry = kind.retry_after(log, params, j, now, cost)
      end
      reply[filled + 1], reply[filled + 2] = used[j], retry
      reply[filled + 3] = kind.reset_after(log, params, j, now)
      filled = filled + 3
    end
  end
  return filled
end

local function save(logs, clock, is_clock_given)
  for i = 1, #logs do
    local log = logs[i]
    if log.is_changed then log.kind.save(log, clock, is_clock_given) end
  end
end

local ops = {}

function ops.consume(logs, run, clock, now, filled)
  local cost, count = run.cost, run.count
  restamp(logs, now)
  local admitted = check(logs, now, cost, count)
  if admitted > 0 then commit(logs, now, cost, admitted, run.leaseMs) end
  save(logs, clock, run.is_clock_given)
  reply[filled + 1] = admitted
  return answer(logs, now, cost, count, filled + 1)
end

function ops.peek(logs, run, _, now, filled)
  restamp(logs, now)
  reply[filled + 1] = check(logs, now, run.cost, run.count)
  return answer(logs, now, run.cost, run.count, filled + 1)
end

function ops.charge(logs, run, clock, now, filled)
  restamp(logs, now)
  for i = 1, #logs do
    local log = logs[i]
    log.kind.commit(log, log.params, now, run.units, 0)
    log.is_changed = true
  end
  save(logs, clock, run.is_clock_given)
  reply[filled + 1] = 0
  return filled + 1
end

function ops.refund(logs, run, clock, now, filled)
  for i = 1, #logs do
    local log = logs[i]
    local returned = run.charged[i] and log.kind.refund(log, log.params, now, run.atMs, run.units) or 0
    log.is_changed = returned > 0
    reply[filled + i] = returned
  end
  save(logs, clock, run.is_clock_given)
  return filled + #logs
end

local logs_by_run = {}

-- Answers where the reply now ends, and how many keys have been read.
return function(run, clock, is_clock_given, filled, keys_read)
  run.is_clock_given = is_clock_given
  local logs = logs_by_run[run] or logs_of(run)
  logs_by_run[run] = logs
  local keys_after = keys_read + #logs
  if run.type == 'reset' then
    for i = keys_read + 1, keys_after do call_redis('DEL', KEYS[i]) end
    return filled, keys_after
  end
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
  local is_done, result = pcall(ops[run.type], logs, run, clock, now, first)
  if is_done then return result, keys_after end
  -- What Redis refuses is for the whole call; a log whose numbers lead nowhere is this op's affair.
  if type(result) ~= 'string' or not string.find(result, 'data string too short', 1, true) then error(result, 0) end
  reply[filled + 1], reply[filled + 2] = UNREADABLE, 'a damaged log'
  return filled + 2, keys_after
end
