-- The general driver: any op on any logs. The twin of ../driver.ts.

local MAX_AHEAD = 1000
-- What may stand in place of an op's first integer.
local UNREADABLE = -1
local AHEAD = -2
local AGAIN = -3
local BLOCKED = -4
local UNSEEN = -5
local PATIENCE = 500
local TURN = 5

-- The kinds of limits by tag, made when they are first needed. Each has load and save, which know how its log is
-- stored, and restamp, check, commit, retry_after, reset_after and refund, and find, has, renew and list where it keeps
-- entries, which are told of in limits/limit.ts; what is no limit has load, save, restamp and what is told of its role
-- there. A log's newest stamp is its field `stamp`.
local kinds = {}
local function kind_of(tag)
  kinds[tag] = kinds[tag] or makers[tag]()
  return kinds[tag]
end

-- The logs of the run's ops: the same tables serve one op after the other. `entries` says what a log keeps one by one.
-- A log that has no role counts; the others are gathered by what they are there for, too.
local function logs_of(run)
  local logs = { former = {}, ban = {}, line = {}, reservations = {}, table = {} }
  for part, set in ipairs(run.sets) do
    for _, params in ipairs(set) do
      local log = {
        kind = kind_of(params.kind), params = params, entries = params.entries, is_shadow = params.shadow, used = {},
        part = part, counts = not params.role,
      }
      logs[#logs + 1] = log
      if params.role then
        log.entries = nil
        table.insert(logs[params.role], log)
      end
    end
  end
  for _, former in ipairs(logs.former) do
    former.place_of = {}
    for place, limit in ipairs(former.params.serves) do former.place_of[limit] = place end
  end
  return logs
end

-- Reads the logs of an op, or only those of bans, or all others; answers what is wrong with one of them, if anything.
local function load(logs, keys_read, are_bans)
  local damage
  for i = 1, #logs do
    local log = logs[i]
    if are_bans == nil or (log.params.role == 'ban') == are_bans then
      log.key, log.cost, log.charged, log.ahead, log.is_changed = KEYS[keys_read + i], 0, 0, 0, false
      damage = log.kind.load(log) or damage
    end
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
  local blocked = 0
  for _, log in ipairs(logs.ban) do blocked = math.max(blocked, (log.kind.look(log, log.params, now))) end
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
    local free = math.max(0, limits[i] - used[i] - log.ahead)
    if free < cost * count then count = math.floor(free / cost) end
  end
  return count
end

-- Where limit j of a log stands among those of a former one.
local function place_in(former, log, j)
  if former.part ~= log.part then return nil end
  local place = former.place_of[log.params.serves[j]]
  return place and math.min(place, #former.params.windows)
end

-- Adds what is held by the logs of former limits.
local function add_former(logs, log, now)
  for _, former in ipairs(logs.former) do
    former.kind.check(former, former.params, now, former.used)
    for j = 1, #log.params.limits do
      local place = place_in(former, log, j)
      if place then log.used[j] = log.used[j] + former.used[place] end
    end
  end
end

-- Units of those who wait for the same part before the request.
local function units_ahead(logs, log, now, ticket)
  for _, line in ipairs(logs.line) do
    if line.part == log.part then return line.kind.ahead(line, line.params, now, ticket) end
  end
  return 0
end

local function check(logs, now, run)
  local admitted = run.count
  for i = 1, #logs do
    local log = logs[i]
    if log.counts then
      log.kind.check(log, log.params, now, log.used)
      if logs.former[1] then add_former(logs, log, now) end
      log.cost = cost_in(log, now, run.cost, run)
      if run.ticket then log.ahead = units_ahead(logs, log, now, run.ticket) end
      if not log.is_shadow then admitted = room_in(log, admitted) end
    end
  end
  return admitted
end

local function commit(logs, now, run, admitted)
  for i = 1, #logs do
    local log = logs[i]
    local fitting = log.is_shadow and room_in(log, admitted) or admitted
    -- A value that is known is renewed; a request that a shadow limit knows is not.
    if log.counts and fitting > 0 and (log.cost > 0 or log.entries == 'value') then
      log.charged, log.is_changed = log.cost * fitting, true
      log.kind.commit(log, log.params, now, log.charged, run.leaseMs, entry_in(log, run))
    end
  end
  if not run.reservation then return end
  for _, log in ipairs(logs.reservations) do
    log.is_changed = true
    log.kind.commit(log, log.params, now, 1, 0, run.reservation)
  end
end

-- Whether the limits of the part have no room for one request more.
local function has_denied(logs, part)
  for i = 1, #logs do
    local log = logs[i]
    if log.counts and log.part == part and not log.is_shadow then
      for j = 1, #log.params.limits do
        if log.used[j] + log.charged + log.cost > log.params.limits[j] then return true end
      end
    end
  end
  return false
end

-- So many requests were denied: each is counted where limits of the same part have denied it. Answers for how long any
-- part is blocked now.
local function ban_denied(logs, now, run, denied)
  local blocked = 0
  if denied == 0 or run.ticket then return blocked end
  for _, log in ipairs(logs.ban) do
    if log.params.after > 0 and has_denied(logs, log.part) then
      blocked = math.max(blocked, log.kind.denied(log, log.params, now, denied))
      log.is_changed = true
    end
  end
  return blocked
end

-- Puts those who were not admitted in their place in the line, or takes one who was out of it. The waits are those of
-- the answer.
local function queue(logs, now, run, admitted, wait)
  local ticket = run.ticket
  for _, log in ipairs(logs.line) do
    log.is_changed = true
    if admitted == run.count or wait == math.huge then
      log.kind.remove(log, log.params, now, ticket.id)
    else
      local since = (admitted > 0 or ticket.sinceMs == 0) and now or ticket.sinceMs
      log.kind.put(log, log.params, now, { id = ticket.id, sinceMs = since }, run.cost, now + wait + PATIENCE)
    end
  end
end

-- What stays of what is used at a later time.
local later = {}
local function used_at(log, j, at_ms)
  log.kind.check(log, log.params, at_ms, later)
  return later[j]
end

-- Logs of former limits that hold anything of limit j of the log.
local function formers_of(logs, log, j, now)
  local formers
  for _, former in ipairs(logs.former) do
    local place = place_in(former, log, j)
    if place and used_at(former, place, now) > 0 then
      formers = formers or {}
      formers[#formers + 1] = former
    end
  end
  return formers
end

local function reset_of(log, formers, j, now)
  local reset = log.kind.reset_after(log, log.params, j, now)
  for _, former in ipairs(formers or {}) do
    reset = math.max(reset, former.kind.reset_after(former, former.params, place_in(former, log, j), now))
  end
  return reset
end

-- Until no more than so many units are used. They only fall while nothing is charged.
local function falls_to(log, formers, j, now, units)
  local before, after = 0, reset_of(log, formers, j, now)
  while after - before > 1 do
    local middle = math.floor((before + after) / 2)
    local used = used_at(log, j, now + middle)
    for _, former in ipairs(formers or {}) do
      used = used + used_at(former, place_in(former, log, j), now + middle)
    end
    if used <= units then after = middle else before = middle end
  end
  return after
end

-- Until there is room for the cost, and for those who wait before.
local function retry_after(log, formers, j, now)
  local limit, cost = log.params.limits[j], log.cost
  if cost > limit then return NEVER end
  local wanted = math.min(cost + log.ahead, limit)
  if log.used[j] + log.charged + wanted <= limit then return TURN end
  if formers then return falls_to(log, formers, j, now, limit - wanted) end
  return log.kind.retry_after(log, log.params, j, now, wanted)
end

local function answer(logs, run, now, count, filled)
  for i = 1, #logs do
    local log = logs[i]
    if log.counts then
      local params, cost, charged, ahead, used = log.params, log.cost, log.charged, log.ahead, log.used
      local limits, formers = params.limits, nil
      if takes_once(log, run) then
        filled = filled + 1
        reply[filled] = cost
      end
      for j = 1, #limits do
        if logs.former[1] then formers = formers_of(logs, log, j, now) end
        local retry = 0
        if charged < cost * count and used[j] + charged + ahead + cost > limits[j] then
          retry = retry_after(log, formers, j, now)
        end
        reply[filled + 1], reply[filled + 2] = used[j], retry
        reply[filled + 3] = reset_of(log, formers, j, now)
        filled = filled + 3
      end
    end
  end
  return filled
end

-- The longest wait of an answer.
local function wait_in(logs, run, first)
  local wait, place = 0, first
  for i = 1, #logs do
    local log = logs[i]
    if log.counts then
      if takes_once(log, run) then place = place + 1 end
      for _ = 1, #log.params.limits do
        local retry = reply[place + 2]
        wait = math.max(wait, retry == NEVER and math.huge or retry)
        place = place + 3
      end
    end
  end
  return wait
end

-- The answer to a request that was admitted at `at_ms` and comes again: as things are now, the times from then on. Its
-- instant replaces whatever stands in place of the op's first integer.
local function answer_again(logs, run, clock, now, at_ms)
  local start = run.filled
  reply[start + 1], reply[start + 2], reply[start + 3] = AGAIN, at_ms - clock, 1
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

local ops = {}

function ops.consume(logs, run, clock, now, filled)
  restamp(logs, now)
  local first_at = find_repeat(logs, now, run)
  local admitted = check(logs, now, run)
  if admitted > 0 and not first_at then commit(logs, now, run, admitted) end
  if first_at then
    save(logs, clock, run.is_clock_given)
    return answer_again(logs, run, clock, now, first_at)
  end
  local blocked = ban_denied(logs, now, run, run.count - admitted)
  save(logs, clock, run.is_clock_given)
  if blocked > 0 then
    reply[filled + 1], reply[filled + 2] = BLOCKED, blocked
    filled = filled + 2
  end
  reply[filled + 1] = admitted
  local answered = answer(logs, run, now, run.count, filled + 1)
  if run.ticket then
    queue(logs, now, run, admitted, wait_in(logs, run, filled + 1))
    save(logs.line, clock, run.is_clock_given)
  end
  return answered
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
    if log.counts then
      local units = cost_in(log, now, run.units, run)
      log.kind.commit(log, log.params, now, units, 0, entry_in(log, run))
      log.is_changed = true
    end
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

function ops.leave(logs, run, clock, now, filled)
  for _, log in ipairs(logs.line) do
    log.kind.remove(log, log.params, now, run.id)
    log.is_changed = true
  end
  save(logs, clock, run.is_clock_given)
  reply[filled + 1] = 0
  return filled + 1
end

function ops.settle(logs, run, clock, now, filled)
  restamp(logs, now)
  local more, first = run.actual - run.units, filled + 1
  local charged_at = {}
  for _, log in ipairs(logs.reservations) do
    charged_at[log.part] = log.kind.find(log, log.params, now, run.reservation)
    if not charged_at[log.part] then
      save(logs, clock, run.is_clock_given)
      reply[first] = 0
      return first
    end
  end
  for i = 1, #logs do
    local log, returned = logs[i], 0
    if log.params.role == 'reservations' then
      log.kind.refund(log, log.params, now, 0, 1, run.reservation)
      log.is_changed = true
    elseif more > 0 and log.counts then
      log.kind.commit(log, log.params, now, more, 0, '')
      log.is_changed = true
    elseif more < 0 and run.charged[i] then
      returned = log.kind.refund(log, log.params, now, charged_at[log.part], -more, '')
      log.is_changed = log.is_changed or returned > 0
    end
    reply[first + i] = returned
  end
  save(logs, clock, run.is_clock_given)
  reply[first] = 1
  return first + #logs
end

function ops.block(logs, run, clock, now, filled)
  restamp(logs, now)
  for _, log in ipairs(logs.ban) do
    log.kind.block(log, log.params, now, run.ms)
    log.is_changed = true
  end
  save(logs, clock, run.is_clock_given)
  reply[filled + 1] = 0
  return filled + 1
end

-- What a request would be told; then, per limit, eleven times or none, with their number before them; then for each log of
-- bans its level and its denials, and for how long it blocks.
function ops.explain(logs, run, _, now, filled)
  restamp(logs, now)
  local blocked = blocked_for(logs, now)
  if blocked > 0 then
    reply[filled + 1], reply[filled + 2] = BLOCKED, blocked
    filled = filled + 2
  end
  local admitted = check(logs, now, run)
  reply[filled + 1] = blocked > 0 and 0 or admitted
  filled = answer(logs, run, now, run.count, filled + 1)
  for i = 1, #logs do
    local log = logs[i]
    for j = 1, log.counts and #log.params.limits or 0 do
      local used, formers, times = log.used[j], formers_of(logs, log, j, now), 0
      if used > 0 then
        times = 11
        reply[filled + 2] = falls_to(log, formers, j, now, used - 1)
        for tenth = 1, 10 do
          reply[filled + 2 + tenth] = falls_to(log, formers, j, now, used - math.ceil(used * tenth / 10))
        end
      end
      reply[filled + 1] = times
      filled = filled + 1 + times
    end
  end
  for _, log in ipairs(logs.ban) do
    reply[filled + 3], reply[filled + 1], reply[filled + 2] = log.kind.look(log, log.params, now)
    filled = filled + 3
  end
  return filled
end

function ops.note(logs, run, clock, now, filled)
  local log = logs[1]
  reply[filled + 1] = log.kind.write(log, log.params, now, run, clock, run.is_clock_given) and 1 or 0
  return filled + 1
end

-- 0, then JSON: version, whether it is all, and per note its name, ttl, age and text, or '': see notes.lua.
function ops.notes(logs, run, _, now, filled)
  local log = logs[1]
  reply[filled + 1], reply[filled + 2] = 0, cjson.encode(log.kind.read(log, log.params, now, run.since))
  return filled + 2
end

local logs_by_run = {}

-- The ops that a blocked key is not looked at for.
local ARE_BLOCKED = { consume = true, peek = true }

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
  local bans = logs.ban
  local damage
  if bans[1] then
    damage = load(logs, keys_read, true)
    if not damage and ARE_BLOCKED[run.type] then
      local now = settle_instant(bans, clock)
      restamp(bans, now)
      local blocked = blocked_for(logs, now)
      if blocked > 0 then
        if run.type == 'consume' then save(bans, clock, is_clock_given) end
        if now > clock then
          reply[filled + 1], reply[filled + 2] = AHEAD, now - clock
          filled = filled + 2
        end
        reply[filled + 1], reply[filled + 2], reply[filled + 3] = BLOCKED, blocked, UNSEEN
        return filled + 3, keys_after
      end
    end
    damage = damage or load(logs, keys_read, false)
  else
    damage = load(logs, keys_read)
  end
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
