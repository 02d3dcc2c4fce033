-- Decides the ops in a batch one after the other. For how an op checks and then charges its logs, see consume.lua.
--
-- KEYS   per op: one key per log, then the override's key for each part that may have one. If the op writes
--        overrides, each of these is followed by the key of its index. The last key is the receipt's, if there is one.
-- ARGV   if the call may be sent twice: its number, as 17 digits. Each call has a higher number than earlier calls with
--        the same receipt key. A letter after the digits means that the receipt's TTL must be renewed. Then the ops, in
--        runs whose ops differ only in keys, ids, cost and count. Per run:
--        - options: -1 times the sum of the option constants below. Omitted for a plain consume that uses the server's
--          time
--        - time: with CLOCK
--        - per log: a code, and the numbers ("words") that its kind defines. The code is the sum of the kind's number,
--          SHADOW for a shadow limit's log, MORE if another log follows, and PER_WORD times the number of words. The
--          code of the first log also includes PER_OVERRIDE times the number of parts that may have an override.
--        - names: the names of the limits, if a part may have an override (see override.lua)
--        - with LEASE: the lease in milliseconds. With RESERVATION_NAME: the reservation's name. With CHARGES: the
--          maximum number of charges to list. With HOLD: 1 to renew the entry with the op's id, or 0 to release it.
--          With RARE: the operation's JSON (see rare.lua).
--        - the number of groups, then per group: the number of its ops, the cost of a request, the requests per op and,
--          with IDS, the id of each op. Omitted if there is only one run, and each of its ops is a single request of
--          cost 1.
-- Reply  integers, possibly followed by zeros. The first is the server's time, or NO_TIME if no op needed it.
--          Then, per op: the requests admitted (0 for a charge), and the answer of each log (see the .lua file of its
--          kind). Then the times that some kinds report, starting with the last log's times. With EXPLAIN, the reply of
--          explain.lua follows. With HOLD, the op's whole reply is 1 if its units were held, otherwise 0.
--          These can precede an op's reply:
--            text                 the first line of each part's override, if any part has one (see override.lua).
--            UNREADABLE, reason   the op's state can't be read. Nothing is written for the op, and its reply ends here.
--            AHEAD, ms            the op was decided as if the clock were this far ahead.
--          If an op repeats a request, or if a key is banned, its first integer is EXTRAS minus the requests admitted.
--          Then these follow the times: the time of the repeated request minus the current time, and the units charged
--          for it, or two zeros. The milliseconds for which the op blocked a key, or 0. Per log of bans: for how many
--          milliseconds the key was already blocked.
--        A call that was already executed gets the same reply. A call with a lower number than the last one isn't
--        executed: its reply is just STALE.
--
-- A receipt is one string: the call's number, its reply as MessagePack, and perhaps leftovers from a longer receipt. It is
-- written last, and only if anything may have been charged, refunded or reset.

local SHADOW = 16
local MORE = 32
local PER_WORD = 64
local PER_OVERRIDE = 65536
local LOOK = 1
local FORCED = 2
local WAITING = 4
local MAY_REPEAT = 8
local IDS = 16
local LEASE = 32
local RESERVATION_NAME = 64
local EXPLAIN = 128
local CHARGES = 256
local HOLD = 512
local RARE = 1024
local CLOCK = 2048
-- With HOLD, 0 releases an entry, and RENEWED renews it.
local RENEWED = 1
local UNREADABLE = -1
local AHEAD = -2
local EXTRAS = -10
local STALE = -1
local NO_TIME = -2
local RECEIPT_TTL = '600000'
local RECEIPT_NUMBER = '^%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d$'
-- The number of digits in a call's number. A timestamp has fewer, so it isn't mistaken for one.
local NUMBER_SIZE = 17
local NUMBER_TEXT = '17'
local LAST_OF_NUMBER = '16'

-- Allocates room for the usual answer to a single op, so that the table doesn't grow.
local reply, filled, k = { NO_TIME, 0, 0 }, 1, 1
local KEYS, ARGV = KEYS, ARGV
-- The functions that decide logs, by the number of their kind. Those for an op's second and later logs are also at LATER
-- plus the last place of the previous log's words. Small logs that were read in advance are here, too, by key.
local kinds = { false, false, false, false, false, false, false, false }

-- Returns a kind's functions for rare operations. Declares its own locals, because captured variables cost time.
local function tables_of(kinds, kind)
  local made = kinds[-kind]
  if not made then
    local call_redis, pcall_redis, struct_pack, struct_unpack = redis.call, redis.pcall, struct.pack, struct.unpack
    --- tables
    kinds[-kind] = made
  end
  return made
end

local at, arguments, keys = 1, #ARGV, #KEYS
local receipt, number, last_number
-- Whether the call can be decided again without charging anything twice.
local is_repeatable = true
local rare, in_force
local size_of_number = arguments > 0 and #ARGV[1] or 0
if size_of_number >= NUMBER_SIZE then
  receipt, number = KEYS[keys], ARGV[1]
  if size_of_number > NUMBER_SIZE then number = string.sub(number, 1, NUMBER_SIZE) end
  last_number = pcall_redis('GETRANGE', receipt, '0', LAST_OF_NUMBER)
  if last_number == number then
    local _, answer = cmsgpack.unpack_one(call_redis('GETRANGE', receipt, NUMBER_TEXT, '-1'))
    return answer
  end
  -- Anything that isn't a receipt is overwritten.
  if last_number.err then
    last_number = ''
  elseif last_number > number then
    if string.find(last_number, RECEIPT_NUMBER) then return { STALE } end
    last_number = ''
  end
  at, keys = 2, keys - 1
end
while at <= arguments do
  -- Arithmetic converts text to numbers in half the time that tonumber takes.
  local code, options, clock = ARGV[at] + 0, 0, nil
  at = at + 1
  if code < 0 then
    options = -code
    if options >= CLOCK then options, clock, at = options - CLOCK, ARGV[at] + 0, at + 1 end
    code, at = ARGV[at] + 0, at + 1
  end
  if not clock then
    if reply[1] == NO_TIME then
      local time = call_redis('TIME')
      local microseconds = time[2] + 0
      reply[1] = time[1] * 1000 + (microseconds - microseconds % 1000) / 1000
    end
    clock = reply[1]
  end
  local overridable = 0
  if code >= PER_OVERRIDE then
    overridable, code = (code - code % PER_OVERRIDE) / PER_OVERRIDE, code % PER_OVERRIDE
  end
  local words, codes, log, logs, decide, kind = { 0, 0, 0, 0, 0, 0, 0, 0 }, nil, 1, 0, nil, nil
  while code > 0 do
    local last = log + (code - code % PER_WORD) / PER_WORD
    local is_more = code % PER_WORD >= MORE
    kind = code % SHADOW
    for i = log + 1, last do
      words[i], at = ARGV[at] + 0, at + 1
    end
    words[log] = code % MORE >= SHADOW and -last or last
    if not kinds[kind] then
      --- kinds
    end
    if decide then kinds[LATER + log - 1] = kinds[kind] else decide = kinds[kind] end
    logs = logs + 1
    if options > 0 then
      codes = codes or {}
      codes[logs] = { kind = kind, p = log }
    end
    log, code = last + 1, 0
    if is_more then code, at = ARGV[at] + 0, at + 1 end
  end
  decide = decide or function(_, _, _, place, admitted)
    return admitted, place - 1
  end
  if kinds[LATER + log - 1] then kinds[LATER + log - 1] = nil end

  local op, names, run, known
  if overridable > 0 then names, at = ARGV[at], at + 1 end
  if options > 0 or kinds[8] then
    op = { lease_ms = 0 }
  end
  if options > 0 then
    op.is_look, op.is_forced = options % (2 * LOOK) >= LOOK, options % (2 * FORCED) >= FORCED
    op.is_waiting, op.may_repeat = options % (2 * WAITING) >= WAITING, options % (2 * MAY_REPEAT) >= MAY_REPEAT
    op.has_ids, op.is_explained = options % (2 * IDS) >= IDS, options % (2 * EXPLAIN) >= EXPLAIN
    if options % (2 * LEASE) >= LEASE then op.lease_ms, at = ARGV[at] + 0, at + 1 end
    if options % (2 * RESERVATION_NAME) >= RESERVATION_NAME then op.reservation, at = ARGV[at], at + 1 end
    if options % (2 * CHARGES) >= CHARGES then op.charges, at = ARGV[at] + 0, at + 1 end
    if options % (2 * HOLD) >= HOLD then op.hold, at = ARGV[at] + 0, at + 1 end
    if options >= RARE then run, at = cjson.decode(ARGV[at]), at + 1 end
  end
  -- The number of overrides that each op reads. Ops that list or change overrides have other keys.
  local read = run and (run.keys or run.isUnread) and 0 or overridable
  local groups, ops, cost, wanted = 1, keys / (logs + overridable), 1, 1
  local is_all = at > arguments
  if not is_all then groups, at = ARGV[at] + 0, at + 1 end
  for _ = 1, groups do
    if not is_all then
      ops, cost, wanted = ARGV[at] + 0, ARGV[at + 1] + 0, ARGV[at + 2] + 0
      at = at + 3
    end
    -- If each op has just one small log, these logs are read with one command.
    if ops > 1 and logs == 1 and kind > 1 and kind < 5 and not op and overridable == 0 then
      local found = call_redis('MGET', unpack(KEYS, k, k + ops - 1))
      for i = 1, ops do kinds[KEYS[k + i - 1]] = found[i] end
    end
    for _ = 1, ops do
      local all, done, stored, damage
      for i = 1, read do
        local raw = pcall_redis('GET', KEYS[k + logs + i - 1])
        if raw or stored then
          raw = raw or NOTHING
          local size = not raw.err and string.find(raw, '\n', 1, true)
          if not size then damage, raw, size = raw.err or NO_OVERRIDE, '', 0 end
          if size < #raw then raw = string.sub(raw, 1, size) end
          if i > 1 then raw = (stored or string.rep(NOTHING, i - 1)) .. raw end
          stored = raw
        end
      end
      -- Nearly every op ends here. The code below handles the exceptions.
      if not (op or stored) then
        all, done = decide(words, 1, k, filled + 2, wanted, clock, clock, cost, wanted, reply, kinds)
      end
      if all then
        reply[filled + 1], filled, k = all, done, k + logs + overridable
        if all > 0 then is_repeatable = false end
      else
        done = nil
        if op and op.has_ids then op.id, at = ARGV[at], at + 1 end
        local start, first, numbers, now, room = filled, filled + 1, words, clock, wanted
        local is_usual = true
        if stored or run then
          in_force = in_force or
          --- override
        end
        if stored then
          known = known or {}
          numbers = known[stored]
          if not (numbers or damage) then numbers, damage = in_force(stored, words, names, clock) end
          known[stored] = numbers
          if numbers and not run then
            reply[first], first = stored, first + 1
            if numbers.is_blocked then op, room = op or { lease_ms = 0 }, 0 end
          end
          done = damage
        end
        while not (done or run) do
          if op then
            op.again_at, op.is_ban_restamped, op.is_blocked, op.is_held = nil, false, room == 0, 1
            if kinds[8] then op.bans, op.denied = {}, {} end
          end
          all, done = decide(numbers, 1, k, first + 1, room, now, clock, cost, wanted, reply, kinds, op)
          if not all and type(done) == 'number' then
            -- A log's stamp is slightly ahead of the clock, so the op is decided again at that stamp.
            if now == clock then first = first + 2 end
            reply[first - 2], reply[first - 1], now, done = AHEAD, done - clock, done, nil
          end
        end
        if run then
          is_usual = false
        elseif not all then
          reply[filled + 1], reply[filled + 2] = UNREADABLE, done
          filled = filled + 2
        else
          if all > 0 and not (op and op.is_look) then is_repeatable = false end
          reply[first], filled = all, done
          if op and op.hold then
            reply[first], filled, op.is_blocked = op.is_held, first, false
            is_usual, is_repeatable = not op.is_ban_restamped, false
          elseif op then
            if op.is_forced then reply[first], filled, op.is_blocked = 0, first, false end
            is_usual = not (op.is_explained or op.again_at or op.bans and (all < wanted or op.is_ban_restamped))
          end
        end
        if not is_usual then
          rare = rare or (function()
            --- rare
          end)()
          local is_written
          if run then
            filled = rare.apply(run, op, numbers or words, damage, codes, overridable, k, clock, filled)
            is_written = not run.isLook
          else
            filled, is_written = rare.finish(op, numbers, codes, k, all, wanted, now, clock, start, first, filled)
          end
          if is_written then is_repeatable = false end
        end
        k = k + (run and run.keys or logs + overridable)
      end
    end
  end
end
-- Errors are ignored, because the decisions are final even if Redis has no memory for the receipt.
if receipt and not is_repeatable then
  local value = number .. cmsgpack.pack(reply)
  if last_number == '' or size_of_number > NUMBER_SIZE then
    pcall_redis('SET', receipt, value, 'PX', RECEIPT_TTL)
  else
    pcall_redis('SETRANGE', receipt, '0', value)
  end
elseif last_number and last_number ~= '' and size_of_number > NUMBER_SIZE then
  pcall_redis('PEXPIRE', receipt, RECEIPT_TTL)
end
return reply
