-- What few ops need of the general driver: Redis makes all functions of a script anew at each call.

local function make_beyond()

local more = {}

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
function more.ban_denied(logs, now, run, denied)
  local blocked = 0
  if denied == 0 or run.isWaiting then return blocked end
  for _, log in ipairs(logs.ban or {}) do
    if has_denied(logs, log.part) then
      blocked = math.max(blocked, log.kind.denied(log, log.params, now, denied))
      log.is_changed = true
    end
  end
  return blocked
end

function ops.charge(logs, run, clock, now, filled)
  restamp(logs, now)
  for i = 1, #logs do
    local log = logs[i]
    if log.counts then
      local units = cost_in(log, now, run.units, run)
      log.kind.commit(log, log.params, now, units, 0, run.id)
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
      if not at_ms or entries == 'request' and at_ms ~= run.atMs or log.kind.units(log, log.params, now, run.id) ~= run.units then
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
      returned = log.kind.refund(log, log.params, now, run.atMs, run.units, run.id)
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

function ops.settle(logs, run, clock, now, filled)
  restamp(logs, now)
  local rest, first = run.actual - run.units, filled + 1
  local charged_at = {}
  for _, log in ipairs(logs.reservations or {}) do
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
      log.kind.refund(log, log.params, now, charged_at[log.part], 1, run.reservation)
      log.is_changed = true
    elseif rest > 0 and log.counts then
      -- Limits may have changed to such that keep what they count: requests, but it is no holder.
      if log.entries ~= 'holder' then
        log.kind.commit(log, log.params, now, rest, 0, log.entries and run.reservation or '')
        log.is_changed = true
      end
    elseif rest < 0 and run.charged[i] and charged_at[log.part] == run.instants[log.part] then
      returned = log.kind.refund(log, log.params, now, charged_at[log.part], -rest, '')
      log.is_changed = log.is_changed or returned > 0
    end
    reply[first + i] = returned
  end
  save(logs, clock, run.is_clock_given)
  reply[first] = 1
  return first + #logs
end

function ops.override(logs, run, clock, _, filled)
  local existed = 0
  for _, each in ipairs(logs.overrides or {}) do
    if override().change(each, run, clock) then existed = 1 end
  end
  for _, log in ipairs(run.blockMs == 0 and not run.rule and logs.ban or {}) do
    log.kind.unblock(log)
    log.is_changed = true
  end
  save(logs, clock, run.is_clock_given)
  reply[filled + 1] = existed
  return filled + 1
end

function ops.overrides(logs, run, clock, _, filled)
  local page = override().page(logs.first_key, run.after, clock)
  reply[filled + 1], reply[filled + 2] = 0, cjson.encode(page)
  return filled + 2
end

-- The age and units of what limit j counts, that of the same instant as one; their number before them.
local function tell_charges(log, j, now, most, filled)
  local charges, last = log.kind.charges(log, log.params, j, now, most), filled + 1
  for i = 1, #charges, 2 do
    local age, units = now - charges[i], charges[i + 1]
    -- A damaged log: no number below 0 may get into the reply.
    if age < 0 or units < 0 then error({ unusable = 'a damaged log' }) end
    if i > 1 and charges[i] == charges[i - 2] then
      reply[last] = reply[last] + units
    else
      reply[last + 1], reply[last + 2] = age, units
      last = last + 2
    end
  end
  reply[filled + 1] = (last - filled - 1) / 2
  return last
end

-- What a request would be told; then, per limit, eleven times or none, with their number before them, and where they are
-- asked for and kept, its charges; then for each log of bans its level and its denials, and for how long it blocks.
function ops.explain(logs, run, _, now, filled)
  restamp(logs, now)
  if logs.is_overridden then filled = override().tell(logs, filled) end
  local blocked = blocked_for(logs, now)
  local admitted = check(logs, now, run)
  reply[filled + 1] = blocked > 0 and 0 or admitted
  filled = answer(logs, run, now, run.count, filled + 1)
  for i = 1, #logs do
    local log = logs[i]
    for j = 1, log.counts and #log.params.limits or 0 do
      local used, times = log.used[j], 0
      if used > 0 then
        times = 11
        for step = 0, 10 do
          local units = step == 0 and 1 or math.ceil(used * step / 10)
          reply[filled + 2 + step] = log.kind.retry_after(log, log.params, j, now, log.params.limits[j] - used + units)
        end
      end
      reply[filled + 1] = times
      filled = filled + 1 + times
      if run.charges and log.kind.charges then filled = tell_charges(log, j, now, run.charges, filled) end
    end
  end
  for _, log in ipairs(logs.ban or {}) do
    reply[filled + 3], reply[filled + 1], reply[filled + 2] = log.kind.look(log, log.params, now)
    filled = filled + 3
  end
  return filled
end

return more
end

local made
beyond = function()
  made = made or make_beyond()
  return made
end
