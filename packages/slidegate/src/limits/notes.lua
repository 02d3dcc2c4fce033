-- The twin of notes.ts: a table of texts by name.
--
-- Reads and writes: one hash per table. The field '' is `1 version floor lasting last changes`: the format, the version,
-- that below which a reader is told all, how many notes never expire, when the last of the others does, and how often the
-- table was changed. The fields ' 0' to ' 255' tell of the last changes, in turn: `version name`. Each other field is a note
-- by its name, which has no space: `written expiry text`. All integers, in text; times are milliseconds by the store's
-- clock, 0 for never.
-- Version: rises with each change, and is never below the time of the last one. So one that was lost, with the key or
-- by a failover, does not come again and stand for something else: who knows of a version that is not among the last
-- changes is told all, and writes nothing before.
-- TTL: none while a note never expires, else until the last one does + slack. It outlives its notes by FORGOTTEN at
-- least, for as long as the clock may be set back.
-- Work: a read asks for one field where nothing was changed, for what was changed where that is known, else for all. Both
-- are told in pages of some PAGE_NOTES notes or PAGE_BYTES. No table holds more than MAX_NOTES; in one that is full, whoever
-- writes looks for those that have expired page by page, too.
-- A read is JSON: version in text; whether it is all (1) or what was changed (0); where the next page begins, in text: '0'
-- where there is none, else the cursor of HSCAN, or '1' for what was changed since the version of this page; how many notes
-- there are (0 for what was changed); then per note: name, milliseconds until it expires (0 for never, -1 where it is
-- damaged), milliseconds since it was written, text or '' where it is gone or damaged. Of all, a note may be told twice, and
-- what is written meanwhile may be missing: whoever reads asks for that afterwards.

local MAX_NOTES = 10000
local FORGOTTEN = 600000
local MAX_CHANGES = 256
local PAGE_NOTES = 250
local PAGE_BYTES = 65536
-- So few, because each may be as long as a page.
local READ_AT_ONCE = 16
-- Of a hash that was larger once, most places are empty.
local MAX_READS = 64
-- Above it, numbers have no neighbours: to count from one to the next would take for ever.
local MAX_NUMBER = 2 ^ 52

local notes = {}

-- Reads nothing: what is needed is known when it is asked for.
function notes.load(log)
  log.stamp = 0
  return nil
end

local function head_of(log)
  local raw = pcall_redis('HGET', log.key, '')
  if type(raw) == 'table' then error({ unusable = raw.err }) end
  if not raw and call_redis('HLEN', log.key) == 0 then raw = '1 0 0 0 0 0' end
  local version, floor, lasting, last, changes =
    string.match(raw or '', '^1 (%d+) (%d+) (%d+) (%d+) (%d+)$')
  local head = version and {
    version = version + 0, floor = floor + 0, lasting = lasting + 0, last = last + 0, changes = changes + 0,
  }
  if not head or math.max(head.version, head.floor, head.lasting, head.last, head.changes) > MAX_NUMBER then
    error({ unusable = 'not a table of notes of format 1' })
  end
  return head
end

-- Nothing for one that is damaged.
local function note_of(raw)
  local written, expiry, text = string.match(raw, '^(%d+) (%d+) (.*)$')
  if not written or math.max(written + 0, expiry + 0) > MAX_NUMBER then return nil end
  return { written = written + 0, expiry = expiry + 0, text = text }
end

-- Nothing for one that is damaged, or lost.
local function change_of(raw)
  local version, name = string.match(raw or '', '^(%d+) (.*)$')
  if not version or version + 0 > MAX_NUMBER then return nil end
  return { version = version + 0, name = name }
end

local function slot_of(change)
  return ' ' .. text_of(change % MAX_CHANGES)
end

local function is_expired(note, now)
  return note.expiry > 0 and note.expiry <= now
end

local function size_of(log, head)
  return math.max(0, call_redis('HLEN', log.key) - 1 - math.min(head.changes, MAX_CHANGES))
end

-- A page of the table: where the next one begins, then names and what is stored of them in turn.
local function page_of(log, from)
  local found, bytes = {}, 0
  for _ = 1, MAX_READS do
    local scanned = call_redis('HSCAN', log.key, from, 'COUNT', READ_AT_ONCE)
    local fields = scanned[2]
    from = scanned[1]
    for i = 1, #fields, 2 do
      local first = string.byte(fields[i])
      if first and first ~= 32 then
        found[#found + 1], found[#found + 2] = fields[i], fields[i + 1]
        bytes = bytes + #fields[i + 1]
      end
    end
    if from == '0' or #found >= 2 * PAGE_NOTES or bytes >= PAGE_BYTES then break end
  end
  return from, found
end

-- The changes since a version; nothing where it is none that is remembered: another history may have led to it.
local function changes_since(log, head, since)
  if since == 0 or since < head.floor or since > head.version then return nil end
  local slots, changes, is_known = {}, {}, since == head.floor
  for change = math.max(0, head.changes - MAX_CHANGES), head.changes - 1 do slots[#slots + 1] = slot_of(change) end
  if not slots[1] then return nil end
  for _, raw in ipairs(call_redis('HMGET', log.key, unpack(slots))) do
    local change = change_of(raw)
    if not change then return nil end
    is_known = is_known or change.version == since
    if change.version > since then changes[#changes + 1] = change end
  end
  return is_known and changes or nil
end

-- Whether a note may have been written since a version.
local function is_written_since(log, head, name, since)
  if not since or since == head.version then return false end
  local changes = changes_since(log, head, since)
  for _, change in ipairs(changes or {}) do
    if change.name == name then return true end
  end
  return not changes
end

-- A page of what was changed since: the version by which it ends, whether there is more, then as above, with false for a
-- note that is no more. Nothing where that is not known.
local function changed_in(log, head, since)
  local changes = changes_since(log, head, since)
  if not changes then return nil end
  local found, at, bytes, is_known = {}, 1, 0, {}
  while at <= #changes and bytes < PAGE_BYTES do
    local names = {}
    while at <= #changes and #names < READ_AT_ONCE do
      local name = changes[at].name
      if not is_known[name] then is_known[name], names[#names + 1] = true, name end
      at = at + 1
    end
    if not names[1] then break end
    for i, raw in ipairs(call_redis('HMGET', log.key, unpack(names))) do
      found[#found + 1], found[#found + 2] = names[i], raw
      bytes = bytes + #(raw or '')
    end
  end
  local is_more = at <= #changes
  return is_more and changes[at - 1].version or head.version, is_more, found
end

-- Answers 1; 2 where the note may have been written since the version that the writer knew; or, where there is no room, 0
-- and a cursor: from there on notes may still be found that have expired.
function notes.write(log, _, now, note, _, is_clock_given)
  local key, head, gone = log.key, head_of(log), {}
  if is_written_since(log, head, note.name, note.since) then return 2 end
  local raw = head.version > 0 and call_redis('HGET', key, note.name)
  local known = raw and note_of(raw)
  if not note.text and not raw then return 1 end
  local is_new = head.version == 0
  head.version = math.max(head.version + 1, now)
  -- Who knows of a table that was lost is told all; so is, below, who has not heard of a change that is forgotten now.
  if is_new then head.floor = head.version end
  local kept = head.changes >= MAX_CHANGES and call_redis('HGET', key, slot_of(head.changes))
  if head.changes >= MAX_CHANGES then
    local change = change_of(kept)
    head.floor = change and math.max(head.floor, change.version) or head.version
  end
  if not raw and size_of(log, head) >= MAX_NOTES then
    local next, found = page_of(log, note.from or '0')
    for i = 1, #found, 2 do
      local other = note_of(found[i + 1])
      if other and is_expired(other, now) then gone[#gone + 1] = found[i] end
    end
    if not gone[1] then return 0, next end
    head.floor = head.version
  end
  local expiry = note.ttlMs > 0 and now + note.ttlMs or 0
  -- Of one that is damaged nobody knows: the table then lives too long rather than too short.
  if known and known.expiry == 0 then head.lasting = math.max(0, head.lasting - 1) end
  if note.text then
    if expiry == 0 then head.lasting = head.lasting + 1 end
    head.last = math.max(head.last, expiry)
  end

  -- This first, since Redis lets a script that has removed something write on when it is out of memory.
  local numbers = { head.version, head.floor, head.lasting, head.last, head.changes + 1 }
  for i = 1, #numbers do numbers[i] = text_of(numbers[i]) end
  local change = text_of(head.version) .. ' ' .. note.name
  call_redis('HSET', key, '', '1 ' .. table.concat(numbers, ' '), slot_of(head.changes), change)
  if gone[1] then call_redis('HDEL', key, unpack(gone)) end
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
  return 1
end

-- A page: of what was changed since, or of all; `from` is where it begins, where it is not the first of these.
function notes.read(log, _, now, since, from)
  local head = head_of(log)
  if not from and head.version == since then return { text_of(since), 0, '0', 0 } end
  local version, is_more, found
  if not from then version, is_more, found = changed_in(log, head, since) end
  local flat
  if version then
    flat = { text_of(version), 0, is_more and '1' or '0', 0 }
  else
    local next
    next, found = page_of(log, from or '0')
    flat = { text_of(head.version), 1, next, size_of(log, head) }
  end
  for i = 1, #found, 2 do
    local raw, at = found[i + 1], #flat
    local note = raw and note_of(raw)
    flat[at + 1], flat[at + 2], flat[at + 3], flat[at + 4] = found[i], 0, 0, ''
    if note and not is_expired(note, now) then
      flat[at + 2] = note.expiry == 0 and 0 or note.expiry - now
      flat[at + 3], flat[at + 4] = math.max(0, now - note.written), note.text
    elseif raw and not note then
      flat[at + 2] = -1
    end
  end
  return flat
end

return notes
