-- The twin of entry-window.ts: windows whose log keeps what it counts one by one.
--
-- Reads and writes: one sorted set per log. A member is the name of an entry, its score the time at which it was
-- charged or last renewed, in milliseconds. An entry of n units has n members: its name, and behind a space the
-- numbers 2 to n; no name holds a space.
-- TTL: renewed by charges and renewals now and then, to the window + slack.
-- Work: what has left the window is removed with later charges, as many members as they add and PRUNED more, so that no
-- call removes many. No log keeps more than MAX_ENTRIES units: a charge that nobody asked for pushes out the oldest,
-- which no limit can tell.

local MAX_ENTRIES = 10000
local PRUNED = 100
-- Arguments per command: unpack takes no more than 8,000.
local MAX_WORDS = 4000
local MAX_SCORE = 2 ^ 47

local entry_window = {}

function entry_window.load(log)
  local newest = pcall_redis('ZRANGE', log.key, '-1', '-1', 'WITHSCORES')
  if newest.err then return newest.err end
  log.stamp, log.live, log.restamped, log.added, log.removed = 0, nil, nil, nil, nil
  if newest[2] then
    log.stamp = tonumber(newest[2])
    if not (log.stamp >= 0 and log.stamp <= MAX_SCORE and log.stamp % 1 == 0) then return 'not a log of entries' end
  end
  log.before = log.stamp
  return nil
end

local function after(cut)
  return '(' .. text_of(cut)
end

-- The members of an entry, each behind `before`, if any.
local function members_of(entry, units, before)
  local members = {}
  for unit = 1, units do
    if before then members[#members + 1] = before end
    members[#members + 1] = unit == 1 and entry or entry .. ' ' .. text_of(unit)
  end
  return members
end

-- Answers how many members there are more, or fewer.
local function write_all(command, key, words)
  local written = 0
  for first = 1, #words, MAX_WORDS do
    local last = math.min(#words, first + MAX_WORDS - 1)
    written = written + call_redis(command, key, unpack(words, first, last))
  end
  return written
end

function entry_window.save(log, _, is_clock_given)
  local key, stamp = log.key, text_of(log.stamp)
  if log.restamped then
    write_all('ZADD', key, log.restamped.words)
    write_all('ZREM', key, log.restamped.gone)
  end
  if log.added then
    local all
    if log.units > 1 then
      all = write_all('ZADD', key, members_of(log.added, log.units, stamp))
    else
      all = call_redis('ZADD', key, stamp, log.added)
    end
    all = log.restamped and call_redis('ZCARD', key) or log.card + all
    local gone = math.max(all - log.live - log.units, all - MAX_ENTRIES)
    if gone > 0 then
      call_redis('ZREMRANGEBYRANK', key, '0', text_of(math.min(gone, log.units + PRUNED) - 1))
    end
  end
  if log.removed then
    if log.units > 1 then
      write_all('ZREM', key, members_of(log.removed, log.units))
    else
      call_redis('ZREM', key, log.removed)
    end
    -- What the newest has seen to leave the window must not come back with an older newest.
    if log.is_newest and not log.restamped then
      call_redis('ZREMRANGEBYSCORE', key, '-inf', text_of(log.before - log.params.windows[1]))
    end
  end
  local window = log.params.windows[1]
  if log.restamped or log.added and needs_ttl(log.before, log.stamp, window, is_clock_given) then
    call_redis('PEXPIRE', key, ttl_of(window, is_clock_given))
  end
  -- From now on it is as Redis has it.
  log.restamped, log.added, log.removed = nil, nil, nil
end

-- What counted as of the newest stamp counts from now on; the rest is forgotten.
function entry_window.restamp(log, params, now)
  local all = call_redis('ZRANGE', log.key, '0', '-1', 'WITHSCORES')
  local cut, words, gone, live = log.stamp - params.windows[1], {}, {}, {}
  for i = 1, #all, 2 do
    if tonumber(all[i + 1]) > cut then
      words[#words + 1], words[#words + 2] = text_of(now), all[i]
      live[all[i]] = true
    else
      gone[#gone + 1] = all[i]
    end
  end
  log.restamped, log.stamp = { words = words, gone = gone, live = live }, now
end

-- Units that count.
local function live_in(log, params, now)
  if log.restamped then return now - log.stamp < params.windows[1] and #log.restamped.words / 2 or 0 end
  log.card = 0
  if log.stamp == 0 then return 0 end
  -- Redis counts the few that are gone faster than the many that are not.
  log.card = call_redis('ZCARD', log.key)
  return log.card - call_redis('ZCOUNT', log.key, '-inf', text_of(now - params.windows[1]))
end

function entry_window.check(log, params, now, used, _, entry)
  log.live = live_in(log, params, now)
  for i = 1, #params.limits do used[i] = log.live end
  -- A value that counts has its place, whatever the limit is by now.
  if log.entries == 'value' and entry and entry_window.find(log, params, now, entry) then
    log.live, used[1] = log.live - 1, math.min(log.live, params.limits[1]) - 1
  end
end

function entry_window.commit(log, params, now, units, _, entry)
  log.live = log.live or live_in(log, params, now)
  log.added, log.units, log.stamp = entry, math.min(units, MAX_ENTRIES), now
end

-- That of the newest units that fit beside the cost is the last to wait for.
function entry_window.retry_after(log, params, i, now, cost)
  local limit, window = params.limits[i], params.windows[1]
  if cost > limit then return NEVER end
  if log.restamped then return window end
  local place = text_of(cost - limit - 1)
  return call_redis('ZRANGE', log.key, place, place, 'WITHSCORES')[2] + window - now
end

function entry_window.reset_after(log, params, _, now)
  return math.max(0, log.stamp + params.windows[1] - now)
end

-- The time of an entry that counts.
function entry_window.find(log, params, now, entry)
  if log.restamped then return log.restamped.live[entry] and now or nil end
  local stamp = log.stamp > 0 and call_redis('ZSCORE', log.key, entry)
  stamp = stamp and tonumber(stamp)
  return stamp and now - stamp < params.windows[1] and stamp or nil
end

-- The units of an entry that counts: each but the first has a member of its own.
function entry_window.units(log, params, now, entry)
  local least, above = 1, 2
  while entry_window.find(log, params, now, entry .. ' ' .. text_of(above)) do least, above = above, 2 * above end
  while above - least > 1 do
    local middle = math.floor((least + above) / 2)
    if entry_window.find(log, params, now, entry .. ' ' .. text_of(middle)) then least = middle else above = middle end
  end
  return least
end

function entry_window.refund(log, params, now, at_ms, units, entry)
  if log.entries == 'value' then return 0 end
  local stamp = entry_window.find(log, params, now, entry)
  if not stamp then return 0 end
  if log.entries ~= 'holder' and stamp ~= at_ms then return 0 end
  if entry_window.units(log, params, now, entry) ~= units then return 0 end
  log.removed, log.units, log.is_newest = entry, units, stamp == log.stamp
  return units
end

-- Stamp and units, one behind the other; of the newest so many units.
function entry_window.charges(log, params, _, now, most)
  if log.restamped then return log.live > 0 and { log.stamp, math.min(log.live, most) } or {} end
  local charges = {}
  local found = call_redis('ZRANGE', log.key, text_of(-most), '-1', 'WITHSCORES')
  for i = 2, #found, 2 do
    local stamp = tonumber(found[i])
    if now - stamp < params.windows[1] then charges[#charges + 1], charges[#charges + 2] = stamp, 1 end
  end
  return charges
end

function entry_window.renew(log, params, now, entry, units)
  if not entry_window.find(log, params, now, entry) then return false end
  if entry_window.units(log, params, now, entry) ~= units then return false end
  -- What is added already moves.
  log.live = (log.live or live_in(log, params, now)) - units
  log.added, log.units, log.stamp = entry, units, now
  return true
end

function entry_window.list(log, params, now)
  local flat, found = {}, {}
  if log.restamped then
    for i, word in ipairs(log.restamped.words) do found[i % 2 == 0 and i - 1 or i + 1] = word end
  else
    found = call_redis('ZRANGEBYSCORE', log.key, after(now - params.windows[1]), '+inf', 'WITHSCORES')
  end
  for i = 1, #found, 2 do
    flat[#flat + 1], flat[#flat + 2], flat[#flat + 3] = found[i], '1', found[i + 1]
  end
  return flat
end

return entry_window
