-- Operations besides consume, peek and charge, and what few of these need. Redis makes all functions of a script anew at each
-- call; most calls do without these.
--
-- JSON of an operation: { type, isLook: it writes nothing, keys: how many it has, if not the usual ones }, and what is in the
-- op; see store.ts. `instants` are per log.
-- Reply  refund               per log: units returned
--        list                 0, then per log: JSON of its entries, oldest first: name, units and time of each, as text
--        settle               1, then per log: units returned; or 0 if it was settled before
--        override             1 if anything was in force before, else 0
--        overrides            0, then JSON: see override.lua
--        reset                nothing
--        explain, behind that of a peek: per limit of windows and entries how many times follow, and these, and with CHARGES
--                             how many charges follow, and of each the milliseconds since, and its units (of kinds that keep
--                             them); then per log of bans: level, denials, milliseconds for which it blocks

local steps, ops = {}, {}

-- The logs of an op. `entries` is the kind of entries that a log keeps: see entry-window.lua.
local function logs_of(words, codes, k)
  local logs = {}
  for i, code in ipairs(codes or {}) do
    local p = code.p
    logs[i] = {
      key = KEYS[k + i - 1], k = k + i - 1, p = p, last = math.abs(words[p]), kind = code.kind,
      tables = tables_of(kinds, code.kind), is_shadow = words[p] < 0, entries = code.kind == 5 and words[p + 2],
    }
  end
  return logs
end

-- Kinds answer what is wrong with a log, if anything. Most answer nil before it, as where they decide.
local function load_log(log, words)
  local reason, other = log.tables.load(log, words, log.p)
  if reason or other then error({ unusable = reason or other }) end
end

local function save(log, words, clock)
  log.tables.save(log, words, log.p, clock, clock ~= reply[1])
end

-- An error of Redis fails the whole call; a log that cannot be used fails only its op.
local function fail(result, filled)
  local reason = type(result) == 'table' and result.unusable
  if type(result) == 'string' and string.find(result, 'data string too short', 1, true) then reason = 'a damaged log' end
  if not reason then error(result, 0) end
  reply[filled + 1], reply[filled + 2] = UNREADABLE, reason
  return filled + 2
end

-- Any operation of rare.lua. Returns where the reply ends.
function steps.apply(run, op, words, damage, codes, overridable, k, clock, filled)
  local logs, now = logs_of(words, codes, k), clock
  if run.type == 'reset' then
    for _, log in ipairs(logs) do
      call_redis('DEL', log.key)
      if log.tables.reset then log.tables.reset(log) end
    end
    return filled
  end
  local is_done, result = pcall(function()
    for _, log in ipairs(logs) do load_log(log, words) end
    if damage then error({ unusable = damage }) end
    for _, log in ipairs(logs) do
      if log.stamp > now and log.stamp <= clock + MAX_AHEAD then now = log.stamp end
    end
    if run.type == 'override' or run.type == 'overrides' then
      --- records
    end
    local first = filled
    if now > clock then
      reply[filled + 1], reply[filled + 2] = AHEAD, now - clock
      first = filled + 2
    end
    return ops[run.type](logs, words, run, op.id or '', clock, now, first)
  end)
  return is_done and result or fail(result, filled)
end

-- Decides one log on its own.
local function decide_one(log, words, now, clock, cost, op)
  local answer = { reply[1] }
  local _, reason = kinds[log.kind](
    words, log.p, log.k, 2, op.requests, now, clock, cost, op.requests, answer, {}, op
  )
  if type(reason) == 'string' then error({ unusable = reason }) end
  return answer
end

-- A log that is ahead of a clock that was set back counts from now on.
local function restamp(logs, words, now, clock)
  for _, log in ipairs(logs) do
    if log.stamp > now then
      if log.kind == 8 then
        log.tables.restamp(log, now)
        save(log, words, clock)
      else
        decide_one(log, words, now, clock, 1, { requests = 0, lease_ms = 0 })
        load_log(log, words)
      end
    end
  end
end

-- Takes a charge back, if the log still holds it. Answers the units.
local function return_charge(log, words, now, clock, at_ms, units, id)
  local refund = log.tables.refund
  local returned = refund and refund(log, words, log.p, now, at_ms, units, id) or 0
  if returned > 0 then save(log, words, clock) end
  return returned
end

-- Whether the logs that find requests by their ids still hold this one: several decisions may have been made on it.
local function is_still_charged(logs, words, now, run, id)
  local entries = HOLDER
  for _, log in ipairs(logs) do
    if log.entries == REQUEST and not log.is_shadow then entries = REQUEST end
  end
  for _, log in ipairs(logs) do
    if log.entries == entries and not log.is_shadow then
      local at_ms, units = log.tables.find(log, words, log.p, now, id)
      if units ~= run.units or entries == REQUEST and at_ms ~= run.atMs then return false end
    end
  end
  return true
end

function ops.refund(logs, words, run, id, clock, now, filled)
  local is_charged = not run.mayRepeat or is_still_charged(logs, words, now, run, id)
  for i, log in ipairs(logs) do
    local is_mine = is_charged and run.charged[i]
    reply[filled + i] = is_mine and return_charge(log, words, now, clock, run.atMs, run.units, id) or 0
  end
  return filled + #logs
end

function ops.list(logs, words, _, _, _, now, filled)
  for i, log in ipairs(logs) do
    local list = log.entries ~= RESERVATION and log.tables.list
    reply[filled + 1 + i] = cjson.encode(list and list(log, words, log.p, now) or {})
  end
  reply[filled + 1] = 0
  return filled + 1 + #logs
end

function ops.settle(logs, words, run, _, clock, now, filled)
  restamp(logs, words, now, clock)
  local rest, name, charged_at, first = run.actual - run.units, run.reservation, {}, filled + 1
  for _, log in ipairs(logs) do
    if log.entries == RESERVATION then
      local at_ms = log.tables.find(log, words, log.p, now, name)
      if not at_ms then
        reply[first] = 0
        return first
      end
      charged_at[#charged_at + 1] = at_ms
    end
  end
  for i, log in ipairs(logs) do
    reply[first + i] = 0
    if log.entries == RESERVATION then
      return_charge(log, words, now, clock, 0, 1, name)
    elseif rest > 0 and log.kind ~= 8 and log.entries ~= HOLDER then
      -- Limits may have changed to such that keep what they count: requests, but it is no holder.
      decide_one(log, words, now, clock, rest, { requests = 1, lease_ms = 0, is_forced = true, id = name })
    elseif rest < 0 and run.charged[i] and charged_at[run.parts[i]] == run.instants[i] then
      reply[first + i] = return_charge(log, words, now, clock, run.instants[i], -rest, '')
    end
  end
  reply[first] = 1
  return first + #logs
end

-- The age and units of what a limit counts, that of the same instant as one; their number before them.
local function tell_charges(log, words, i, now, most, filled)
  local charges, last = log.tables.charges(log, words, log.p, i, now, most), filled + 1
  for at_charge = 1, #charges, 2 do
    local age, units = now - charges[at_charge], charges[at_charge + 1]
    -- A damaged log: no number below 0 may get into the reply.
    if age < 0 or units < 0 then error({ unusable = 'a damaged log' }) end
    if at_charge > 1 and charges[at_charge] == charges[at_charge - 2] then
      reply[last] = reply[last] + units
    else
      reply[last + 1], reply[last + 2] = age, units
      last = last + 2
    end
  end
  reply[filled + 1] = (last - filled - 1) / 2
  return last
end

-- For each limit eleven times or none, with their number before them, and its charges; then of each log of bans.
local function explain(op, words, codes, k, now, clock, filled)
  local look, logs = { requests = 1, lease_ms = 0, is_look = true, id = op.id }, logs_of(words, codes, k)
  for _, log in ipairs(logs) do
    if log.kind ~= 8 and log.entries ~= RESERVATION and (log.kind == 1 or log.kind > 4) then
      local most = log.tables.charges and op.charges
      if most then load_log(log, words) end
      -- Where its limits are in its words.
      local first, last, step = log.p + 2, log.last, 1
      if log.kind == 1 then first, step = log.p + 3, 2 elseif log.kind == 5 then first = log.p + 3 end
      for i = first, last, step do
        local at = (i - first) / step
        local used = -1 - decide_one(log, words, now, clock, 1, look)[2 + at]
        local tenths = used > 0 and 10 or -1
        reply[filled + 1], filled = tenths + 1, filled + 1
        for tenth = 0, tenths do
          local units = tenth == 0 and 1 or math.ceil(used * tenth / 10)
          local answer = decide_one(log, words, now, clock, words[i] - used + units, look)
          -- Behind the answers, two times per limit.
          reply[filled + 1], filled = answer[2 + (last - first) / step + 1 + 2 * at], filled + 1
        end
        if most then filled = tell_charges(log, words, i - (log.kind == 1 and 1 or 0), now, most, filled) end
      end
    end
  end
  for _, log in ipairs(logs) do
    if log.kind == 8 then
      load_log(log, words)
      reply[filled + 3], reply[filled + 1], reply[filled + 2] = log.tables.look(log, words, log.p, now)
      filled = filled + 3
    end
  end
  return filled
end

-- What is unusual about a decision: bans, requests that come again, explanations. Returns where the reply ends, and whether a
-- ban was written.
function steps.finish(op, words, codes, k, all, wanted, now, clock, start, first, filled)
  local is_again, blocked, is_written, bans = op.again_at and not op.is_blocked, 0, false, op.bans or {}
  local denied = (is_again or op.is_blocked or op.is_waiting or op.is_look) and 0 or wanted - all
  for _, ban in ipairs(bans) do
    local is_denied = false
    for i = ban.k - words[ban.p + 1], ban.k - 1 do is_denied = is_denied or denied > 0 and op.denied[i] end
    if not op.is_look and op.is_ban_restamped or is_denied then
      local log, tables = { key = KEYS[ban.k] }, tables_of(kinds, 8)
      tables.load(log)
      tables.restamp(log, now)
      local ms = is_denied and tables.denied(log, words, ban.p, ban.last, now, denied) or 0
      local is_saved, reason_of_redis = pcall(tables.save, log, words, ban.p, clock, clock ~= reply[1])
      -- Where Redis is out of memory a denial stays one, though it is not counted.
      if not is_saved and all > 0 then error(reason_of_redis, 0) end
      if is_saved then blocked, is_written = math.max(blocked, ms), true end
    end
  end
  if is_again or blocked > 0 or op.is_blocked and #bans > 0 then
    reply[first] = EXTRAS - all
    reply[filled + 1], reply[filled + 2] = is_again and op.again_at - clock or 0, is_again and op.again_units or 0
    reply[filled + 3] = blocked
    for i, ban in ipairs(bans) do reply[filled + 3 + i] = ban.blocked_ms end
    filled = filled + 3 + #bans
  end
  if op.is_explained then
    local is_done, result = pcall(explain, op, words, codes, k, now, clock, filled)
    return is_done and result or fail(result, start), false
  end
  return filled, is_written
end

return steps
