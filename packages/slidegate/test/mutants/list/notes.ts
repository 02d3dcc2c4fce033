import type { Mutants } from '../mutant.ts'

export const notes: Mutants = {
  part: 'limits/notes.lua',
  withoutShortCut: true,
  mutants: {
    'limits/notes > in Redis > that is full says so to each of those who write at the same time': [
      ['MAX_NOTES = 10000', 'MAX_NOTES = 10001'],
    ],
    'limits/notes > in Redis > outlives its notes by ten minutes at least: so long a clock may be set back': [
      ['FORGOTTEN = 600000', 'FORGOTTEN = 60000'],
    ],
    'limits/notes > a table in redis > tells all to who has missed more than the last 256 changes': [
      ['MAX_CHANGES = 256', 'MAX_CHANGES = 255'],
      ['MAX_CHANGES = 256', 'MAX_CHANGES = 257'],
      ["= string.match(raw or '',", "= string.match(raw and '',"],
      ['{}, since == head.floor', '{}, since ~= head.floor'],
      ['head.changes >= MAX_CHANGES and', 'head.changes > MAX_CHANGES and'],
      ['head.floor = change and math.max(head.floor, change.version) or head.version', ''],
    ],
    'limits/notes > in Redis > tells many changes, and long notes, in pages': [
      ['PAGE_BYTES = 65536', 'PAGE_BYTES = 6553600'],
      ['bytes = bytes + #fields[i + 1]', ''],
      ["if from == '0' or #found >= 2 * PAGE_NOTES or bytes >= PAGE_BYTES then break end", ''],
      ["bytes = bytes + #(raw or '')", ''],
    ],
    'limits/notes > a table in redis > tells all to who knows more than there is, as after a failover': [
      ['log.stamp = 0', ''],
      ["if not raw and call_redis('HLEN', log.key) == 0 then raw = '1 0 0 0 0 0' end", ''],
      ["string.match(raw or '', '^1", "string.match(raw and '', '^1"],
      ['first and first ~= 32', 'first and first == 32'],
      [
        'found[#found + 1], found[#found + 2] = fields[i],',
        'found[#found - 1], found[#found + 2] = fields[i],',
      ],
      ['if not since or since == head.version then return false end', ''],
      ['if not changes then return nil end', ''],
      ['known = raw and note_of(raw)', 'known = raw or note_of(raw)'],
      ['+ note.ttlMs or 0', '+ note.ttlMs and 0'],
      ["call_redis('HSET', key, '', '1 ' .. table.concat(numbers, ' '), slot_of(head.changes), change)", ''],
      ['unpack(gone)) end\n  if note.text then', 'unpack(gone)) end\n  if false then'],
      ["call_redis('HSET', key, note.name, text_of(now) .. ' ' .. text_of(expiry) .. ' ' .. note.text)", ''],
      ['if version then', 'if true then'],
      ["next, found = page_of(log, from or '0')", ''],
      ['flat = { text_of(head.version), 1, next, size_of(log, head) }', ''],
      ['note = raw and note_of(raw)', 'note = raw or note_of(raw)'],
      ['+ 3], flat[at + 4] = found[i],', '+ 3], flat[at - 4] = found[i],'],
      ['+ 3], flat[at + 4] = math.max(0,', '+ 3], flat[at - 4] = math.max(0,'],
    ],
    'limits/notes > in Redis > refuses a value of another type, and leaves it': [
      ["if type(raw) == 'table' then error({ unusable = raw.err }) end", ''],
    ],
    'limits/notes > a table in redis > says of changed notes that they are gone meanwhile': [
      ['note.expiry <= now', 'note.expiry < now'],
      ['note and not is_expired(note, now) then', 'note then'],
      ['elseif raw and not', 'elseif raw or not'],
    ],
    'limits/notes > a table in redis > lets notes expire by the clock of the store': [
      ['1 - math.min(head.changes, MAX_CHANGES))', '1)'],
      ['- 1 - math.min(head.changes,', '- math.min(head.changes,'],
    ],
    'limits/notes > in Redis > tells a damaged note as one, and all others': [
      ['from = scanned[1]', ''],
      [
        'for change = math.max(0, head.changes - MAX_CHANGES), head.changes - 1 do slots[#slots + 1] = slot_of(change) end',
        '',
      ],
      ['head.changes - 1 do', 'head.changes do'],
      ['is_known = is_known or change.version == since', ''],
      ['if change.version > since then changes[#changes + 1] = change end', ''],
      ['and changes or nil', 'and changes and nil'],
      ['1].version or head.version,', '1].version and head.version,'],
      ['= head.version ==', '= head.version ~='],
      ['if head.changes >= MAX_CHANGES then', 'if true then'],
      ['if not from then version, is_more, found = changed_in(log, head, since) end', ''],
      ['flat[at + 2] = -1', 'flat[at - 2] = -1'],
    ],
    'limits/notes > in Redis > by its own clock, too': [
      ['first and first ~= 32 then', 'first then'],
      ['= math.max(head.version + 1, now)', '= head.version + 1'],
    ],
    'limits/notes > in Redis > tells all to who has not heard of those that made room': [
      ['since < head.floor or since >', 'since >'],
      ['end\n    head.floor = head.version', 'end'],
    ],
    'limits/notes > in Redis > tells all where a change is lost, and writes on': [
      ['if not change then return nil end', ''],
    ],
    'limits/notes > a table in redis > tells all to who knows a version that it never had': [
      ['return is_known and changes or nil', 'return changes'],
    ],
    'overrides/notes-of-overrides > written by several at once, in redis > what another has deleted meanwhile is not deleted twice':
      [
        ['ipairs(changes or {})', 'ipairs(changes and {})'],
        ['if change.name == name then return true end', ''],
        ['then return true', 'then return false'],
        ['while at <= #changes and bytes', 'while at < #changes and bytes'],
        ['if not is_known[name] then is_known[name], names[#names + 1] = true, name end', ''],
        [
          'found[#found + 1], found[#found + 2] = names[i],',
          'found[#found - 1], found[#found + 2] = names[i],',
        ],
        ['if is_written_since(log, head, note.name, note.since) then return 2 end', ''],
        ["flat = { text_of(version), 0, is_more and '1' or '0', 0 }", ''],
      ],
    'overrides/notes-of-overrides > written by several at once, in redis > other keys do not stand in the way':
      [['return not changes', 'return changes']],
    'limits/notes > in Redis > tells changes to the last one, where it is of a note that was told, and where it alone is left for a page':
      [
        ['if not names[1] then break end', ''],
        ['= at <= #changes', '= at < #changes'],
      ],
    'limits/notes > a table in redis > tells what has been removed': [
      ['if not note.text and not raw then return 1 end', ''],
      ['note.text and not raw', 'note.text and raw'],
    ],
    'limits/notes > a table in redis > of which few have expired: they are found': [
      ['if not raw and size_of(log, head) >= MAX_NOTES then', 'if false then'],
      ['note_of(found[i + 1])', 'note_of(found[i - 1])'],
      ['if other and is_expired(other, now) then gone[#gone + 1] = found[i] end', ''],
      ['if not gone[1] then return 0, next end', ''],
      ["if gone[1] then call_redis('HDEL', key, unpack(gone)) end", ''],
    ],
    'limits/notes > a table in redis > holds 10000 notes; where they are more, those that have expired make room':
      [["note.from or '0')", "note.from and '0')"]],
    'traps/other-logs > lives for as long as it matters: > overrides: for ever, or until the last has ended':
      [['if expiry == 0 then head.lasting = head.lasting + 1 end', '']],
    'limits/notes > in Redis > a hash without a TTL while a note never expires, else with that of the last': [
      ['head.last = math.max(head.last, expiry)', ''],
      ['= math.max(head.last, expiry)', '= expiry'],
      ['head.changes + 1 }', 'head.changes }'],
      ["call_redis('HDEL', key, note.name)", ''],
      ['if head.lasting > 0 then', 'if false then'],
      ["call_redis('PERSIST', key)", ''],
      ["call_redis('PEXPIRE', key, ttl_of(math.max(head.last - now, FORGOTTEN), is_clock_given))", ''],
    ],
    'limits/notes > a table in redis > tells what was written since a version, and nothing where that is the last':
      [
        ["if not from and head.version == since then return { text_of(since), 0, '0', 0 } end", ''],
        ['= note.expiry ==', '= note.expiry ~='],
      ],
    'limits/notes > a table in redis > never gives a version twice, though all notes be removed in the same millisecond':
      [['note.expiry == 0 and 0 or note.expiry -', 'note.expiry -']],
    'limits/notes > both twins answer the same, to the last number': [
      ['math.max(0, now - note.written)', 'now - note.written'],
    ],
    'histories 1 > overrides': [
      ['= found[i + 1], #flat', '= found[i - 1], #flat'],
      ['head.version = math.max(head.version + 1, now)', ''],
    ],
  },
}
