-- The twin of ban.ts. A ban isn't a limit: it denies all requests while the key is blocked.
--
-- Words (numbers that the process sends): the number of logs before this one in its part. The number of denials that
-- cause a ban, and the period in which they must occur. The time after a ban until the level is reset. The lengths of
-- the first ban, the second ban and so on.
-- Stored: one string, see docs/state.md.
-- TTL: set by each write to the time until nothing in the log counts, plus slack.
-- Invariants: at most 1000 denials, none of them later than the last write. A log in which nothing counts has
-- no key.

local BAN_FORMAT = '>BI6I6I6I6'
local BAN_SIZE = 25
local DENIAL_FORMAT = '>I6'
local DENIAL_SIZE = 6
local MOST_OF_BAN = 6025
local LAST_OF_BAN = '6025'
local NO_BAN = 'not a ban of format 1'

--- read
-- luacheck: ignore 231/level.*
local raw, stamp, blocked_until, level, level_until = pcall_redis('GETRANGE', key, '0', LAST_OF_BAN), 0, 0, 0, 0
if raw ~= '' then
  local size = #raw
  if size < BAN_SIZE or size > MOST_OF_BAN or (size - BAN_SIZE) % DENIAL_SIZE > 0 then return nil, raw.err or NO_BAN end
  local format
  format, stamp, blocked_until, level, level_until = struct_unpack(BAN_FORMAT, raw)
  local newest = size > BAN_SIZE and struct_unpack(DENIAL_FORMAT, raw, size - DENIAL_SIZE + 1) or 0
  if format ~= 1 or newest > stamp then return nil, NO_BAN end
end
--- load
local blocked_ms = 0
if stamp > now then
  if stamp <= clock + MAX_AHEAD then return nil, stamp end
  -- The ban has as much time left as it had at the last write.
  if blocked_until > 0 then blocked_until = blocked_until + now - stamp end
  op.is_ban_restamped = true
end
if blocked_until > now then blocked_ms = blocked_until - now end
--- check
local bans = op.bans
bans[#bans + 1] = { k = k, p = p, last = last, blocked_ms = blocked_ms }
if blocked_ms > 0 then fitting, op.is_blocked = 0, true end
--- up
--- tables
local ban = {}

-- Denials aren't decoded, because most decisions only need their number.
local function denial_at(log, i)
  return (struct_unpack(DENIAL_FORMAT, log.denials, i * DENIAL_SIZE + 1))
end

function ban.load(log)
  local key = log.key
  --- read
  log.stamp, log.blocked_until, log.level, log.level_until = stamp, blocked_until, level, level_until
  log.denials = string.sub(raw, BAN_SIZE + 1)
end

function ban.save(log, words, p, clock, is_clock_given)
  local expires = math.max(log.blocked_until, log.level_until)
  if log.denials ~= '' then
    expires = math.max(expires, denial_at(log, #log.denials / DENIAL_SIZE - 1) + words[p + 3])
  end
  if expires == 0 then
    call_redis('DEL', log.key)
    return
  end
  local raw = struct_pack(BAN_FORMAT, 1, log.stamp, log.blocked_until, log.level, log.level_until) .. log.denials
  call_redis('SET', log.key, raw, 'PX', (ttl_of(math.max(0, expires - clock), is_clock_given)))
end

-- Shifts all times. Each is then as far from now as it was from the last write.
function ban.restamp(log, now)
  local by = now - log.stamp
  if by >= 0 then return end
  local function shifted(at_ms)
    return at_ms == 0 and 0 or math.max(0, at_ms + by)
  end
  log.blocked_until, log.level_until = shifted(log.blocked_until), shifted(log.level_until)
  local denials = {}
  for i = 1, #log.denials / DENIAL_SIZE do denials[i] = struct_pack(DENIAL_FORMAT, shifted(denial_at(log, i - 1))) end
  log.denials, log.stamp = table.concat(denials), now
end

-- Drops everything that has expired.
local function settle(log, words, p, now)
  ban.restamp(log, now)
  if log.blocked_until <= now then log.blocked_until = 0 end
  if log.level_until <= now then log.level, log.level_until = 0, 0 end
  local low, high = 0, #log.denials / DENIAL_SIZE
  while low < high do
    local middle = math.floor((low + high) / 2)
    if now - denial_at(log, middle) < words[p + 3] then high = middle else low = middle + 1 end
  end
  log.denials = string.sub(log.denials, low * DENIAL_SIZE + 1)
end

-- Returns the milliseconds until the ban ends, the milliseconds since it began, the level, and the number of
-- denials that count. Nothing is written during a ban, so the ban began with the last write.
function ban.look(log, words, p, now)
  settle(log, words, p, now)
  return math.max(0, log.blocked_until - now), now - log.stamp, log.level, #log.denials / DENIAL_SIZE
end

function ban.denied(log, words, p, last, now, count)
  settle(log, words, p, now)
  log.stamp = now
  if #log.denials / DENIAL_SIZE + count < words[p + 2] then
    log.denials = log.denials .. string.rep(struct_pack(DENIAL_FORMAT, now), count)
  else
    log.level = log.level + 1
    log.blocked_until = now + words[math.min(p + 4 + log.level, last)]
    log.level_until, log.denials = log.blocked_until + words[p + 4], ''
  end
  return math.max(0, log.blocked_until - now)
end

function ban.unblock(log)
  log.stamp, log.blocked_until, log.level, log.level_until, log.denials = 0, 0, 0, 0, ''
end
