-- The twin of notes.ts: a table of texts by name.
--
-- Reads and writes: one hash per table. The field '' is `1 version floor lasting last`: the format, the version, that
-- below which a reader may know notes that have been removed, how many notes never expire, and when the last of the others
-- does. Each other field is a note by its name: `version written expiry text`. All integers, in text; times are milliseconds
-- by the store's clock, 0 for never.
-- Version: rises with each change, and is never below the time of the last one. So one that was lost, with the key or
-- by a failover, does not come again and stand for something else.
-- TTL: none while a note never expires, else until the last one does + slack. It outlives its notes by FORGOTTEN at
-- least, for as long as the clock may be set back.
-- Work: a read asks for one field where nothing was changed, else for all. No table holds more than MAX_NOTES.
-- A read is JSON: version in text, whether it is all (1) or what was changed (0), then per note: name, milliseconds until
-- it expires (0 for never), milliseconds since it was written, text or '' where it is gone.

local MAX_NOTES = 10000
local FORGOTTEN = 600000
-- Arguments per command: unpack takes no more than 8,000.
local REMOVED_AT_ONCE = 4000

local notes = {}

-- Reads nothing: what is needed is known when it is asked for.
function notes.load(log)
  log.stamp = 0
  return nil
end

local function head_of(log)
  local raw = pcall_redis('HGET', log.key, '')
  if type(raw) == 'table' then error({ unusable = raw.err }) end
  local version, floor, lasting, last = string.match(raw or '1 0 0 0 0', '^1 (%d+) (%d+) (%d+) (%d+)$')
  if not version then error({ unusable = 'not a table of notes of format 1' }) end
  return { version = version + 0, floor = floor + 0, lasting = lasting + 0, last = last + 0 }
end

local function note_of(raw)
  local version, written, expiry, text = string.match(raw, '^(%d+) (%d+) (%d+) (.*)$')
  if not version then error({ unusable = 'a damaged note' }) end
  return { version = version + 0, written = written + 0, expiry = expiry + 0, text = text }
end

local function is_expired(note, now)
  return note.expiry > 0 and note.expiry <= now
end

-- The notes of a table: names and notes in turn.
local function all_of(log)
  local all, found = call_redis('HGETALL', log.key), {}
  for i = 1, #all, 2 do
    if all[i] ~= '' then
      found[#found + 1], found[#found + 2] = all[i], note_of(all[i + 1])
    end
  end
  return found
end

-- The names of those that have expired.
local function expired_in(log, now)
  local all, gone = all_of(log), {}
  for i = 1, #all, 2 do
    if is_expired(all[i + 1], now) then gone[#gone + 1] = all[i] end
  end
  return gone
end

function notes.write(log, _, now, note, _, is_clock_given)
  local key, head, gone = log.key, head_of(log), {}
  local known = head.version > 0 and call_redis('HGET', key, note.name)
  known = known and note_of(known)
  if not note.text and not known then return true end
  head.version = math.max(head.version + 1, now)
  if not known and call_redis('HLEN', key) > MAX_NOTES then
    gone = expired_in(log, now)
    if not gone[1] then return false end
    head.floor = head.version
  end
  local expiry = note.ttlMs > 0 and now + note.ttlMs or 0
  if known and known.expiry == 0 then head.lasting = head.lasting - 1 end
  if note.text then
    if expiry == 0 then head.lasting = head.lasting + 1 end
    head.last = math.max(head.last, expiry)
  else
    head.floor = head.version
  end

  -- This first, since Redis lets a script that has removed something write on when it is out of memory.
  local numbers = { '1', text_of(head.version), text_of(head.floor), text_of(head.lasting), text_of(head.last) }
  call_redis('HSET', key, '', table.concat(numbers, ' '))
  for first = 1, #gone, REMOVED_AT_ONCE do
    call_redis('HDEL', key, unpack(gone, first, math.min(#gone, first + REMOVED_AT_ONCE - 1)))
  end
  if note.text then
    local words = { text_of(head.version), text_of(now), text_of(expiry), note.text }
    call_redis('HSET', key, note.name, table.concat(words, ' '))
  else
    call_redis('HDEL', key, note.name)
  end
  if head.lasting > 0 then
    call_redis('PERSIST', key)
  else
    call_redis('PEXPIRE', key, ttl_of(math.max(head.last - now, FORGOTTEN), is_clock_given))
  end
  return true
end

function notes.read(log, _, now, since)
  local head = head_of(log)
  local version = text_of(head.version)
  if head.version == since then return { version, 0 } end
  local is_all = since == 0 or since < head.floor or since > head.version
  local flat = { version, is_all and 1 or 0 }
  local all = all_of(log)
  for i = 1, #all, 2 do
    local name, note = all[i], all[i + 1]
    local is_gone = is_expired(note, now)
    local is_told = not is_gone
    if not is_all then is_told = note.version > since end
    if is_told then
      flat[#flat + 1] = name
      flat[#flat + 1] = (is_gone or note.expiry == 0) and 0 or note.expiry - now
      flat[#flat + 1] = math.max(0, now - note.written)
      flat[#flat + 1] = is_gone and '' or note.text
    end
  end
  return flat
end

return notes
