-- The general driver: any op on any logs. The twin of ../driver.ts.

local MAX_AHEAD = 1000
-- What may stand in place of an op's first integer.
local UNREADABLE = -1
local AHEAD = -2
local AGAIN = -3

-- The kinds of limits by tag, made when they are first needed. Each has load and save, which know how its log is
-- stored, and restamp, check, commit, retry_after, reset_after and refund, and find, has, renew and list where it keeps
-- entries, which are told of in limits/limit.ts. A log's newest stamp is its field `stamp`.
local kinds = {}
local function kind_of(tag)
  kinds[tag] = kinds[tag] or makers[tag]()
  return kinds[tag]
end

-- The logs of the run's ops: the same tables serve one op after the other. `entries` says what a log keeps one by one.
local function logs_of(run)
  local logs = {}
  for _, set in ipairs(run.sets) do
    for _, params in ipairs(set) do
      logs[#logs + 1] = {
        kind = kind_of(params.kind), params = params, entries = params.entries, is_shadow = params.shadow, used = {},
      }
    end
  end
  return logs
end

-- Reads the logs of an op; answers what is wrong with one of them, if anything.
local function load(logs, keys_read)
  local damage
  for i = 1, #logs do
    local log = logs[i]
    log.key, log.cost, log.charged, log.is_changed = KEYS[keys_read + i], 0, 0, false
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

local function find_in(logs, entries, now, id)
  for i = 1, #logs do
    local log = logs[i]
    -- A shadow limit decides nothing.
    local at_ms = log.entries == entries and not log.is_shadow and log.kind.find(log, log.params, now, id)
    if at_ms then return at_ms end
  end
  return nil
end

-- The instant at which a request of this id was admitted, where a log still holds it.
local function find_repeat(logs, now, run)
  return run.mayRepeat and (find_in(logs, 'request', now, run.id) or find_in(logs, 'holder', now, run.id))
end

-- What the op's entry in a log is called.
local function entry_in(log, run)
  if log.entries == 'value' then return run.value end
  return run.id
end

-- Whether what an op takes of a log may be other than its cost, so that the answer says it.
local function takes_once(log, run)
  if log.entries == 'value' then return true end
  return log.is_shadow and run.mayRepeat and (log.entries == 'request' or log.entries == 'holder')
end

-- Units that a request of this cost takes of a log: none where it holds what was brought, or in shadow the request.
local function cost_in(log, now, cost, run)
  if not takes_once(log, run) then return cost end
  if log.kind.find(log, log.params, now, entry_in(log, run)) then return 0 end
  return log.entries == 'value' and 1 or cost
end

-- Of so many requests, those that fit all limits of the log.
local function room_in(log, count)
  local limits, used, cost = log.params.limits, log.used, log.cost
  for i = 1, #limits do
    local free = math.max(0, limits[i] - used[i])
    if free < cost * count then count = math.floor(free / cost) end
  end
  return count
end

local function check(logs, now, run)
  local admitted = run.count
  for i = 1, #logs do
    local log = logs[i]
    log.kind.check(log, log.params, now, log.used)
    log.cost = cost_in(log, now, run.cost, run)
    if not log.is_shadow then admitted = room_in(log, admitted) end
  end
  return admitted
end

local function commit(logs, now, run, admitted)
  for i = 1, #logs do
    local log = logs[i]
    local fitting = log.is_shadow and room_in(log, admitted) or admitted
    -- A value that is known is renewed; a request that a shadow limit knows is not.
    if fitting > 0 and (log.cost > 0 or log.entries == 'value') then
      log.charged, log.is_changed = log.cost * fitting, true
      log.kind.commit(log, log.params, now, log.charged, run.leaseMs, entry_in(log, run))
    end
  end
end

local function answer(logs, run, now, count, filled)
  for i = 1, #logs do
    local log = logs[i]
    local kind, params, cost, charged, used = log.kind, log.params, log.cost, log.charged, log.used
    local limits = params.limits
    if takes_once(log, run) then
      filled = filled + 1
      reply[filled] = cost
    end
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

-- The answer to a request that was admitted at `at_ms` and comes again: as things are now, the times from then on. Its
-- instant replaces whatever stands in place of the op's first integer.
local function answer_again(logs, run, clock, now, at_ms)
  local start = run.filled
  reply[start + 1], reply[start + 2], reply[start + 3] = AGAIN, at_ms - clock, 1
  local place, filled = start + 3, answer(logs, run, now, 0, start + 3)
  for i = 1, #logs do
    if takes_once(logs[i], run) then place = place + 1 end
    for _ = 1, #logs[i].params.limits do
      place = place + 3
      if reply[place] > 0 then reply[place] = reply[place] + now - at_ms end
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
  restamp(logs, now)
  local first_at = find_repeat(logs, now, run)
  local admitted = check(logs, now, run)
  if admitted > 0 and not first_at then commit(logs, now, run, admitted) end
  save(logs, clock, run.is_clock_given)
  if first_at then return answer_again(logs, run, clock, now, first_at) end
  reply[filled + 1] = admitted
  return answer(logs, run, now, run.count, filled + 1)
end

function ops.peek(logs, run, clock, now, filled)
  restamp(logs, now)
  local first_at = find_repeat(logs, now, run)
  reply[filled + 1] = check(logs, now, run)
  if first_at then return answer_again(logs, run, clock, now, first_at) end
  return answer(logs, run, now, run.count, filled + 1)
end

function ops.charge(logs, run, clock, now, filled)
  restamp(logs, now)
  for i = 1, #logs do
    local log = logs[i]
    local units = cost_in(log, now, run.units, run)
    log.kind.commit(log, log.params, now, units, 0, entry_in(log, run))
    log.is_changed = true
  end
  save(logs, clock, run.is_clock_given)
  reply[filled + 1] = 0
  return filled + 1
end

-- Whether the logs that find requests by their ids still hold this one: several decisions may have been made on it.
local function is_still_charged(logs, now, run)
  local entries = 'holder'
  for i = 1, #logs do
    if logs[i].entries == 'request' and not logs[i].is_shadow then entries = 'request' end
  end
  for i = 1, #logs do
    local log = logs[i]
    if log.entries == entries and not log.is_shadow then
      local at_ms = log.kind.find(log, log.params, now, run.id)
      if not at_ms or entries == 'request' and at_ms ~= run.atMs or not log.kind.has(log, log.params, now, run.id, run.units) then
        return false
      end
    end
  end
  return true
end

function ops.refund(logs, run, clock, now, filled)
  local is_charged = not run.mayRepeat or is_still_charged(logs, now, run)
  for i = 1, #logs do
    local log = logs[i]
    local returned = 0
    if run.charged[i] and is_charged then
      returned = log.kind.refund(log, log.params, now, run.atMs, run.units, entry_in(log, run))
    end
    log.is_changed = returned > 0
    reply[filled + i] = returned
  end
  save(logs, clock, run.is_clock_given)
  return filled + #logs
end

local function hold(logs, run, clock, now, filled, is_extended)
  restamp(logs, now)
  local is_held = 1
  for i = 1, #logs do
    local log = logs[i]
    if log.entries == 'holder' then
      local counted
      if is_extended then
        counted = log.kind.renew(log, log.params, now, run.id, run.units)
      else
        counted = log.kind.refund(log, log.params, now, 0, run.units, run.id) > 0
      end
      log.is_changed = log.is_changed or counted
      if not (counted or log.is_shadow) then is_held = 0 end
    end
  end
  save(logs, clock, run.is_clock_given)
  reply[filled + 1] = is_held
  return filled + 1
end

function ops.extend(logs, run, clock, now, filled)
  return hold(logs, run, clock, now, filled, true)
end

function ops.release(logs, run, clock, now, filled)
  return hold(logs, run, clock, now, filled, false)
end

function ops.list(logs, _, _, now, filled)
  restamp(logs, now)
  for i = 1, #logs do
    local log = logs[i]
    local entries = log.entries and log.kind.list(log, log.params, now) or {}
    reply[filled + 1 + i] = cjson.encode(entries)
  end
  reply[filled + 1] = 0
  return filled + 1 + #logs
end

local logs_by_run = {}

-- Answers where the reply now ends, and how many keys have been read.
return function(run, clock, is_clock_given, filled, keys_read)
  run.is_clock_given, run.filled = is_clock_given, filled
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
  -- What Redis refuses is for the whole call; a log whose numbers lead nowhere, or of which its kind says that it cannot
  -- be used, is this op's affair.
  local reason = type(result) == 'table' and result.unusable
  if type(result) == 'string' and string.find(result, 'data string too short', 1, true) then reason = 'a damaged log' end
  if not reason then error(result, 0) end
  reply[filled + 1], reply[filled + 2] = UNREADABLE, reason
  return filled + 2, keys_after
end
