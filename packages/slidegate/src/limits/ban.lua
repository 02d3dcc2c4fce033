-- The twin of ban.ts.
--
-- Reads and writes: one string per log: format (1 byte, 1), then of 6 bytes each: time of the last write, until when the
-- key is blocked, how many bans in a row, until when that is remembered, and the time of each denial, oldest first;
-- unsigned, big-endian. Times are milliseconds, 0 where there is nothing that they would be the time of.
-- TTL: set whenever it is written, to the time until nothing of it matters any more + slack.
-- Invariants: at most 1000 denials, none after the last write; a log of which nothing matters is no key at all.

local BAN_FORMAT = '>BI6I6I6I6'
local BAN_SIZE = 25
local DENIAL_FORMAT = '>I6'
local DENIAL_SIZE = 6
local MOST_OF_BAN = 6025
-- One byte more than it should have.
local LAST_OF_BAN = '6025'

local ban = {}

-- Denials stay the bytes that they are: most decisions need but their number.
local function denial_at(log, i)
  return (struct_unpack(DENIAL_FORMAT, log.denials, i * DENIAL_SIZE + 1))
end

-- How many denials are over; they are the first.
local function over_at(log, params, now)
  local low, high = 0, #log.denials / DENIAL_SIZE
  while low < high do
    local middle = math.floor((low + high) / 2)
    if now - denial_at(log, middle) < params.within then high = middle else low = middle + 1 end
  end
  return low
end

-- The denials that count.
local function counting(log, params, now)
  return string_sub(log.denials, over_at(log, params, now) * DENIAL_SIZE + 1)
end

local function level_at(log, now)
  return now < log.level_until and log.level or 0
end

-- Forgets what is over: a log that holds nothing has no stamp either, as if it had never been written.
local function settle(log, params, now)
  log.denials = counting(log, params, now)
  if log.blocked_until <= now then log.blocked_until = 0 end
  if log.level_until <= now then log.level, log.level_until = 0, 0 end
  log.stamp = (log.blocked_until == 0 and log.level == 0 and log.denials == '') and 0 or now
end

function ban.load(log)
  local raw = pcall_redis('GETRANGE', log.key, '0', LAST_OF_BAN)
  if type(raw) ~= 'string' then return raw.err end
  log.stamp, log.blocked_until, log.level, log.level_until, log.denials = 0, 0, 0, 0, ''
  if raw == '' then return nil end
  if #raw >= BAN_SIZE and #raw <= MOST_OF_BAN and (#raw - BAN_SIZE) % DENIAL_SIZE == 0 and string.byte(raw) == 1 then
    local _
    _, log.stamp, log.blocked_until, log.level, log.level_until = struct_unpack(BAN_FORMAT, raw)
    log.denials = string_sub(raw, BAN_SIZE + 1)
    if log.denials == '' or denial_at(log, #log.denials / DENIAL_SIZE - 1) <= log.stamp then return nil end
  end
  return 'not a ban of format 1'
end

function ban.save(log, clock, is_clock_given)
  local expires = math.max(log.blocked_until, log.level_until)
  if log.denials ~= '' then
    expires = math.max(expires, denial_at(log, #log.denials / DENIAL_SIZE - 1) + log.params.within)
  end
  if expires == 0 then
    call_redis('DEL', log.key)
    return
  end
  local raw = struct_pack(BAN_FORMAT, 1, log.stamp, log.blocked_until, log.level, log.level_until) .. log.denials
  call_redis('SET', log.key, raw, 'PX', ttl_of(math.max(0, expires - clock), is_clock_given))
end

-- What was left of each time when it was last written is left of it now.
function ban.restamp(log, _, now)
  local by = now - log.stamp
  local function shifted(at_ms)
    return at_ms == 0 and 0 or math.max(0, at_ms + by)
  end
  log.blocked_until, log.level_until = shifted(log.blocked_until), shifted(log.level_until)
  local denials = {}
  for i = 1, #log.denials / DENIAL_SIZE do denials[i] = struct_pack(DENIAL_FORMAT, shifted(denial_at(log, i - 1))) end
  log.denials, log.stamp = table.concat(denials), now
end

-- Milliseconds for which it blocks, its level, and the number of denials that count.
function ban.look(log, params, now)
  local denials = #log.denials / DENIAL_SIZE - over_at(log, params, now)
  return math.max(0, log.blocked_until - now), level_at(log, now), denials
end

function ban.denied(log, params, now, count)
  local denials = counting(log, params, now)
  if #denials / DENIAL_SIZE + count < params.after then
    log.denials = denials .. string.rep(struct_pack(DENIAL_FORMAT, now), count)
  else
    local level, times = level_at(log, now), params['for']
    log.blocked_until = now + times[math.min(level + 1, #times)]
    log.level, log.level_until = level + 1, log.blocked_until + params.forgetAfter
    log.denials = ''
  end
  settle(log, params, now)
  return math.max(0, log.blocked_until - now)
end

function ban.unblock(log)
  log.stamp, log.blocked_until, log.level, log.level_until, log.denials = 0, 0, 0, 0, ''
end

return ban
