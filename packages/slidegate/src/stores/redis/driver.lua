-- Decides a batch of ops, each on its own, in order: one step, two passes. The twin of ../driver.ts.
--
-- KEYS     one per log of each op
-- ARGV[1]  JSON { sets, runs }
--            set  { log, ... }, a log being { kind, shadow, precision, records, windows, limits }
--            run  `times` ops alike but for their keys: { type, times, sets: which set each part has,
--                 now: the time, where not the server's,
--                 cost, count, lease (consume, peek), units (charge), units, at, charged (refund) }
-- Reply    flat integers, per op:
--            consume, peek  time, admitted, then per limit: units used before; milliseconds until the cost
--                           fits once more (NEVER: never); milliseconds until all is free
--            refund         time, then per log: units returned
--            charge         time
--            reset          0
--            an op whose state cannot be read: -1 and the reason as text; nothing of it is written
--
-- A limit's place in the reply is its log's. Nothing fails after the first write: all is read before it.

local MAX_AHEAD = 1000
local FROZEN_TTL = 600000

local reply, filled = {}, 0
local keys_read = 0

local function put(number)
  filled = filled + 1
  reply[filled] = number
end

-- The logs of the run's ops: the same tables serve one op after the other.
local function logs_of(run, sets)
  local logs = {}
  for _, index in ipairs(run.sets) do
    for _, params in ipairs(sets[index]) do
      logs[#logs + 1] = { kind = kinds[params.kind], params = params, is_shadow = params.shadow, used = {}, charged = 0 }
    end
  end
  return logs
end

-- Reads the logs of the next op; answers what is wrong with one of them, if anything.
local function load(logs)
  local damage
  for i = 1, #logs do
    local log = logs[i]
    keys_read = keys_read + 1
    log.key, log.charged, log.is_changed = KEYS[keys_read], 0, false
    damage = log.kind.load(log) or damage
  end
  return damage
end

local function settle_instant(logs, clock)
  local now = clock
  for i = 1, #logs do
    local newest = logs[i].kind.newest(logs[i])
    if newest > now and newest <= clock + MAX_AHEAD then now = newest end
  end
  return now
end

local function restamp(logs, now)
  for i = 1, #logs do
    local log = logs[i]
    if log.kind.newest(log) > now then
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
    if free < cost * count then count = math_floor(free / cost) end
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

local function answer(logs, now, cost, count)
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
end

local function save(logs, clock)
  for i = 1, #logs do
    local log = logs[i]
    if log.is_changed then log.kind.save(log, clock, log.params) end
  end
end

local ops = {}

function ops.consume(logs, run, clock, now)
  restamp(logs, now)
  local admitted = check(logs, now, run.cost, run.count)
  if admitted > 0 then commit(logs, now, run.cost, admitted, run.lease or 0) end
  put(admitted)
  answer(logs, now, run.cost, run.count)
  save(logs, clock)
end

function ops.peek(logs, run, _, now)
  restamp(logs, now)
  put(check(logs, now, run.cost, run.count))
  answer(logs, now, run.cost, run.count)
end

function ops.charge(logs, run, clock, now)
  restamp(logs, now)
  for i = 1, #logs do
    local log = logs[i]
    log.kind.commit(log, log.params, now, run.units, 0)
    log.is_changed = true
  end
  save(logs, clock)
end

function ops.refund(logs, run, clock, now)
  for i = 1, #logs do
    local log = logs[i]
    local returned = run.charged[i] and log.kind.refund(log, log.params, now, run.at, run.units) or 0
    log.is_changed = returned > 0
    put(returned)
  end
  save(logs, clock)
end

local function reset(logs)
  for _ = 1, #logs do
    keys_read = keys_read + 1
    call_redis('DEL', KEYS[keys_read])
  end
  put(0)
end

local server_clock

local function clock_of(run)
  ttl_floor = run.now and FROZEN_TTL or 0
  if run.now then return run.now end
  if not server_clock then
    local time = call_redis('TIME')
    server_clock = time[1] * 1000 + math_floor(time[2] / 1000)
  end
  return server_clock
end

local input = cjson.decode(ARGV[1])
for _, run in ipairs(input[2]) do
  local logs, op, clock = logs_of(run, input[1]), ops[run.type], clock_of(run)
  for _ = 1, run.times do
    if op then
      local damage = load(logs)
      if damage then
        put(-1)
        put(damage)
      else
        local now = settle_instant(logs, clock)
        put(now)
        op(logs, run, clock, now)
      end
    else
      reset(logs)
    end
  end
end
return reply
