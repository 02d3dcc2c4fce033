-- The twin of distinct.ts: a HyperLogLog per sub-window, with all values since the sub-window began.
--
-- Words (numbers that the process sends): the length of a sub-window, the limit.
-- Answer: -1 minus the number of values that count. After all answers come the same two durations as in packed-window.lua.
-- Stored: a string and 11 HyperLogLogs, see docs/state.md. A count reads only one sketch, and Redis caches the result.
-- An earlier log's sketch is removed before its place is reused.
-- TTL: the length of all sub-windows plus slack, set for the log and the new sketch when a sub-window begins.
-- Work: adding a value writes 11 sketches, and computing a wait takes up to 10 counts.

local SUB_WINDOWS = 11
local SKETCHES_FORMAT = '>BI6B'
local SKETCHES_SIZE = 8
local LAST_OF_SKETCHES = '8'

local NO_SKETCHES = 'not a distinct sketch of format 1'

--- shared
-- The key of a sub-window's sketch. `place` may be negative.
local function sketch_of(key, place)
  return key .. '~' .. string.format('%d', place % SUB_WINDOWS)
end

--- before
-- Returns the number of values added since a sub-window began. The sub-window is `age` places before the newest one.
-- On failure, returns nil and an error.
local function count_since(key, place, age)
  if age < 0 then return 0 end
  local count = pcall_redis('PFCOUNT', sketch_of(key, place - age))
  if type(count) == 'table' then return nil, count.err end
  -- A damaged sketch can contain any cached count.
  return math.min(count, MAX_UNITS)
end

--- read
local raw = pcall_redis('GETRANGE', key, '0', LAST_OF_SKETCHES)
-- If there is no log, no sub-window counts.
local precision = words[p + 1]
local stamp, turn = -SUB_WINDOWS * precision, 0
if raw ~= '' then
  if #raw ~= SKETCHES_SIZE then return nil, raw.err or NO_SKETCHES end
  local format
  format, stamp, turn = struct_unpack(SKETCHES_FORMAT, raw)
  if format ~= 1 or stamp % precision ~= 0 or turn >= SUB_WINDOWS then return nil, NO_SKETCHES end
end
--- load
local limit, is_restamped = words[p + 2], false
if stamp > now then
  if stamp <= clock + MAX_AHEAD then return nil, stamp end
  stamp, is_restamped = now - now % precision, true
end
--- check
-- The number of sub-windows from the newest stored one to the current one, and the age of the oldest that counts.
local passed = (now - now % precision - stamp) / precision
local oldest_age = SUB_WINDOWS - 1 - passed
local used, damage = count_since(key, turn, oldest_age)
if not used then return nil, damage end
if limit - used < cost * fitting then fitting = limit - used < cost and 0 or math.floor((limit - used) / cost) end
reply[answer], answer = -1 - used, answer + 1
local is_whole = false
if (fitting > 0 or op and op.is_forced) and not (op and op.is_look) then
  -- While a Cluster migrates the slot, some keys may already be on another server. Writing those here would block the migration.
  local all = { key }
  for age = 0, SUB_WINDOWS - 1 do all[age + 2] = sketch_of(key, age) end
  local found = pcall_redis('EXISTS', unpack(all))
  if type(found) == 'table' then return nil, found.err end
  is_whole = found == SUB_WINDOWS + 1
end
--- up
local retry, reset = 0, math.max(0, stamp + SUB_WINDOWS * precision - now)
if mine > 0 then
  reset = now - now % precision + SUB_WINDOWS * precision - now
elseif asked > 0 and used + cost > limit then
  if op and op.bans and not is_shadow then op.denied[k] = true end
  local age = oldest_age - 1
  while cost <= limit and age >= 0 do
    local count, reason = count_since(key, turn, age)
    if not count then return nil, reason end
    if count + cost <= limit then break end
    age = age - 1
  end
  retry = cost > limit and NEVER or stamp + (SUB_WINDOWS - 1 - age) * precision - now
end
reply[filled + 1], reply[filled + 2], filled = retry, reset, filled + 2
if mine > 0 or is_restamped and not is_look then
  local begun, ttl = mine > 0 and passed or 0, ttl_of(SUB_WINDOWS * precision, clock ~= reply[1])
  if mine > 0 then stamp, turn = now - now % precision, (turn + passed) % SUB_WINDOWS end
  if begun > 0 or is_restamped then
    -- This must be the first write, so that Redis can reject it if there is no memory left.
    call_redis('SET', key, struct_pack(SKETCHES_FORMAT, 1, stamp, turn), 'PX', ttl)
  end
  for age = 0, SUB_WINDOWS - 1 do
    local sketch, changed = sketch_of(key, turn - age), 0
    if age < begun then call_redis('DEL', sketch) end
    if mine > 0 then
      changed = pcall_redis('PFADD', sketch, op and op.id or '')
      if type(changed) == 'table' then
        -- A damaged sketch fails only this op; any other error fails the whole batch.
        local _, reason = count_since(key, turn, age)
        if reason then return nil, reason end
        call_redis('PFADD', sketch, op and op.id or '')
      end
    end
    -- If Redis evicted a sketch, PFADD created it again, without a TTL. With the `clock` option, the time left is unknown.
    local is_due = age < begun or is_restamped or not is_whole or clock ~= reply[1]
    if is_due and (changed == 1 or is_restamped) then call_redis('PEXPIRE', sketch, ttl) end
  end
end
--- tables
local distinct_sketch = {}

function distinct_sketch.load(log, words, p)
  local key = log.key
  --- read
  log.stamp, log.turn = stamp, turn
end

-- Also works for a log that wasn't loaded.
function distinct_sketch.reset(log)
  for age = 0, SUB_WINDOWS - 1 do call_redis('DEL', sketch_of(log.key, age)) end
end
