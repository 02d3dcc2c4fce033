-- The twin of line.ts.
--
-- Reads and writes: one string per log: format (1 byte, 1), time of the last write (6 bytes), then per ticket: id (12
-- bytes), since when it waits, its units, and until when it is expected to ask again (6 bytes each); unsigned,
-- big-endian, times in milliseconds.
-- TTL: set whenever it is written, to the time at which the last ticket is over + slack.
-- Invariants: at most 256 tickets, each id once; a line without tickets is no key at all.

local LINE_FORMAT = '>BI6'
local LINE_SIZE = 7
local TICKET_FORMAT = '>c12I6I6I6'
local TICKET_SIZE = 30
local MOST_OF_LINE = 7687
-- One byte more than it should have.
local LAST_OF_LINE = '7687'
local MOST_WAITING = 2 ^ 40

local line = {}

-- By their bytes: how texts compare depends on the server's locale.
local function is_less(a, b)
  for i = 1, #a do
    local ours, theirs = string.byte(a, i), string.byte(b, i)
    if ours ~= theirs then return ours < (theirs or -1) end
  end
  return #a < #b
end

-- Whether another is to be admitted before this one.
local function is_before(id, since, own, own_since)
  if id == own then return false end
  if since < own_since then return true end
  return since == own_since and is_less(id, own)
end

-- Those that still wait, but for this one.
local function others_in(log, now, own)
  local others = {}
  for at = 1, #log.tickets, TICKET_SIZE do
    local id, _, _, until_ms = struct_unpack(TICKET_FORMAT, log.tickets, at)
    if until_ms > now and id ~= own then others[#others + 1] = string_sub(log.tickets, at, at + TICKET_SIZE - 1) end
  end
  return others
end

local function write(log, now, tickets)
  log.tickets = table.concat(tickets)
  -- Where the clock was set back, that is still to be seen by who asks next.
  log.stamp = #tickets == 0 and 0 or math.max(log.stamp, now)
end

function line.load(log)
  local raw = pcall_redis('GETRANGE', log.key, '0', LAST_OF_LINE)
  if type(raw) ~= 'string' then return raw.err end
  log.stamp, log.tickets = 0, ''
  if raw == '' then return nil end
  if #raw > LINE_SIZE and #raw <= MOST_OF_LINE and (#raw - LINE_SIZE) % TICKET_SIZE == 0 and string.byte(raw) == 1 then
    local _
    _, log.stamp = struct_unpack(LINE_FORMAT, raw)
    log.tickets = string_sub(raw, LINE_SIZE + 1)
    return nil
  end
  return 'not a line of format 1'
end

function line.save(log, clock, is_clock_given)
  if log.tickets == '' then
    call_redis('DEL', log.key)
    return
  end
  local latest = clock
  for at = 1, #log.tickets, TICKET_SIZE do
    local _, _, _, until_ms = struct_unpack(TICKET_FORMAT, log.tickets, at)
    latest = math.max(latest, until_ms)
  end
  local raw = struct_pack(LINE_FORMAT, 1, log.stamp) .. log.tickets
  call_redis('SET', log.key, raw, 'PX', ttl_of(latest - clock, is_clock_given))
end

-- Forgets them all: they ask again, and each says since when it waits.
function line.restamp(log)
  log.tickets, log.stamp = '', 0
end

-- The units of those before, and of those who are awaited.
function line.ahead(log, _, now, ticket, room, soon)
  local ahead, awaited, own_since = 0, 0, ticket.sinceMs == 0 and now or math.min(ticket.sinceMs, now)
  for at = 1, #log.tickets, TICKET_SIZE do
    local id, since, units, until_ms = struct_unpack(TICKET_FORMAT, log.tickets, at)
    if until_ms > now and is_before(id, since, ticket.id, own_since) then
      ahead = ahead + units
      if until_ms <= soon or units > room then awaited = awaited + units end
    end
  end
  return math.min(ahead, MOST_WAITING), math.min(awaited, MOST_WAITING)
end

function line.put(log, _, now, ticket, units, until_ms)
  local tickets = others_in(log, now, ticket.id)
  if until_ms > now and #tickets < 256 then
    tickets[#tickets + 1] = struct_pack(TICKET_FORMAT, ticket.id, ticket.sinceMs, math.min(units, MOST_WAITING), until_ms)
  end
  write(log, now, tickets)
end

function line.remove(log, _, now, id)
  write(log, now, others_in(log, now, id))
end

return line
