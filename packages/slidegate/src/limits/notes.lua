-- The twin of notes.ts: a table of texts by name.
--
-- Reads and writes: one hash per table. The field '' is `1 version floor lasting last changes`: the format, the version,
-- that below which a reader is told all, how many notes never expire, when the last of the others does, and how often the
-- table was changed. The fields ' 0' to ' 255' tell of the last changes, in turn: `version name`. Each other field is a note
-- by its name, which has no space: `written expiry text`. All integers, in text; times are milliseconds by the store's
-- clock, 0 for never.
-- Version: rises with each change, and is never below the time of the last one. So one that was lost, with the key or
-- by a failover, does not come again and stand for something else.
-- TTL: none while a note never expires, else until the last one does + slack. It outlives its notes by FORGOTTEN at
-- least, for as long as the clock may be set back.
-- Work: a read asks for one field where nothing was changed, for what was changed where that is known, else for all. No
-- table holds more than MAX_NOTES.
-- A read is JSON: version in text, whether it is all (1) or what was changed (0), then per note: name, milliseconds until
-- it expires (0 for never), milliseconds since it was written, text or '' where it is gone.

local MAX_NOTES = 10000
local FORGOTTEN = 600000
local MAX_CHANGES = 256
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
  local version, floor, lasting, last, changes =
    string.match(raw or '1 0 0 0 0 0', '^1 (%d+) (%d+) (%d+) (%d+) (%d+)$')
  if not version then error({ unusable = 'not a table of notes of format 1' }) end
  return { version = version + 0, floor = floor + 0, lasting = lasting + 0, last = last + 0, changes = changes + 0 }
end

local function note_of(raw)
  local written, expiry, text = string.match(raw, '^(%d+) (%d+) (.*)$')
  if not written then error({ unusable = 'a damaged note' }) end
  return { written = written + 0, expiry = expiry + 0, text = text }
end

local function change_of(raw)
  local version, name = string.match(raw, '^(%d+) (.*)$')
  if not version then error({ unusable = 'a damaged change' }) end
  return version + 0, name
end

local function slot_of(change)
  return ' ' .. text_of(change % MAX_CHANGES)
end

local function is_expired(note, now)
  return note.expiry > 0 and note.expiry <= now
end

-- The notes of a table: names and notes in turn.
local function all_of(log)
  local all, found = call_redis('HGETALL', log.key), {}
  for i = 1, #all, 2 do
    local first = string.byte(all[i])
    if first and first ~= 32 then
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

-- The same of those that were changed since; false in place of a note that is no more.
local function changed_in(log, head, since)
  local slots, names, found, is_known = {}, {}, {}, {}
  for change = 0, math.min(head.changes, MAX_CHANGES) - 1 do slots[change + 1] = slot_of(change) end
  for _, raw in ipairs(call_redis('HMGET', log.key, unpack(slots))) do
    local version, name = change_of(raw or '')
    if version > since and not is_known[name] then
      is_known[name], names[#names + 1] = true, name
    end
  end
  if not names[1] then return found end
  for i, raw in ipairs(call_redis('HMGET', log.key, unpack(names))) do
    found[#found + 1], found[#found + 2] = names[i], raw and note_of(raw)
  end
  return found
end

function notes.write(log, _, now, note, _, is_clock_given)
  local key, head, gone = log.key, head_of(log), {}
  local known = head.version > 0 and call_redis('HGET', key, note.name)
  known = known and note_of(known)
  if not note.text and not known then return true end
  head.version = math.max(head.version + 1, now)
  local kept = head.changes >= MAX_CHANGES and call_redis('HGET', key, slot_of(head.changes))
  -- Who has not heard of the change that is forgotten now is told all.
  if kept then head.floor = math.max(head.floor, (change_of(kept))) end
  if not known and call_redis('HLEN', key) - 1 - math.min(head.changes, MAX_CHANGES) >= MAX_NOTES then
    gone = expired_in(log, now)
    if not gone[1] then return false end
    head.floor = head.version
  end
  local expiry = note.ttlMs > 0 and now + note.ttlMs or 0
  if known and known.expiry == 0 then head.lasting = head.lasting - 1 end
  if note.text then
    if expiry == 0 then head.lasting = head.lasting + 1 end
    head.last = math.max(head.last, expiry)
  end

  -- This first, since Redis lets a script that has removed something write on when it is out of memory.
  local numbers = { head.version, head.floor, head.lasting, head.last, head.changes + 1 }
  for i = 1, #numbers do numbers[i] = text_of(numbers[i]) end
  local change = text_of(head.version) .. ' ' .. note.name
  call_redis('HSET', key, '', '1 ' .. table.concat(numbers, ' '), slot_of(head.changes), change)
  for first = 1, #gone, REMOVED_AT_ONCE do
    call_redis('HDEL', key, unpack(gone, first, math.min(#gone, first + REMOVED_AT_ONCE - 1)))
  end
  if note.text then
    call_redis('HSET', key, note.name, text_of(now) .. ' ' .. text_of(expiry) .. ' ' .. note.text)
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
  local found = is_all and all_of(log) or changed_in(log, head, since)
  for i = 1, #found, 2 do
    local name, note = found[i], found[i + 1]
    local at = #flat
    if note and not is_expired(note, now) then
      flat[at + 1], flat[at + 2] = name, note.expiry == 0 and 0 or note.expiry - now
      flat[at + 3], flat[at + 4] = math.max(0, now - note.written), note.text
    elseif not is_all then
      flat[at + 1], flat[at + 2], flat[at + 3], flat[at + 4] = name, 0, 0, ''
    end
  end
  return flat
end

return notes
