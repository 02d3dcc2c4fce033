-- Decides a batch of ops, each on its own, in order: one step, two passes.
--
-- KEYS   one per log of each op; behind those of a part that of its override, if it may have one, and to write one that of
--        its index too; at the end that of the receipt, if any
-- ARGV   of a call that may be sent twice: 'once', its number of 16 digits, which rises with each call of its receipt's
--        key. Then runs of ops that differ in little but their keys, one behind the other. The time is the server's where
--        it is given as -1.
--          usual ops, which are requests against packed windows, token buckets, fixed windows and sliding counters:
--            time, per log its numbers: see usual.lua; of keys that may have overrides as JSON per log { names, most } of
--            its limits;
--            groups, { ops, cost, requests per op } per group; left out at the end where that is a single request
--            of cost 1 for each key
--          any others:
--            time, 0, JSON { type, sets: per part its logs { kind, shadow, entries,
--            role, names and most of each limit where there may be an override, and what else is in LogParams }, and what
--            else is in the op; overridable: per part whether it may have one; isLook: it writes nothing; isDenialKept:
--            a denial writes something; hasId }, ops, then per op its id, where it has one
-- Reply  integers, and perhaps some zeros behind them: first the server's time (0 where no op asked for it), then per op:
--          consume, peek  requests admitted, then per limit: units used before; milliseconds until the
--                         cost fits once more (-1: never); milliseconds until all is free. Before the first limit
--                         of a log of which it may take other than its cost: units that it takes of it
--          refund         per log: units returned
--          charge         0
--          extend, release  1 where it was still held, else 0
--          list           0, then per log: JSON of its entries, oldest first: name, units and time of each, as text
--          settle         1, then per log: units returned; or 0 where it was settled before
--          explain        as peek; then per limit: how many times follow, and these, and where charges are asked for and its
--                         kind keeps them, how many of them follow, and of each the milliseconds since, and its units; then per
--                         log of bans: level, denials, milliseconds for which it blocks
--          override       1 if anything was in force before, else 0
--          overrides      0, then JSON: see override.lua
--          reset          nothing
--        before which may stand, in place of an op's first integer:
--          -1, reason     its state cannot be read; nothing of it is written, and nothing more follows
--          -2, instant    milliseconds after the clock that count for this op, where not 0
--          -3, instant    the same of a request that was admitted then and comes again, mostly below 0; in place of the
--                         number of requests follow the units that it was charged
--          -4, ms         the denial has blocked a key for so long
--          -5, ms...      keys were blocked before: per log of bans for how long, 0 where it is not
--          -6, ...        overrides are in force: per part that may have one its rule, and the milliseconds until that and
--                         the block end. Only of consume, peek and explain
--        A call that was executed before is answered as it was then. One whose number is below the last is not
--        executed: -1, and nothing else.
--
-- A receipt is one string: the number of the call and its reply, as MessagePack. It is written last, where anything
-- may have been charged, returned or reset.

-- Room for the usual answer to a lone op, so that the table need not grow.
local reply, filled, keys_read = { 0, 0, 0, 0, 0 }, 1, 0
local KEYS, ARGV = KEYS, ARGV
local apply_generally, usual_run
-- The functions that decide usual ops, by the number of their kind. And, from LATER on, by the last place of the numbers
-- before theirs.
local kinds = { false, false, false, false }

local RECEIPT_TTL = '600000'
local STALE = -1
local RECEIPT_NUMBER = '^%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d$'

local at, arguments, keys = 1, #ARGV, #KEYS
local receipt, number
-- Whether the call could be decided again and nobody would be charged twice; asked only where it has a receipt.
local is_repeatable = false
if ARGV[1] == 'once' then
  receipt, number = KEYS[keys], ARGV[2]
  local last = pcall_redis('GETRANGE', receipt, '0', '15')
  if last == number then return cmsgpack.unpack(call_redis('GETRANGE', receipt, '16', '-1')) end
  -- What is no receipt is written over.
  if type(last) == 'string' and last > number and string.find(last, RECEIPT_NUMBER) then return { STALE } end
  at, keys, is_repeatable = 3, keys - 1, true
end
while at < arguments do
  -- Arithmetic makes numbers of text, at half of what tonumber takes.
  local clock = ARGV[at] + 0
  local is_clock_given = clock >= 0
  if not is_clock_given then
    if reply[1] == 0 then
      local time = call_redis('TIME')
      local microseconds = time[2] + 0
      reply[1] = time[1] * 1000 + (microseconds - microseconds % 1000) / 1000
    end
    clock = reply[1]
  end
  if ARGV[at + 1] == '0' then
    if not apply_generally then apply_generally, usual_run = general_driver(reply) end
    local run, ops = cjson.decode(ARGV[at + 2]), ARGV[at + 3] + 0
    at = at + 4
    for _ = 1, ops do
      if run.hasId then
        run.id = ARGV[at]
        at = at + 1
      end
      local first = filled + 1
      filled, keys_read = apply_generally(run, clock, is_clock_given, filled, keys_read)
      if is_repeatable and not run.isLook then
        -- A plain denial; or one by a ban that was in force.
        is_repeatable = run.type == 'consume'
          and (reply[first] == 0 and not run.isDenialKept or reply[first] == -5)
      end
    end
  else
    local words = { ARGV[at + 1] + 0, ARGV[at + 2] + 0, ARGV[at + 3] + 0, ARGV[at + 4] + 0, ARGV[at + 5] + 0 }
    local first_code, log, read, keys_per_op = words[1], 1, 5, 0
    local log_code = first_code
    local codes, decide, is_overridable, names, override_place
    at = at + 1
    repeat
      local kind, log_end, is_more = log_code, log + 4, false
      if log_code >= SHADOW then
        kind, log_end = log_code % SHADOW, log_end + 2 * ((log_code % PER_PART - log_code % PER_LIMIT) / PER_LIMIT)
        is_more, is_overridable = log_code % OVERRIDABLE >= MORE, log_code % PER_LIMIT >= OVERRIDABLE
        for i = read + 1, is_more and log_end + 5 or log_end do words[i] = ARGV[at + i - 1] + 0 end
        codes = codes or {}
      end
      if codes then codes[log] = log_code end
      words[log] = log_code % MORE >= SHADOW and -log_end or log_end
      if not kinds[kind] then
        -- luacheck: push ignore 431
        --- kinds
        -- luacheck: pop
      end
      if decide then kinds[LATER + log - 1] = kinds[kind] else decide = kinds[kind] end
      keys_per_op, log, read = keys_per_op + 1, log_end + 1, log_end + 5
      log_code = words[log]
    until not is_more
    at = at + log - 1
    if is_overridable then
      keys_per_op = keys_per_op + 1
      override_place = keys_per_op
      names = ARGV[at]
      at = at + 1
    end
    local groups, ops = 1, keys / keys_per_op
    local cost, wanted = 1, 1
    if at <= arguments then
      groups = ARGV[at] + 0
      at = at + 1
    end
    for _ = 1, groups do
      if at <= arguments then
        ops, cost, wanted = ARGV[at] + 0, ARGV[at + 1] + 0, ARGV[at + 2] + 0
        at = at + 3
      end
      local run
      for _ = 1, ops do
        local start, admitted, now_filled = filled, nil, nil
        -- One that is overridden, or whose override cannot be read, goes the general way.
        if not (is_overridable and pcall_redis('GET', KEYS[keys_read + override_place])) then
          admitted, now_filled = decide(
            words, 1, keys_read + 1, start + 2, wanted, clock, cost, wanted, reply, kinds, is_clock_given
          )
        end
        if admitted then
          reply[start + 1], filled, keys_read = admitted, now_filled, keys_read + keys_per_op
        else
          if not apply_generally then apply_generally, usual_run = general_driver(reply) end
          run = run or usual_run(codes or { first_code }, words, cost, wanted, names)
          filled, keys_read = apply_generally(run, clock, is_clock_given, start, keys_read)
        end
        -- Anything but a plain denial.
        if is_repeatable and reply[start + 1] ~= 0 then is_repeatable = false end
      end
    end
  end
end
-- What was decided stands, also where there is no room for a receipt.
if receipt and not is_repeatable then
  pcall_redis('SET', receipt, number .. cmsgpack.pack(reply), 'PX', RECEIPT_TTL)
end
return reply
