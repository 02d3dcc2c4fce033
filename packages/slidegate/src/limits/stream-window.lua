-- The twin of entry-window.ts for logs that other programs can follow: a stream of charges and running totals.
--
-- Words (numbers that the process sends): the window, then the limits.
-- Answer: as in packed-window.lua.
-- Stored: one stream, see docs/state.md. The units used are the newest total minus the total before the first entry that counts.
-- TTL: the window plus slack, renewed by some charges and whenever the stream is replaced.
-- Invariants: ids and totals rise from entry to entry within the window that ends with the newest entry. Totals restart at 0
-- when nothing counts, or before they exceed MAX_STREAM_TOTAL.
-- Work: a decision reads two entries, and a few more to compute a wait. A charge removes entries that left the window, in whole
-- nodes of the stream. A log keeps about MAX_STREAM entries. Further charges push out the oldest ones, which doesn't affect any
-- limit. A refund of any entry except the newest rewrites all entries that count, which takes 7 ms per 1,000.
-- Followers: XREAD returns each admission once, in order. A refunded entry vanishes, and later totals are lowered; ids don't
-- change. If the clock was set back by more than a second, the stream is replaced by the entries that count, with lower ids. A
-- consumer group lasts until the stream is replaced, or has been empty for its TTL.

local MAX_STREAM = 10000
local MAX_STREAM_TEXT = '10000'
-- The number of entries that a refund may rewrite is the limit, clamped to this range.
local MIN_REFUND_ENTRIES = 128
local MAX_REFUND_ENTRIES = 1024
local MAX_STREAM_TOTAL = 2 ^ 52
local MAX_STREAM_STAMP = 2 ^ 47
local LAST_STREAM_ID = '18446744073709551615-18446744073709551615'
-- For a search: the entries read per step, the guesses before it bisects, and the maximum number of reads.
local STREAM_BATCH = 12
local STREAM_BATCH_TEXT = '12'
local STREAM_GUESSES = 6
local STREAM_READS = 50

local NO_STREAM = 'not a log of entries'
local DAMAGED_STREAM = 'a damaged stream'

--- shared
-- Returns the stamp, units and total of an entry, or nil if this script didn't write the entry.
local function read_entry(raw)
  local fields = raw[2]
  local stamp, units, total = tonumber((string.match(raw[1], '^%d+'))), tonumber(fields[4]), tonumber(fields[6])
  if fields[1] ~= 'id' or fields[3] ~= 'cost' or fields[5] ~= 'total' or #fields ~= 6 or not units or not total then
    return nil
  end
  if stamp > MAX_STREAM_STAMP or total > MAX_STREAM_TOTAL then return nil end
  if not (units >= 1 and units <= total and units % 1 == 0 and total % 1 == 0) then return nil end
  return stamp, units, total
end

-- Returns the entries later than `cut`, as Redis returns them.
local function entries_after(key, cut, ...)
  return call_redis('XRANGE', key, string.format('%d', math.max(0, cut + 1)), '+', ...)
end

--- before
-- Returns when the running total reached `wanted`. `low` is the time of the first entry that counts, and `below` the
-- total before it. `high` and `above` are the time and total of the newest entry.
local function time_of(key, wanted, low, below, high, above)
  low = low - 1
  local newest, guesses = high, 0
  while high - low > 1 and guesses < STREAM_READS do
    local middle = math.floor((low + high) / 2)
    if guesses < STREAM_GUESSES then
      -- Starts slightly too early, because the next entries are read as well.
      local share = (wanted - below - STREAM_BATCH / 3) / (above - below)
      middle = math.max(low + 1, math.min(high - 1, low + math.floor((high - low) * share)))
    end
    guesses = guesses + 1
    for i, raw in ipairs(entries_after(key, middle, 'COUNT', STREAM_BATCH_TEXT)) do
      local stamp, units, total = read_entry(raw)
      -- If the log is damaged, reports the time until the limit is unused. It is too late to fail: other logs may be charged.
      if not stamp then return newest end
      if i == 1 and total - units >= wanted then
        high, above = middle, total - units
        break
      end
      if total >= wanted then return stamp end
      low, below = math.max(low, stamp - 1), total - units
    end
  end
  return high
end

--- read
local newest = pcall_redis('XREVRANGE', key, '+', '-', 'COUNT', '1')
if newest.err then return nil, newest.err end
local stamp, total, _ = 0, 0, nil
if newest[1] then
  stamp, _, total = read_entry(newest[1])
  if not stamp then return nil, NO_STREAM end
end
--- load
local window, is_ahead = words[p + 1], false
local cut = now - window
if stamp > now then
  if stamp <= clock + MAX_AHEAD then return nil, stamp end
  -- Entries that counted at the newest stamp count as if they were charged now.
  cut, is_ahead = stamp - window, true
end
--- check
-- The first entry that counts, and the total before it.
local live, first, first_total, base = 0, nil, nil, nil
if total > 0 and stamp > cut then
  local units
  first, units, first_total = read_entry(entries_after(key, cut, 'COUNT', '1')[1])
  if not first or first_total > total then return nil, DAMAGED_STREAM end
  base = first_total - units
  live = total - base
end
for i = p + 2, last do
  reply[answer] = live
  local free = words[i] - live
  if free < cost * fitting then fitting = free < cost and 0 or (free - free % cost) / cost end
  answer = answer + 1
end
--- up
local units = math.min(cost * mine, MAX_STREAM)
if mine < wanted then
  for i = p + 2, last do
    local limit, retry, reset = words[i], 0, window
    if units == 0 and not is_ahead then reset = total > 0 and stamp + window > now and stamp + window - now or 0 end
    if mine < asked and live + units + cost > limit then
      if op and op.bans and not is_shadow then op.denied[k] = true end
      local needed = total + cost - limit
      if cost > limit then
        retry = NEVER
      elseif is_ahead or not first then
        retry = window
      elseif needed <= first_total then
        -- Usually, only the oldest entry must leave the window.
        retry = first + window - now
      else
        retry = time_of(key, needed, first, base, stamp, total) + window - now
      end
    end
    reply[place + i - p - 2], reply[filled + 1], reply[filled + 2] = -1 - live, retry, reset
    filled = filled + 2
  end
end
if units > 0 or is_ahead and not is_look then
  local is_rewritten = is_ahead or live > 0 and total + units > MAX_STREAM_TOTAL
  local id = string.format('%d', now) .. '-*'
  if is_rewritten then
    tables_of(kinds, 6).rewrite(key, cut, base, is_ahead and id)
    total = live
  end
  if units > 0 then
    local trimming, how, threshold = 'MINID', '~', string.format('%d', math.max(0, now - window + 1))
    -- Each entry has at least one unit, so there are never more entries than units.
    if live + units > MAX_STREAM then trimming, how, threshold = 'MAXLEN', '=', MAX_STREAM_TEXT end
    local entry = {
      'XADD', key, trimming, how, threshold, id, 'id', op and op.id or '',
      'cost', string.format('%d', units), 'total', string.format('%d', (live > 0 and total or 0) + units),
    }
    local added = pcall_redis(unpack(entry))
    if type(added) == 'table' then
      -- The stream's last id belongs to a removed entry and is later than now.
      if string.find(added.err, 'equal or smaller', 1, true) then
        tables_of(kinds, 6).rewrite(key, now - window, 0)
        is_rewritten = true
      end
      call_redis(unpack(entry))
    end
  end
  -- The first charge in each period renews the TTL. A period is a second shorter than the slack. With the `clock`
  -- option, every charge renews the TTL.
  local part = window < 20000 and 4000 or window / 4 - 1000
  if is_rewritten or clock ~= reply[1] or now - now % part > stamp then
    call_redis('PEXPIRE', key, (ttl_of(window, clock ~= reply[1])))
  end
end
--- tables
local stream_window = {}

function stream_window.load(log)
  local key = log.key
  --- read
  log.stamp, log.total, log.newest = stamp, total, newest[1] and newest[1][1]
end

-- Rewrites the stream, and keeps only this script's entries later than `cut`. If `id` is given, all
-- entries get it; otherwise, they keep their ids. Lowers the totals by `lower`, and the totals after a removed entry also
-- by its units. The first command is a write that changes nothing, so that Redis can reject it if memory is full. Later
-- commands couldn't be rejected.
function stream_window.rewrite(key, cut, lower, id, removed)
  local entries = entries_after(key, cut)
  call_redis('XSETID', key, LAST_STREAM_ID)
  call_redis('DEL', key)
  for _, raw in ipairs(entries) do
    local stamp, units, total = read_entry(raw)
    if raw[1] == removed then
      lower = lower + units
    elseif stamp then
      local fields = raw[2]
      fields[6] = string.format('%d', total - lower)
      call_redis('XADD', key, id or raw[1], unpack(fields))
    end
  end
end

function stream_window.refund(log, words, p, now, at_ms, units, entry, is_clock_given)
  local key, window = log.key, words[p + 1]
  local gone = log.stamp - window
  if at_ms <= math.max(now - window, gone) then return 0 end
  local at, id = string.format('%d', at_ms), nil
  for _, raw in ipairs(call_redis('XRANGE', key, at, at)) do
    local _, charged = read_entry(raw)
    if charged == units and raw[2][2] == entry then id = id or raw[1] end
  end
  if not id then return 0 end
  -- Entries that left the window must not count again if an older entry becomes the newest.
  call_redis('XTRIM', key, 'MINID', '=', string.format('%d', math.max(0, gone + 1)))
  local most = math.min(MAX_REFUND_ENTRIES, math.max(MIN_REFUND_ENTRIES, unpack(words, p + 2, log.last)))
  if id == log.newest then
    call_redis('XDEL', key, id)
    if call_redis('XLEN', key) == 0 then call_redis('DEL', key) end
  elseif call_redis('XLEN', key) <= most then
    stream_window.rewrite(key, gone, 0, nil, id)
    call_redis('PEXPIRE', key, (ttl_of(window, is_clock_given)))
  else
    return 0
  end
  return units
end

-- Returns the stamp and units of each charge that counts, oldest first. Lists up to `most` of the newest charges.
function stream_window.charges(log, words, p, _, now, most)
  local charges, cut = {}, math.max(log.stamp, now) - words[p + 1]
  local first, count = string.format('%d', math.max(0, cut + 1)), string.format('%d', most)
  local newest = call_redis('XREVRANGE', log.key, '+', first, 'COUNT', count)
  for i = #newest, 1, -1 do
    local stamp, units = read_entry(newest[i])
    if not stamp then error({ unusable = DAMAGED_STREAM }) end
    charges[#charges + 1], charges[#charges + 2] = log.stamp > now and now or stamp, units
  end
  return charges
end

function stream_window.list(log, words, p, now)
  local flat, last, at = {}, 0, log.stamp > now and string.format('%d', now)
  for _, entry in ipairs(entries_after(log.key, math.max(log.stamp, now) - words[p + 1])) do
    -- The numbers aren't converted, because conversions would take most of the time.
    local fields = entry[2]
    if fields[3] == 'cost' and fields[6] and string.find(fields[4], '^[1-9]%d*$') then
      flat[last + 1], flat[last + 2], flat[last + 3] = fields[2], fields[4], at or string.match(entry[1], '^%d+')
      last = last + 3
    end
  end
  return flat
end
