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

-- The logs of an op; and what is wrong with one of them, if anything.
local function load(run, sets)
  local logs, damage = {}, nil
  for _, index in ipairs(run.sets) do
    for _, params in ipairs(sets[index]) do
      keys_read = keys_read + 1
      local kind = kinds[params.kind]
      local log = { key = KEYS[keys_read], kind = kind, params = params, used = {}, charged = 0 }
      logs[#logs + 1] = log
      damage = kind.load(log) or damage
    end
  end
  return logs, damage
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

-- Requests of this cost that fit all limits of the log.
local function room_in(log, cost)
  local limits, room = log.params.limits, math.huge
  for i = 1, #limits do
    room = math.min(room, math.max(0, math.floor((limits[i] - log.used[i]) / cost)))
  end
  return room
end

local function check(logs, now, cost, count)
  local admitted = count
  for i = 1, #logs do
    local log = logs[i]
    log.kind.check(log, log.params, now, log.used)
    if not log.params.shadow then admitted = math.min(admitted, room_in(log, cost)) end
  end
  return admitted
end

local function commit(logs, now, cost, admitted, lease)
  for i = 1, #logs do
    local log = logs[i]
    log.charged = cost * (log.params.shadow and math.min(admitted, room_in(log, cost)) or admitted)
    if log.charged > 0 then
      log.kind.commit(log, log.params, now, log.charged, lease)
      log.is_changed = true
    end
  end
end

local function answer(logs, now, cost, count)
  for i = 1, #logs do
    local log = logs[i]
    local kind, params, charged = log.kind, log.params, log.charged
    for j = 1, #params.limits do
      local is_full = log.used[j] + charged + cost > params.limits[j]
      put(log.used[j])
      put(is_full and charged < cost * count and kind.retry_after(log, params, j, now, cost) or 0)
      put(kind.reset_after(log, params, j, now))
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

function ops.consume(logs, run, clock)
  local now = settle_instant(logs, clock)
  restamp(logs, now)
  local admitted = check(logs, now, run.cost, run.count)
  if admitted > 0 then commit(logs, now, run.cost, admitted, run.lease or 0) end
  put(now)
  put(admitted)
  answer(logs, now, run.cost, run.count)
  save(logs, clock)
end

function ops.peek(logs, run, clock)
  local now = settle_instant(logs, clock)
  restamp(logs, now)
  put(now)
  put(check(logs, now, run.cost, run.count))
  answer(logs, now, run.cost, run.count)
end

function ops.charge(logs, run, clock)
  local now = settle_instant(logs, clock)
  restamp(logs, now)
  for i = 1, #logs do
    local log = logs[i]
    log.kind.commit(log, log.params, now, run.units, 0)
    log.is_changed = true
  end
  put(now)
  save(logs, clock)
end

function ops.refund(logs, run, clock)
  local now = settle_instant(logs, clock)
  put(now)
  for i = 1, #logs do
    local log = logs[i]
    local returned = run.charged[i] and log.kind.refund(log, log.params, now, run.at, run.units) or 0
    log.is_changed = returned > 0
    put(returned)
  end
  save(logs, clock)
end

local server_clock

local function clock_of(run)
  ttl_floor = run.now and FROZEN_TTL or 0
  if run.now then return run.now end
  if not server_clock then
    local time = redis.call('TIME')
    server_clock = time[1] * 1000 + math.floor(time[2] / 1000)
  end
  return server_clock
end

local function reset(run, sets)
  for _, index in ipairs(run.sets) do
    for _ = 1, #sets[index] do
      keys_read = keys_read + 1
      redis.call('DEL', KEYS[keys_read])
    end
  end
  put(0)
end

local input = cjson.decode(ARGV[1])
local sets, runs = input[1], input[2]
for _, run in ipairs(runs) do
  local clock = clock_of(run)
  for _ = 1, run.times do
    if run.type == 'reset' then
      reset(run, sets)
    else
      local logs, damage = load(run, sets)
      if damage then
        put(-1)
        put(damage)
      else
        ops[run.type](logs, run, clock)
      end
    end
  end
end
return reply
