-- The twin of distinct-sketch.ts.
--
-- Reads and writes: one string per log: format (1 byte, 1), start of the newest sub-window (6 bytes, milliseconds), its
-- place from 0 to 10 (1 byte); unsigned, big-endian. And 11 HyperLogLogs, by the log's key, '~' and their place, in turn:
-- one per sub-window, each of all values that were added since it began. So one count is one sketch, and Redis caches
-- it. A sketch of an earlier log is removed before its place is used.
-- TTL: the log's is set as a sub-window begins, a sketch's as it changes: the length of all sub-windows + slack.
-- Work: a value is added to 11 sketches; a wait takes up to 10 counts.

local SUB_WINDOWS = 11
local SKETCHES_FORMAT = '>BI6B'
local SKETCHES_SIZE = 8
-- One byte more than it should have.
local LAST_OF_SKETCHES = '8'

local distinct_sketch = {}

-- The sketch of the sub-window `age` before the newest.
local function sketch_of(log, age)
  return log.key .. '~' .. text_of((log.place - age) % SUB_WINDOWS)
end

-- Sub-windows from the newest one to the current one.
local function passed(log, params, now)
  return (now - now % params.precision - log.stamp) / params.precision
end

-- Age of the oldest sub-window that counts, from the newest one. Below 0 if none counts.
local function oldest_age(log, params, now)
  return SUB_WINDOWS - 1 - passed(log, params, now)
end

-- Values that were added since the sub-window `age` before the newest began.
local function count_since(log, age)
  if age < 0 then return 0 end
  local count = pcall_redis('PFCOUNT', sketch_of(log, age))
  if type(count) == 'table' then error({ unusable = count.err }) end
  -- A damaged sketch may have cached any number.
  return math.min(count, MAX_UNITS)
end

function distinct_sketch.load(log)
  local raw = pcall_redis('GETRANGE', log.key, '0', LAST_OF_SKETCHES)
  if type(raw) ~= 'string' then return raw.err end
  -- Without a log no sub-window counts.
  log.stamp, log.place = -SUB_WINDOWS * log.params.precision, 0
  log.begun, log.restamped, log.added = 0, false, nil
  if raw == '' then return nil end
  if #raw == SKETCHES_SIZE and string.byte(raw) == 1 then
    local _
    _, log.stamp, log.place = struct_unpack(SKETCHES_FORMAT, raw)
    if log.stamp % log.params.precision == 0 and log.place < SUB_WINDOWS then return nil end
  end
  return 'not a distinct sketch of format 1'
end

function distinct_sketch.save(log, _, is_clock_given)
  local ttl = ttl_of(SUB_WINDOWS * log.params.precision, is_clock_given)
  if log.begun > 0 or log.restamped then
    -- First, since it is refused when memory is out.
    call_redis('SET', log.key, struct_pack(SKETCHES_FORMAT, 1, log.stamp, log.place), 'PX', ttl)
  end
  for age = 0, SUB_WINDOWS - 1 do
    local sketch, changed = sketch_of(log, age), 0
    if age < log.begun then call_redis('DEL', sketch) end
    if log.added then
      changed = pcall_redis('PFADD', sketch, log.added)
      if type(changed) == 'table' then
        -- A damaged sketch is the affair of this op, anything else of the whole call.
        count_since(log, age)
        call_redis('PFADD', sketch, log.added)
      end
    end
    if changed == 1 or log.restamped then call_redis('PEXPIRE', sketch, ttl) end
  end
end

-- The log wasn't loaded.
function distinct_sketch.reset(log)
  log.place = 0
  for age = 0, SUB_WINDOWS - 1 do call_redis('DEL', sketch_of(log, age)) end
end

function distinct_sketch.restamp(log, params, now)
  log.stamp, log.restamped = now - now % params.precision, true
end

function distinct_sketch.check(log, params, now, used)
  used[1] = count_since(log, oldest_age(log, params, now))
end

-- While a Cluster moves the slot, keys may be elsewhere. A key written in their place would stop the move.
local function check_keys(log)
  local keys = { log.key }
  for age = 0, SUB_WINDOWS - 1 do keys[#keys + 1] = sketch_of(log, age) end
  local found = pcall_redis('EXISTS', unpack(keys))
  if type(found) == 'table' then error({ unusable = found.err }) end
end

function distinct_sketch.commit(log, params, now, _, _, entry)
  check_keys(log)
  log.begun = passed(log, params, now)
  log.stamp, log.place, log.added = now - now % params.precision, (log.place + log.begun) % SUB_WINDOWS, entry
end

function distinct_sketch.retry_after(log, params, i, now, cost)
  if cost > params.limits[i] then return NEVER end
  local age = oldest_age(log, params, now) - 1
  while age >= 0 and count_since(log, age) + cost > params.limits[i] do age = age - 1 end
  return log.stamp + (SUB_WINDOWS - 1 - age) * params.precision - now
end

function distinct_sketch.reset_after(log, params, _, now)
  return math.max(0, log.stamp + SUB_WINDOWS * params.precision - now)
end

function distinct_sketch.refund()
  return 0
end

function distinct_sketch.list()
  return {}
end

return distinct_sketch
