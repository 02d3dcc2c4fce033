-- The twin of entry-window.ts for logs that other programs can follow.
--
-- Reads and writes: one stream per log. An entry stands at <time of the charge in milliseconds>-<number> and has three
-- fields: `id`, the name of the request; `cost`, its units; `total`, all units up to and with it, as text. Units used
-- are the newest total less the total before the first entry that counts.
-- TTL: renewed by charges now and then, and where the stream is written anew, to the window + slack.
-- Invariants: ids and totals rise from entry to entry among those later than the newest less the window; what is older
-- is gone, removed or not. Totals begin anew where nothing counts any more, or before they pass MAX_STREAM_TOTAL.
-- Work: a decision reads two entries, or some more to tell how long to wait; its charge removes what has left the
-- window, by whole nodes of the stream. No log keeps more than MAX_STREAM entries, and the last node's: a charge that
-- nobody asked for pushes out the oldest, which no limit can tell. A refund of any entry but the newest writes all that
-- counts anew, some 7 ms for each 1,000 entries: as many as the limit lets in, MAX_REFUND_ENTRIES at most.
-- Followers: XREAD shows each admission once, in order. An entry that is returned vanishes, and the totals behind it
-- fall; no id changes. When the clock was set back by more than a second, the stream begins anew with what counts, and
-- its ids fall. A consumer group lasts only until the stream is written anew, or has been empty for its TTL.

local MAX_STREAM = 10000
local MAX_STREAM_TEXT = '10000'
-- Entries that may count when one of them, not the newest, is returned.
local MIN_REFUND_ENTRIES, MAX_REFUND_ENTRIES = 128, 1024
local MAX_STREAM_TOTAL = 2 ^ 52
local MAX_STREAM_STAMP = 2 ^ 47
local LAST_STREAM_ID = '18446744073709551615-18446744073709551615'
-- Entries that a search reads at once, how often it guesses before it halves, and how often it reads at most: more than
-- it takes to halve 366 days.
local STREAM_BATCH = 12
local STREAM_BATCH_TEXT = '12'
local STREAM_GUESSES = 6
local STREAM_READS = 50

local stream_window = {}

-- Stamp, units and total of an entry; nothing where it is none of ours.
local function read_entry(raw)
  local words = raw[2]
  local stamp, units, total = tonumber((string.match(raw[1], '^%d+'))), tonumber(words[4]), tonumber(words[6])
  if words[1] ~= 'id' or words[3] ~= 'cost' or words[5] ~= 'total' or #words ~= 6 or not units or not total then
    return nil
  end
  if stamp > MAX_STREAM_STAMP or total > MAX_STREAM_TOTAL then return nil end
  if not (units >= 1 and units <= total and units % 1 == 0 and total % 1 == 0) then return nil end
  return stamp, units, total
end

-- The entries later than `cut`, as Redis has them.
local function entries_after(log, cut, ...)
  return call_redis('XRANGE', log.key, text_of(math.max(0, cut + 1)), '+', ...)
end

-- The same without what is none of ours, and the units and total of each.
local function readable_after(log, cut)
  local entries = {}
  for _, raw in ipairs(entries_after(log, cut)) do
    local stamp, units, total = read_entry(raw)
    if stamp then entries[#entries + 1] = { raw[1], raw[2], stamp = stamp, units = units, total = total } end
  end
  return entries
end

function stream_window.load(log)
  local raw = pcall_redis('XREVRANGE', log.key, '+', '-', 'COUNT', '1')
  if raw.err then return raw.err end
  log.stamp, log.total, log.newest, log.live, log.first = 0, 0, nil, nil, nil
  log.is_restamped, log.rewritten, log.added, log.removed, log.before = false, nil, nil, nil, 0
  if raw[1] then
    local stamp, _, total = read_entry(raw[1])
    if not stamp then return 'not a log of entries' end
    log.newest, log.stamp, log.total, log.before = raw[1][1], stamp, total, stamp
  end
  return nil
end

-- There is no way back to a lower id but by removing all; and a script that has removed something may write on when
-- Redis is out of memory. So what is written first changes nothing that stays.
local function rewrite(log, entries)
  local key = log.key
  call_redis('XSETID', key, LAST_STREAM_ID)
  call_redis('DEL', key)
  for i = 1, #entries do
    local id, words = entries[i][1], entries[i][2]
    call_redis('XADD', key, id, 'id', words[2], 'cost', words[4], 'total', words[6])
  end
end

local function append(log)
  local cut = log.stamp - log.params.windows[1]
  local trimming, how, threshold = 'MINID', '~', text_of(math.max(0, cut + 1))
  -- Where there may be more entries than are kept: each has a unit at least.
  if log.live > MAX_STREAM then trimming, how, threshold = 'MAXLEN', '=', MAX_STREAM_TEXT end
  local words = {
    'XADD', log.key, trimming, how, threshold, text_of(log.stamp) .. '-*',
    'id', log.added, 'cost', text_of(log.units), 'total', text_of(log.total),
  }
  local answer = pcall_redis(unpack(words))
  if type(answer) ~= 'table' then return end
  -- The last id is that of an entry that was removed, and later than now.
  if string.find(answer.err, 'equal or smaller', 1, true) then
    log.rewritten = readable_after(log, cut)
    rewrite(log, log.rewritten)
  end
  call_redis(unpack(words))
end

function stream_window.save(log, _, is_clock_given)
  if log.removed then
    call_redis('XDEL', log.key, log.removed)
    if call_redis('XLEN', log.key) == 0 then call_redis('DEL', log.key) end
    return
  end
  if log.rewritten then rewrite(log, log.rewritten) end
  if log.added then append(log) end
  local window = log.params.windows[1]
  if log.rewritten or needs_ttl(log.before, log.stamp, window, is_clock_given) then
    call_redis('PEXPIRE', log.key, ttl_of(window, is_clock_given))
  end
end

-- What counted as of the newest stamp counts from now on; the rest is forgotten.
function stream_window.restamp(log, params, now)
  local entries, total, id = readable_after(log, log.stamp - params.windows[1]), 0, text_of(now) .. '-*'
  for _, entry in ipairs(entries) do
    total = total + entry.units
    entry[1], entry[2][6], entry.stamp = id, text_of(total), now
  end
  log.rewritten, log.is_restamped = entries, true
  log.stamp, log.total, log.live = now, total, total
end

-- Units that count; and where the first of them stands, with the total before it.
local function live_in(log, params, now)
  local cut = now - params.windows[1]
  if log.total == 0 or log.stamp <= cut then return 0 end
  if log.is_restamped then return log.total end
  local stamp, units, total = read_entry(entries_after(log, cut, 'COUNT', '1')[1])
  if not stamp or total > log.total then error({ unusable = 'a damaged stream' }) end
  log.first, log.first_total, log.base = stamp, total, total - units
  return log.total - log.base
end

function stream_window.check(log, params, now, used)
  log.live = live_in(log, params, now)
  for i = 1, #params.limits do used[i] = log.live end
end

function stream_window.commit(log, params, now, units, _, entry)
  log.live = log.live or live_in(log, params, now)
  units = math.min(units, MAX_STREAM)
  if log.live == 0 then
    log.total = 0
  elseif log.total + units > MAX_STREAM_TOTAL then
    log.rewritten = readable_after(log, now - params.windows[1])
    for _, each in ipairs(log.rewritten) do each[2][6] = text_of(each.total - log.base) end
    log.total, log.base, log.first_total = log.live, 0, log.first_total - log.base
  end
  log.added, log.units, log.stamp = entry or '', units, now
  log.total, log.live = log.total + units, log.live + units
end

-- The time by which so many units had been charged. By `low` fewer had, by `high` as many or more.
local function time_of(log, wanted)
  local low, below, high, above, guesses = log.first - 1, log.base, log.stamp, log.total, 0
  while high - low > 1 and guesses < STREAM_READS do
    local middle = math.floor((low + high) / 2)
    if guesses < STREAM_GUESSES then
      -- A little too early: what follows is read with it.
      local share = (wanted - below - STREAM_BATCH / 3) / (above - below)
      middle = math.max(low + 1, math.min(high - 1, low + math.floor((high - low) * share)))
    end
    guesses = guesses + 1
    for i, raw in ipairs(entries_after(log, middle, 'COUNT', STREAM_BATCH_TEXT)) do
      local stamp, units, total = read_entry(raw)
      -- Damaged: until all is free, for what has been charged by now stands.
      if not stamp then return log.stamp end
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

-- That of the newest units that fit beside the cost is the last to wait for.
function stream_window.retry_after(log, params, i, now, cost)
  local limit, window = params.limits[i], params.windows[1]
  if cost > limit then return NEVER end
  if log.is_restamped or not log.first then return window end
  -- Mostly it is the oldest that has to leave.
  if log.total + cost - limit <= log.first_total then return log.first + window - now end
  return time_of(log, log.total + cost - limit) + window - now
end

function stream_window.reset_after(log, params, _, now)
  if log.total == 0 then return 0 end
  return math.max(0, log.stamp + params.windows[1] - now)
end

-- The id of what a request of this name was charged.
local function find_charge(log, at_ms, units, entry)
  local at = text_of(at_ms)
  for _, raw in ipairs(call_redis('XRANGE', log.key, at, at)) do
    local _, charged = read_entry(raw)
    if charged == units and raw[2][2] == entry then return raw[1] end
  end
  return nil
end

function stream_window.refund(log, params, now, at_ms, units, entry)
  local key, gone = log.key, log.stamp - params.windows[1]
  if at_ms <= math.max(now - params.windows[1], gone) then return 0 end
  local id = find_charge(log, at_ms, units, entry)
  if not id then return 0 end
  -- What the newest has seen to leave the window must not come back with an older newest.
  call_redis('XTRIM', key, 'MINID', '=', text_of(math.max(0, gone + 1)))
  if id == log.newest then
    log.removed = id
    return units
  end
  local most = math.min(MAX_REFUND_ENTRIES, math.max(MIN_REFUND_ENTRIES, params.records))
  if call_redis('XLEN', key) > most then return 0 end
  local kept, returned = {}, 0
  for _, each in ipairs(readable_after(log, gone)) do
    if each[1] == id then
      returned = units
    else
      if returned > 0 then each[2][6] = text_of(each.total - returned) end
      kept[#kept + 1] = each
    end
  end
  log.rewritten = kept
  return units
end

-- Stamp and units, one behind the other; so many of the newest entries.
function stream_window.charges(log, params, _, now, most)
  local charges = {}
  if log.is_restamped then
    for i = math.max(1, #log.rewritten - most + 1), #log.rewritten do
      charges[#charges + 1], charges[#charges + 2] = now, log.rewritten[i].units
    end
    return charges
  end
  local first = text_of(math.max(0, now - params.windows[1] + 1))
  local newest = call_redis('XREVRANGE', log.key, '+', first, 'COUNT', text_of(most))
  for i = #newest, 1, -1 do
    local stamp, units = read_entry(newest[i])
    if not stamp then error({ unusable = 'a damaged stream' }) end
    charges[#charges + 1], charges[#charges + 2] = stamp, units
  end
  return charges
end

function stream_window.list(log, params, now)
  local flat, last = {}, 0
  for _, entry in ipairs(log.rewritten or entries_after(log, now - params.windows[1])) do
    -- Numbers take most of the time. Those that aren't computed with stay text.
    local words = entry[2]
    if words[3] == 'cost' and words[6] and string.find(words[4], '^[1-9]%d*$') then
      flat[last + 1], flat[last + 2], flat[last + 3] = words[2], words[4], string.match(entry[1], '^%d+')
      last = last + 3
    end
  end
  return flat
end

return stream_window
