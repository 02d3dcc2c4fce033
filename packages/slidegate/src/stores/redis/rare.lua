-- Operations besides consume, peek and charge, and what few of these need. Redis makes all functions of a script anew at each
-- call; most calls do without these.
--
-- JSON of an operation: { type, isLook: it writes nothing, keys: how many it has, if not the usual ones }, and what is in the
-- op; see store.ts. `instants` are per log.
-- Reply  refund               per log: units returned
--        extend, release      1 if it was still held, else 0
--        list                 0, then per log: JSON of its entries, oldest first: name, units and time of each, as text
--        settle               1, then per log: units returned; or 0 if it was settled before
--        override             1 if anything was in force before, else 0
--        overrides            0, then JSON: see page_of_overrides
--        reset                nothing
--        explain, behind that of a peek: per limit of windows and entries how many times follow, and these, and with CHARGES
--                             how many charges follow, and of each the milliseconds since, and its units (of kinds that keep
--                             them); then per log of bans: level, denials, milliseconds for which it blocks

local steps, ops = {}, {}

-- Writes an override and its name in the index. Removes both if nothing is in force.
local function write(key, index, size, name, record, clock, is_clock_given)
  if record.blocked <= clock and (record.rule == '' or record.ends <= clock) then
    call_redis('DEL', key)
    call_redis('ZREM', index, name)
    return
  end
  local ends = math.max(record.blocked, record.rule == '' and 0 or record.ends)
  local raw = string.format('1 %d %d ', record.blocked, record.ends) .. record.rule .. '\n' .. record.given
  local ttl = ends < FOREVER and ttl_of(ends - clock, is_clock_given)
  if ttl then call_redis('SET', key, raw, 'PX', ttl) else call_redis('SET', key, raw) end
  call_redis('ZADD', index, '0', name)
  if not ttl then
    call_redis('PERSIST', index)
  elseif size == 0 then
    call_redis('PEXPIRE', index, ttl)
  else
    call_redis('PEXPIRE', index, ttl, 'GT')
  end
end

local function key_of(index, name)
  return string.sub(index, 1, -1 - INDEX_LENGTH) .. name .. OVERRIDE_END
end

local function sweep(index, size, clock)
  if size == 0 then return end
  local first = clock % size
  for _, name in ipairs(call_redis('ZRANGE', index, string.format('%d', first), string.format('%d', first + 1))) do
    if call_redis('EXISTS', key_of(index, name)) == 0 then call_redis('ZREM', index, name) end
  end
end

-- What is stored of a key, and the key as it was given.
local function read_override(raw, clock)
  local rule, rule_ms, blocked_ms, ends, blocked = override.in_force(raw, clock)
  if not (rule and override.numbers_of(rule)) then return nil, rule and NO_OVERRIDE or rule_ms end
  return {
    rule = rule, rule_ms = rule_ms, blocked_ms = blocked_ms, ends = ends, blocked = blocked,
    given = string.match(raw, '\n(.*)$'),
  }
end

-- Changes the stored override as the op says. Drops a half that has ended. Returns whether anything was in force before.
local function change_override(key, index, run, given, clock, is_clock_given)
  local raw, size, reason = pcall_redis('GET', key), pcall_redis('ZCARD', index), nil
  if type(size) == 'table' then error({ unusable = size.err }) end
  local record = { rule = '', rule_ms = 0, blocked_ms = 0, ends = 0, blocked = 0, given = '' }
  if raw then record, reason = read_override(raw, clock) end
  if reason then error({ unusable = reason }) end
  local function ends_of(ms)
    return ms >= FOREVER and FOREVER or clock + ms
  end
  local existed = record.rule_ms > 0 or record.blocked_ms > 0
  record.rule = run.rule or record.rule
  if run.rule then record.ends = run.rule == '' and 0 or ends_of(run.ruleMs) end
  if record.blocked_ms == 0 then record.blocked = 0 end
  if run.blockMs then record.blocked = run.blockMs == 0 and 0 or ends_of(run.blockMs) end
  record.given = given or record.given
  local name = string.sub(key, #index - INDEX_LENGTH + 1, -1 - #OVERRIDE_END)
  write(key, index, size, name, record, clock, is_clock_given)
  sweep(index, size, clock)
  return existed
end

-- A page of overrides, from the key behind `after`. First where the next page begins, or ''. Then for each: its key, the
-- caller's key, the rule, and the milliseconds until rule and block end.
local function page_of_overrides(index, after, clock)
  local from = after == '' and '-' or '(' .. after
  local names = pcall_redis('ZRANGE', index, from, '+', 'BYLEX', 'LIMIT', '0', string.format('%d', OVERRIDES_PAGE))
  if names.err then error({ unusable = names.err }) end
  local page, bytes = { '' }, 0
  for i, name in ipairs(names) do
    local raw = pcall_redis('GET', key_of(index, name))
    local record = raw and read_override(raw, clock)
    if record and record.rule_ms + record.blocked_ms > 0 then
      local at = #page
      page[at + 1], page[at + 2], page[at + 3] = name, record.given, record.rule
      page[at + 4], page[at + 5] = string.format('%d', record.rule_ms), string.format('%d', record.blocked_ms)
    elseif not raw then
      call_redis('ZREM', index, name)
    end
    bytes = bytes + (raw and #raw or 0)
    if i == OVERRIDES_PAGE or bytes >= PAGE_BYTES then
      page[1] = name
      break
    end
  end
  return page
end

-- The logs of an op. `entries` says what a log keeps one by one: see entry-window.lua.
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
        log.tables.restamp(log, words, log.p, now)
        log.tables.save(log, words, log.p, clock, clock ~= reply[1])
      else
        decide_one(log, words, now, clock, 1, { requests = 0, lease_ms = 0 })
        log.tables.load(log, words, log.p)
      end
    end
  end
end

local function save(log, words, clock)
  log.tables.save(log, words, log.p, clock, clock ~= reply[1])
end

-- Whether the logs that find requests by their ids still hold this one: several decisions may have been made on it.
local function is_still_charged(logs, words, now, run, id)
  local entries = HOLDER
  for _, log in ipairs(logs) do
    if log.entries == REQUEST and not log.is_shadow then entries = REQUEST end
  end
  for _, log in ipairs(logs) do
    if log.entries == entries and not log.is_shadow then
      local at_ms = log.tables.find(log, words, log.p, now, id)
      if not at_ms or entries == REQUEST and at_ms ~= run.atMs
        or log.tables.units(log, words, log.p, now, id) ~= run.units then return false end
    end
  end
  return true
end

function ops.refund(logs, words, run, id, clock, now, filled)
  local is_charged = not run.mayRepeat or is_still_charged(logs, words, now, run, id)
  for i, log in ipairs(logs) do
    local returned = 0
    if run.charged[i] and is_charged then
      returned = log.tables.refund(log, words, log.p, now, run.atMs, run.units, id, log.last)
      if returned > 0 then save(log, words, clock) end
    end
    reply[filled + i] = returned
  end
  return filled + #logs
end

local function hold(logs, words, run, id, clock, now, filled)
  restamp(logs, words, now, clock)
  local is_held = 1
  for _, log in ipairs(logs) do
    if log.entries == HOLDER then
      local is_counted
      if run.type == 'extend' then
        is_counted = log.tables.renew(log, words, log.p, now, id, run.units)
      else
        is_counted = log.tables.refund(log, words, log.p, now, 0, run.units, id) > 0
      end
      if is_counted then save(log, words, clock) elseif not log.is_shadow then is_held = 0 end
    end
  end
  reply[filled + 1] = is_held
  return filled + 1
end

ops.extend, ops.release = hold, hold

function ops.list(logs, words, _, _, _, now, filled)
  for i, log in ipairs(logs) do
    local entries = {}
    if log.tables.list and log.entries ~= RESERVATION then
      if log.stamp > now then log.tables.restamp(log, words, log.p, now) end
      entries = log.tables.list(log, words, log.p, now)
    end
    reply[filled + 1 + i] = cjson.encode(entries)
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
    local returned = 0
    if log.entries == RESERVATION then
      log.tables.refund(log, words, log.p, now, 0, 1, name)
      save(log, words, clock)
    elseif rest > 0 and log.kind ~= 8 then
      -- Limits may have changed to such that keep what they count: requests, but it is no holder.
      if log.entries ~= HOLDER then
        decide_one(log, words, now, clock, rest, { requests = 1, lease_ms = 0, is_forced = true, id = name })
      end
    elseif rest < 0 and run.charged[i] and charged_at[run.parts[i]] == run.instants[i] then
      returned = log.tables.refund(log, words, log.p, now, run.instants[i], -rest, '', log.last)
      if returned > 0 then save(log, words, clock) end
    end
    reply[first + i] = returned
  end
  reply[first] = 1
  return first + #logs
end

function ops.override(logs, words, run, _, clock, _, filled)
  local existed = 0
  for i, key in ipairs(run.stored) do
    local given = run.given and run.given[i]
    if change_override(key, run.indexes[i], run, given, clock, clock ~= reply[1]) then existed = 1 end
  end
  if run.blockMs == 0 and not run.rule then
    for _, log in ipairs(logs) do
      if log.kind == 8 then
        log.tables.unblock(log)
        save(log, words, clock)
      end
    end
  end
  reply[filled + 1] = existed
  return filled + 1
end

-- What Redis refuses is for the whole call; a log that cannot be used is the affair of its op.
local function fail(result, filled)
  local reason = type(result) == 'table' and result.unusable
  if type(result) == 'string' and string.find(result, 'data string too short', 1, true) then reason = 'a damaged log' end
  if not reason then error(result, 0) end
  reply[filled + 1], reply[filled + 2] = UNREADABLE, reason
  return filled + 2
end

-- Any operation of rare.lua. Returns where the reply ends.
function steps.apply(run, op, words, codes, overridable, names, k, clock, filled)
  local logs, now = logs_of(words, codes, k), clock
  if run.type == 'reset' then
    for _, log in ipairs(logs) do
      call_redis('DEL', log.key)
      if log.tables.reset then log.tables.reset(log) end
    end
    return filled
  end
  local is_done, result = pcall(function()
    if run.type == 'overrides' then
      reply[filled + 1], reply[filled + 2] = 0, cjson.encode(page_of_overrides(KEYS[k], run.after, clock))
      return filled + 2
    end
    local damage
    for _, log in ipairs(logs) do damage = log.tables.load(log, words, log.p) or damage end
    if damage then error({ unusable = damage }) end
    for _, log in ipairs(logs) do
      if log.stamp > now and log.stamp <= clock + MAX_AHEAD then now = log.stamp end
    end
    if run.type == 'override' then
      run.stored, run.indexes = {}, {}
      for i = 1, overridable do
        run.stored[i], run.indexes[i] = KEYS[k + #logs + 2 * i - 2], KEYS[k + #logs + 2 * i - 1]
      end
    else
      local raws
      for i = 1, overridable do
        local raw = pcall_redis('GET', KEYS[k + #logs + i - 1])
        if raw then
          raws = raws or {}
          raws[i] = raw
        end
      end
      if raws then
        local _
        _, words, _, damage = override.hold(raws, nil, words, names, overridable, clock, 1, filled + 1)
        if damage then error({ unusable = damage }) end
        for _, log in ipairs(logs) do log.is_shadow = words[log.p] < 0 end
      end
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

-- The limits of a log, and where they stand in its words.
local function limits_of(log)
  local first, step, last = log.p + 3, 1, log.last
  if log.kind == 1 then first, step = log.p + 4, 2 elseif log.kind ~= 5 then first = log.p + 2 end
  return first, last, step
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
  local look = { requests = 1, lease_ms = 0, is_look = true, id = op.id }
  for _, log in ipairs(logs_of(words, codes, k)) do
    if log.kind ~= 8 and log.entries ~= RESERVATION and (log.kind == 1 or log.kind > 4) then
      if op.charges and log.tables.charges then
        local damage = log.tables.load(log, words, log.p)
        if damage then error({ unusable = damage }) end
        if log.kind == 1 and log.stamp > now then log.tables.restamp(log, words, log.p, now) end
      end
      local first, last, step = limits_of(log)
      for i = first, last, step do
        local used, times = -1 - decide_one(log, words, now, clock, 1, look)[2 + (i - first) / step], 0
        if used > 0 then
          times = 11
          for tenth = 0, 10 do
            local units = tenth == 0 and 1 or math.ceil(used * tenth / 10)
            local answer = decide_one(log, words, now, clock, words[i] - used + units, look)
            -- Behind the answers, two times per limit.
            reply[filled + 2 + tenth] = answer[2 + (last - first) / step + 1 + 2 * (i - first) / step]
          end
        end
        reply[filled + 1] = times
        filled = filled + 1 + times
        if op.charges and log.tables.charges then
          filled = tell_charges(log, words, i - (log.kind == 1 and 1 or 0), now, op.charges, filled)
        end
      end
    end
  end
  for _, log in ipairs(logs_of(words, codes, k)) do
    if log.kind == 8 then
      log.tables.load(log, words, log.p)
      if log.stamp > now then log.tables.restamp(log, words, log.p, now) end
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
    for i = ban.k - words[ban.p + 1], ban.k - 1 do is_denied = is_denied or op.denied[i] end
    if not op.is_look and op.is_ban_restamped or denied > 0 and is_denied then
      local log, tables = { key = KEYS[ban.k] }, tables_of(kinds, 8)
      tables.load(log)
      if log.stamp > now then tables.restamp(log, words, ban.p, now) end
      local ms = denied > 0 and is_denied and tables.denied(log, words, ban.p, ban.last, now, denied) or 0
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
