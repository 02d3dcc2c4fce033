-- The twin of entry-window.ts: windows whose log stores each entry separately.
--
-- Words (numbers that the process sends): the window, the kind of the entries (see below), the limits.
-- Answer: if a shadow limit may already have the request, first the units charged. The rest is as in packed-window.lua.
-- Stored: one sorted set, see docs/state.md. An entry of n units has n members.
-- TTL: the window plus slack, set by some charges and renewals.
-- Work: a charge removes members that left the window, up to PRUNED more than it adds. A log keeps up to MAX_ENTRIES units.
-- Further charges push out the oldest ones, which doesn't affect any limit.

local MAX_ENTRIES = 10000
local PRUNED = 100
-- Maximum arguments per command. `unpack` supports at most 8,000.
local MAX_WORDS = 4000
local MAX_SCORE = 2 ^ 47
-- The kinds of entries. 0 means requests that can't be found by id.
local REQUEST = 1
local HOLDER = 2
local VALUE = 3
local RESERVATION = 4
local NO_ENTRIES = 'not a log of entries'

--- shared
-- Returns the number of units in an entry that counts.
local function units_of(key, entry, cut)
  local least, above = 1, 2
  local function is_there(unit)
    local score = call_redis('ZSCORE', key, entry .. ' ' .. string.format('%d', unit))
    return score and score + 0 > cut
  end
  while is_there(above) do least, above = above, 2 * above end
  while above - least > 1 do
    local middle = math.floor((least + above) / 2)
    if is_there(middle) then least = middle else above = middle end
  end
  return least
end

--- read
local newest = pcall_redis('ZRANGE', key, '-1', '-1', 'WITHSCORES')
if newest.err then return nil, newest.err end
local stamp = newest[2] and newest[2] + 0 or 0
if not (stamp >= 0 and stamp <= MAX_SCORE and stamp % 1 == 0) then return nil, NO_ENTRIES end
--- load
local window, entries, is_ahead = words[p + 1], words[p + 2], false
local cut = now - window
if stamp > now then
  if stamp <= clock + MAX_AHEAD then return nil, stamp end
  -- Entries that counted at the newest stamp count as if they were charged now.
  cut, is_ahead = stamp - window, true
end
--- check
local card, live, price, is_free, id, held_at = 0, 0, cost, false, op and op.id, nil
if stamp > 0 and (entries ~= RESERVATION or op and op.reservation) then
  -- Counting the few entries that left the window is faster than counting the many in it.
  card = call_redis('ZCARD', key)
  live = card - call_redis('ZCOUNT', key, '-inf', string.format('%d', cut))
end
local used, first_limit = live, p + 3
if entries > 0 and entries < RESERVATION and id then
  local score = stamp > 0 and (entries == VALUE or op.may_repeat or op.hold) and call_redis('ZSCORE', key, id)
  local is_known = score and score + 0 > cut
  if op.hold then
    if is_known and entries == HOLDER and units_of(key, id, cut) == cost then
      held_at = score + 0
    elseif entries == HOLDER and not is_shadow then
      op.is_held = 0
    end
  elseif entries == VALUE then
    -- A value that already counts stays admitted, even if the limit was lowered.
    if is_known then live, used = live - 1, math.min(live, words[first_limit]) - 1 end
  elseif is_shadow and op.may_repeat then
    if is_known then price, is_free = 0, true end
    reply[answer], answer = price, answer + 1
  elseif is_known and not (op.is_explained or op.is_forced or op.again_at and op.again_entries <= entries) then
    op.again_at, op.again_units = is_ahead and now or score + 0, units_of(key, id, cut)
    op.again_entries = entries
  end
end
local first_answer = answer
for i = first_limit, last do
  reply[answer] = used
  local free = words[i] - used
  if free < 0 then free = 0 end
  if free < price * fitting then fitting = free < price and 0 or (free - free % price) / price end
  answer = answer + 1
end
--- up
local added, units = id, math.min(price * mine, MAX_ENTRIES)
if entries == RESERVATION then
  added = op and op.reservation
  units = added and not op.is_forced and mine > 0 and 1 or 0
elseif op and op.hold then
  units = held_at and op.hold == RENEWED and cost or 0
elseif mine < wanted or is_free then
  for i = first_limit, last do
    local limit, retry, reset = words[i], 0, window
    if units == 0 and not is_ahead then reset = stamp + window > now and stamp + window - now or 0 end
    if mine < asked and not is_free and used + price * mine + price > limit then
      if op and op.bans and not is_shadow then op.denied[k] = true end
      if price > limit then
        retry = NEVER
      elseif is_ahead then
        retry = window
      else
        -- The index of the last unit that must leave the window before the cost fits.
        local at = string.format('%d', price - limit - 1)
        local found = call_redis('ZRANGE', key, at, at, 'WITHSCORES')
        retry = (found[2] or stamp) + window - now
      end
    end
    reply[first_answer + i - first_limit], reply[filled + 1], reply[filled + 2] = -1 - used, retry, reset
    filled = filled + 2
  end
end
local is_due = is_ahead and not is_look
if is_due then
  tables_of(kinds, 5).restamp(key, cut, string.format('%d', now))
  card = live
end
if units > 0 then
  local all = card
  if units == 1 then
    all = all + call_redis('ZADD', key, string.format('%d', now), added or '')
  else
    all = all + tables_of(kinds, 5).add(key, added or '', units, string.format('%d', now))
  end
  local over = math.max(all - live - units, all - MAX_ENTRIES)
  if over > 0 then
    call_redis('ZREMRANGEBYRANK', key, '0', string.format('%d', math.min(over, units + PRUNED) - 1))
  end
  -- The first charge in each period renews the TTL. A period is a second shorter than the slack. With the `clock`
  -- option, every charge renews the TTL.
  local part = window < 20000 and 4000 or window / 4 - 1000
  is_due = is_due or clock ~= reply[1] or now - now % part > stamp
end
if is_due then call_redis('PEXPIRE', key, (ttl_of(window, clock ~= reply[1]))) end
if held_at and op.hold ~= RENEWED then
  if cost == 1 then call_redis('ZREM', key, id) else tables_of(kinds, 5).remove(key, id, cost) end
  -- Entries that left the window must not count again if an older entry becomes the newest.
  if held_at == stamp and card > live then
    call_redis('ZREMRANGEBYSCORE', key, '-inf', string.format('%d', stamp - window))
  end
end
--- tables
local entry_window = {}

function entry_window.load(log)
  local key = log.key
  --- read
  log.stamp = stamp
end

-- Returns the members of an entry. Each is preceded by `before`, if given.
local function members_of(entry, units, before)
  local members = {}
  for unit = 1, units do
    if before then members[#members + 1] = before end
    members[#members + 1] = unit == 1 and entry or entry .. ' ' .. string.format('%d', unit)
  end
  return members
end

-- Returns the number of members that were added or removed.
local function write_all(command, key, words)
  local written = 0
  for first = 1, #words, MAX_WORDS do
    local last = math.min(#words, first + MAX_WORDS - 1)
    written = written + call_redis(command, key, unpack(words, first, last))
  end
  return written
end

function entry_window.add(key, entry, units, stamp)
  return write_all('ZADD', key, members_of(entry, units, stamp))
end

-- Entries that counted at the newest stamp count as if they were charged now. Other entries are removed.
function entry_window.restamp(key, cut, now)
  local all, moved, gone = call_redis('ZRANGE', key, '0', '-1', 'WITHSCORES'), {}, {}
  for i = 1, #all, 2 do
    if all[i + 1] + 0 > cut then
      moved[#moved + 1], moved[#moved + 2] = now, all[i]
    else
      gone[#gone + 1] = all[i]
    end
  end
  write_all('ZADD', key, moved)
  write_all('ZREM', key, gone)
end

-- Returns the time and units of an entry that counts.
function entry_window.find(log, words, p, now, entry)
  local stamp, cut = call_redis('ZSCORE', log.key, entry), now - words[p + 1]
  if not stamp or stamp + 0 <= cut then return nil end
  return stamp + 0, units_of(log.key, entry, cut)
end

function entry_window.remove(key, entry, units)
  write_all('ZREM', key, members_of(entry, units))
end

function entry_window.refund(log, words, p, now, at_ms, units, entry)
  local entries, stamp, held = words[p + 2], entry_window.find(log, words, p, now, entry)
  -- Holders and reservations may have been renewed, which changes their stamps.
  if entries == VALUE or held ~= units or entries < HOLDER and stamp ~= at_ms then return 0 end
  entry_window.remove(log.key, entry, units)
  if stamp == log.stamp then
    call_redis('ZREMRANGEBYSCORE', log.key, '-inf', string.format('%d', stamp - words[p + 1]))
  end
  return units
end

-- Returns the stamp and units of each charge that counts, oldest first. Lists up to `most` of the newest units.
function entry_window.charges(log, words, p, _, now, most)
  local charges, cut = {}, math.max(log.stamp, now) - words[p + 1]
  local found = call_redis('ZRANGE', log.key, string.format('%d', -most), '-1', 'WITHSCORES')
  for i = 2, #found, 2 do
    local stamp = found[i] + 0
    if stamp > cut then charges[#charges + 1], charges[#charges + 2] = log.stamp > now and now or stamp, 1 end
  end
  return charges
end

function entry_window.list(log, words, p, now)
  local flat, cut = {}, math.max(log.stamp, now) - words[p + 1]
  local at = log.stamp > now and string.format('%d', now)
  local found = call_redis('ZRANGEBYSCORE', log.key, '(' .. string.format('%d', cut), '+inf', 'WITHSCORES')
  for i = 1, #found, 2 do
    flat[#flat + 1], flat[#flat + 2], flat[#flat + 3] = found[i], '1', at or found[i + 1]
  end
  return flat
end
