-- Runs operations other than decisions; each has its own file. Also finishes decisions with bans, repeated requests or
-- explanations.
--
-- An operation's file defines `ops.<type>(logs, words, run, id, clock, now, filled, k, overridable)`. The `logs` are
-- already loaded; kind 8 is a ban. `log.tables` has the functions below `--- tables` in the kind's file. The function
-- calls `save` after each change, appends its answer to `reply` after the place `filled`, and returns the last place.
--
-- `run` is the operation's JSON: its fields (see its .ts file) and `type`. `isLook` is set if the operation writes nothing;
-- `isUnread` is set if it ignores the stored state. `keys` is the number of its keys, if it has keys other than its logs.

local steps, ops = {}, {}

-- Returns an op's logs. `entries` is the kind of entries that a log keeps: see entry-window.lua.
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

-- Loads a log. If it can't be used, its kind returns the reason, usually after a nil, as in decisions.
local function load_log(log, words)
  local reason, other = log.tables.load(log, words, log.p)
  if reason or other then error({ unusable = reason or other }) end
end

local function save(log, words, clock)
  log.tables.save(log, words, log.p, clock, clock ~= reply[1])
end

-- A Redis error fails the whole batch; a log that can't be used fails only its op.
local function fail(result, filled)
  local reason = type(result) == 'table' and result.unusable
  if type(result) == 'string' and string.find(result, 'data string too short', 1, true) then reason = 'a damaged log' end
  if not reason then error(result, 0) end
  reply[filled + 1], reply[filled + 2] = UNREADABLE, reason
  return filled + 2
end

-- Runs a decision on a single log. Returns the log's answer.
local function decide_one(log, words, now, clock, cost, op)
  local answer = { reply[1] }
  local _, reason = kinds[log.kind](
    words, log.p, log.k, 2, op.requests, now, clock, cost, op.requests, answer, {}, op
  )
  if type(reason) == 'string' then error({ unusable = reason }) end
  return answer
end

-- After the clock was set back: restamps the logs that are ahead of it.
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

-- Refunds a charge if the log still has it. Returns the number of refunded units.
local function return_charge(log, words, now, clock, at_ms, units, id)
  local refund = log.tables.refund
  return refund and refund(log, words, log.p, now, at_ms, units, id, clock ~= reply[1]) or 0
end

-- Returns the function for an operation, which is created on first use.
local function operation(name)
  if not ops[name] then
    --- operations
  end
  return ops[name]
end

-- Runs an operation. Returns the last place in the reply.
function steps.apply(run, op, words, damage, codes, overridable, k, clock, filled)
  local logs, now = logs_of(words, codes, k), clock
  if run.isUnread then return operation(run.type)(logs, words, run, op.id, clock, now, filled) end
  local is_done, result = pcall(function()
    for _, log in ipairs(logs) do load_log(log, words) end
    if damage then error({ unusable = damage }) end
    for _, log in ipairs(logs) do
      if log.stamp > now and log.stamp <= clock + MAX_AHEAD then now = log.stamp end
    end
    local first = filled
    if now > clock then
      reply[filled + 1], reply[filled + 2] = AHEAD, now - clock
      first = filled + 2
    end
    return operation(run.type)(logs, words, run, op.id or '', clock, now, first, k, overridable)
  end)
  return is_done and result or fail(result, filled)
end

-- Finishes a decision with bans, a repeated request or an explanation. Returns the last place in the reply, and whether
-- a ban was written.
function steps.finish(op, words, codes, k, all, wanted, now, clock, start, first, filled)
  local is_again, blocked, is_written, bans = op.again_at and not op.is_blocked, 0, false, op.bans or {}
  local denied = (is_again or op.is_blocked or op.is_waiting or op.is_look) and 0 or wanted - all
  for _, ban in ipairs(bans) do
    local is_denied = false
    for i = ban.k - words[ban.p + 1], ban.k - 1 do is_denied = is_denied or denied > 0 and op.denied[i] end
    if op.is_ban_restamped and not (op.is_look and not op.hold) or is_denied then
      local log, tables = { key = KEYS[ban.k] }, tables_of(kinds, 8)
      tables.load(log)
      tables.restamp(log, now)
      local ms = is_denied and tables.denied(log, words, ban.p, ban.last, now, denied) or 0
      local is_saved, reason_of_redis = pcall(tables.save, log, words, ban.p, clock, clock ~= reply[1])
      -- If Redis is out of memory, the denial still applies, but isn't counted toward a ban.
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
    local is_done, result = pcall(operation('explain'), op, words, codes, k, now, clock, filled)
    return is_done and result or fail(result, start), false
  end
  return filled, is_written
end

return steps
