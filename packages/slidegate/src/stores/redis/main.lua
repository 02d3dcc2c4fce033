-- Decides a batch of ops, each on its own, in order: one step, two passes.
--
-- KEYS     one per log of each op
-- ARGV[1]  JSON { sets, runs }
--            set  { log, ... }, a log being { kind, shadow, precision, records, windows, limits }
--            run  `times` ops alike but for their keys: { type, times, sets: which set each part has,
--                 now: the time, where not the server's,
--                 cost, count, lease (consume, peek), units (charge), units, at, charged (refund) }
-- Reply    integers: first the server's time (0 where no op asked for it), then per op:
--            consume, peek  instant, admitted, then per limit: units used before; milliseconds until the
--                           cost fits once more (-1: never); milliseconds until all is free
--            refund         instant, then per log: units returned
--            charge         instant
--            reset          nothing
--            an op whose state cannot be read: -1 and the reason as text; nothing of it is written
--          An instant is given as milliseconds after the clock that counts for the op.

local input = cjson.decode(ARGV[1])
local sets, runs = input[1], input[2]
local reply, filled, keys_read = { 0 }, 1, 0
local apply_generally

for r = 1, #runs do
  local run = runs[r]
  local clock = run.now
  if not clock then
    if reply[1] == 0 then
      local time = call_redis('TIME')
      reply[1] = time[1] * 1000 + (time[2] - time[2] % 1000) / 1000
    end
    clock = reply[1]
  end

  local set = sets[run.sets[1]]
  local params = set[1]
  local is_alone = run.type == 'consume' and #run.sets == 1 and #set == 1
    and params.kind == 'w' and not params.shadow and not run.lease
  local longest = 0
  for i = 1, is_alone and #params.windows or 0 do
    longest = math.max(longest, params.windows[i])
  end

  for _ = 1, run.times do
    local filled_alone = is_alone
      and decide_alone(KEYS[keys_read + 1], params, longest, clock, run, reply, filled)
    if filled_alone then
      filled, keys_read = filled_alone, keys_read + 1
    else
      apply_generally = apply_generally or general_driver(sets, reply)
      filled, keys_read = apply_generally(run, clock, filled, keys_read)
    end
  end
end
return reply
