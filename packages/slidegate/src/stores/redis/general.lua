-- The general driver: any op on any logs. The twin of ../driver.ts, with beyond.lua, in which is what few ops need, and
-- apply.lua.

local MAX_AHEAD = 1000
-- What may stand in place of an op's first integer.
local UNREADABLE = -1
local AHEAD = -2
local AGAIN = -3
local BLOCKED = -4
local BANNED = -5
local OVERRIDDEN = -6

-- What few ops need, and what overrides do, made when it is first needed.
local beyond, override

-- The kinds of limits by tag, made when they are first needed. Each has load and save, which know how its log is
-- stored, and restamp, check, commit, retry_after, reset_after and refund, and find, units, renew and list where it keeps
-- entries, which are told of in limits/limit.ts; what is no limit has load, save, restamp and what is told of its role
-- there. A log's newest stamp is its field `stamp`.
local kinds = {}
local function kind_of(tag)
  kinds[tag] = kinds[tag] or makers[tag]()
  return kinds[tag]
end

-- The logs of the run's ops: the same tables serve one op after the other. `entries` says what a log keeps one by one.
-- A log that has no role counts; the others are gathered by what they are there for, too. Behind the keys of a part's logs
-- stands that of its override, if it may have one, and if it is to be written that of the index.
local function logs_of(run)
  local logs, keys = { blocked_ms = 0 }, 0
  -- A page reads an index and no log.
  if run.type == 'overrides' then return { blocked_ms = 0, keys = 1 } end
  for part, set in ipairs(run.sets) do
    for _, params in ipairs(set) do
      keys = keys + 1
      local log = {
        kind = kind_of(params.kind), params = params, entries = params.entries, is_shadow = params.shadow, used = {},
        part = part, counts = not params.role, declared = params, key_place = keys,
      }
      logs[#logs + 1] = log
      if params.role then
        log.entries, logs[params.role] = nil, logs[params.role] or {}
        table.insert(logs[params.role], log)
      end
    end
    if run.overridable and run.overridable[part] then
      logs.overrides = logs.overrides or {}
      table.insert(logs.overrides, { part = part, place = keys + 1 })
      keys = keys + (run.type == 'override' and 2 or 1)
    end
  end
  logs.keys = keys
  return logs
end

-- Reads the logs of an op; answers what is wrong with one of them, if anything.
local function load(logs, keys_read)
  local damage
  for i = 1, #logs do
    local log = logs[i]
    log.key, log.cost, log.charged, log.is_changed = KEYS[keys_read + log.key_place], 0, 0, false
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

-- For how long more any part is blocked.
local function blocked_for(logs, now)
  local blocked, bans = logs.blocked_ms, logs.ban
  for i = 1, bans and #bans or 0 do blocked = math.max(blocked, (bans[i].kind.look(bans[i], bans[i].params, now))) end
  return blocked
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
    if at_ms then return { at_ms = at_ms, units = log.kind.units(log, log.params, now, id) } end
  end
  return nil
end

-- Finds the charge of a repeated request, if a log still holds it.
local function find_repeat(logs, now, run)
  return run.mayRepeat and (find_in(logs, 'request', now, run.id) or find_in(logs, 'holder', now, run.id))
end

-- Whether what an op takes of a log may be other than its cost, so that the answer says it.
local function takes_once(log, run)
  return log.is_shadow and run.mayRepeat and (log.entries == 'request' or log.entries == 'holder')
end

-- Units that a request of this cost takes of a log: none where it holds the request in shadow.
local function cost_in(log, now, cost, run)
  return takes_once(log, run) and log.kind.find(log, log.params, now, run.id) and 0 or cost
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
    if log.counts then
      log.kind.check(log, log.params, now, log.used, false, run.id)
      log.cost = cost_in(log, now, run.cost, run)
      if not log.is_shadow then admitted = room_in(log, admitted) end
    end
  end
  return admitted
end

local function commit(logs, now, run, admitted)
  for i = 1, #logs do
    local log = logs[i]
    local fitting = log.is_shadow and room_in(log, admitted) or admitted
    -- A request that a shadow limit knows is not renewed.
    if log.counts and fitting > 0 and log.cost > 0 then
      log.charged, log.is_changed = log.cost * fitting, true
      log.kind.commit(log, log.params, now, log.charged, run.leaseMs, run.id)
    end
  end
  if not run.reservation then return end
  for _, log in ipairs(logs.reservations or {}) do
    log.is_changed = true
    log.kind.commit(log, log.params, now, 1, 0, run.reservation)
  end
end

local function answer(logs, run, now, count, filled)
  for i = 1, #logs do
    local log = logs[i]
    if log.counts then
      local kind, params, cost, charged, used = log.kind, log.params, log.cost, log.charged, log.used
      local limits, taken = params.limits, log.charged + log.cost
      if takes_once(log, run) then
        filled = filled + 1
        reply[filled] = cost
      end
      for j = 1, #limits do
        local is_full, retry = charged < cost * count and used[j] + taken > limits[j], 0
        reply[filled + 1] = used[j]
        if is_full then retry = kind.retry_after(log, params, j, now, cost) end
        reply[filled + 2], reply[filled + 3] = retry, kind.reset_after(log, params, j, now)
        filled = filled + 3
      end
    end
  end
  return filled
end

-- The answer to a request that was admitted before and comes again: as things are now, the times from then on. Its
-- instant replaces that of the op.
local function answer_again(logs, run, clock, now, start, first)
  local at_ms = first.at_ms
  reply[start + 1], reply[start + 2], reply[start + 3] = AGAIN, at_ms - clock, first.units
  local place, filled = start + 3, answer(logs, run, now, 0, start + 3)
  for i = 1, #logs do
    if takes_once(logs[i], run) then place = place + 1 end
    for _ = 1, logs[i].counts and #logs[i].params.limits or 0 do
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

-- The answer if a key is blocked: BANNED, for how long each log of bans blocks, and how the limits are. Nothing
-- if none is.
local function denial_by_ban(logs, run, now, filled)
  if not logs.ban and logs.blocked_ms == 0 or blocked_for(logs, now) == 0 then return nil end
  reply[filled + 1] = BANNED
  local bans = logs.ban or {}
  for i, ban in ipairs(bans) do reply[filled + 1 + i] = (ban.kind.look(ban, ban.params, now)) end
  filled = filled + 2 + #bans
  check(logs, now, run)
  reply[filled] = 0
  return answer(logs, run, now, run.count, filled)
end

local ops = {}

function ops.consume(logs, run, clock, now, filled)
  restamp(logs, now)
  if logs.is_overridden then filled = override().tell(logs, filled) end
  local banned = denial_by_ban(logs, run, now, filled)
  if banned then
    save(logs, clock, run.is_clock_given)
    return banned
  end
  local first = find_repeat(logs, now, run)
  local admitted = check(logs, now, run)
  if admitted > 0 and not first then commit(logs, now, run, admitted) end
  if first then
    save(logs, clock, run.is_clock_given)
    return answer_again(logs, run, clock, now, filled, first)
  end
  local blocked = 0
  if logs.ban and admitted < run.count then
    blocked = beyond().ban_denied(logs, now, run, run.count - admitted)
    -- Where Redis is out of memory a denial stays one, though it is not counted.
    if admitted == 0 and not pcall(save, logs.ban, clock, run.is_clock_given) then blocked = 0 end
    for i = 1, admitted == 0 and #logs.ban or 0 do logs.ban[i].is_changed = false end
  end
  save(logs, clock, run.is_clock_given)
  if blocked > 0 then
    reply[filled + 1], reply[filled + 2] = BLOCKED, blocked
    filled = filled + 2
  end
  reply[filled + 1] = admitted
  return answer(logs, run, now, run.count, filled + 1)
end

function ops.peek(logs, run, clock, now, filled)
  restamp(logs, now)
  if logs.is_overridden then filled = override().tell(logs, filled) end
  local banned = denial_by_ban(logs, run, now, filled)
  if banned then return banned end
  local first = find_repeat(logs, now, run)
  reply[filled + 1] = check(logs, now, run)
  if first then return answer_again(logs, run, clock, now, filled, first) end
  return answer(logs, run, now, run.count, filled + 1)
end
