import type { Mutants } from '../mutant.ts'

export const rare: Mutants = {
  part: 'stores/redis/rare.lua',
  mutants: {
    'conformance > an override is in force for its key, in every process, until it is deleted': [
      ["call_redis('DEL', key)\n", '\n'],
      ["if ttl then call_redis('SET', key, raw, 'PX', ttl) else call_redis('SET', key, raw) end", ''],
      ['record.rule = run.rule or record.rule', ''],
      ['existed = record.rule_ms > 0 or record.blocked_ms > 0', 'existed = true'],
      ["if run.rule then record.ends = run.rule == '' and 0 or ends_of(run.ruleMs) end", ''],
      ['clock ~= reply[1]) then existed = 1 end', 'clock ~= reply[1]) then existed = 0 end'],
    ],
    'conformance > overrides are listed with the keys that they were set for': [
      ["call_redis('ZADD', index, '0', name)", ''],
      ['string.sub(index, 1, -1 - INDEX_LENGTH)', 'string.sub(index, 1, -INDEX_LENGTH)'],
      ["given = string.match(raw, '\\n(.*)$'),", "given = '',"],
      [
        'page[at + 1], page[at + 2], page[at + 3] = name, record.given, record.rule',
        'page[at + 1], page[at + 2], page[at + 3] = name, name, record.rule',
      ],
      ['local given = run.given and run.given[i]', 'local given = nil'],
    ],
    'overrides/overrides > overrides in Redis with one bucket > a list of more than a page is whole, and has each once':
      [
        ["after == '' and '-' or '(' .. after", "after == '' and '-' or '[' .. after"],
        ['if i == OVERRIDES_PAGE or bytes >= PAGE_BYTES then', 'if bytes >= PAGE_BYTES then'],
        ['page[1] = name\n', '\n'],
      ],
    'conformance > an override may end by itself, and what was used under it counts on': [
      ['ms >= FOREVER and FOREVER or clock + ms', 'ms >= FOREVER and FOREVER or ms'],
    ],
    'conformance > a block denies in any dimension, leaves the numbers, and ends': [
      ['run.blockMs == 0 and 0 or ends_of(run.blockMs) end', '0 end'],
    ],
    'conformance > a ban is lifted with a block, and an exempt key is not banned': [
      ['if run.blockMs == 0 and not run.rule then', 'if false then'],
      ['log.tables.unblock(log)', ''],
      ['log.tables.unblock(log)\n        save(log, words, clock)', 'log.tables.unblock(log)'],
    ],
    'limits/repeats > Redis > nor both when the clock was set back in between': [
      ['if not at_ms or entries == REQUEST and at_ms ~= run.atMs\n', 'if not at_ms\n'],
    ],
    'limits/repeats > Redis > a decision on a request that was returned takes nothing back of another of its id':
      [
        [
          'is_charged = not run.mayRepeat or is_still_charged(logs, words, now, run, id)',
          'is_charged = true',
        ],
        ['or log.tables.units(log, words, log.p, now, id) ~= run.units then return', 'then return'],
      ],
    'limits/repeats > Redis > nor is the other when the first has left its window': [
      ['if run.charged[i] and is_charged then', 'if run.charged[i] then'],
      ['if log.entries == entries and not log.is_shadow then', 'if false then'],
      ['reply[filled + i] = returned', 'reply[filled + i] = 0'],
    ],
    "conformance > a release that comes too late frees nobody else's": [
      [
        'if is_counted then save(log, words, clock) elseif not log.is_shadow then is_held = 0 end',
        'if is_counted then save(log, words, clock) end',
      ],
    ],
    'limits/permits > Redis > is held where a shadow limit had no room for it': [
      [
        'if is_counted then save(log, words, clock) elseif not log.is_shadow then is_held = 0 end',
        'if is_counted then save(log, words, clock) else is_held = 0 end',
      ],
    ],
    'conformance > those who hold are shown, with the time of their last renewal': [
      ["if run.type == 'extend' then", 'if false then'],
      ['entries = log.tables.list(log, words, log.p, now)', ''],
    ],
    'histories 1 > concurrency': [
      ["if run.type == 'extend' then", 'if true then'],
      ['reply[filled + 1] = is_held', 'reply[filled + 1] = 1'],
      [
        'if is_counted then save(log, words, clock) elseif not log.is_shadow then is_held = 0 end',
        'if not is_counted and not log.is_shadow then is_held = 0 end',
      ],
    ],
    'limits/travel-together > extend': [
      [
        'if log.entries == HOLDER then\n      local is_counted',
        'if log.entries then\n      local is_counted',
      ],
    ],
    'limits/travel-together > refund': [['return filled + #logs\n', 'return filled\n']],
    'limits/travel-together > settle': [
      ['elseif rest < 0 and run.charged[i] and charged_at', 'elseif rest < 0 and charged_at'],
    ],
    'conformance > of several who settle at once one does': [
      ['log.tables.refund(log, words, log.p, now, 0, 1, name)\n      save', 'save'],
      ['reply[first + i] = returned', 'reply[first + i] = 0'],
      ['return first + #logs', 'return first'],
    ],
    'conformance > after a reset nothing is to be settled, and nothing is minted': [
      ['if not at_ms then\n        reply', 'if false then\n        reply'],
    ],
    'conformance > what is charged beyond the estimate may pass the limit': [
      ['elseif rest > 0 and log.kind ~= 8 then', 'elseif false then'],
      ['lease_ms = 0, is_forced = true, id = name })', 'lease_ms = 0, id = name })'],
      ['reply[first] = 1\n', '\n'],
    ],
    'conformance > a settlement is no holder': [['if log.entries ~= HOLDER then', 'if true then']],
    'conformance > it tells the charges that count, by their stamps, where it is asked for them and the kind keeps them':
      [
        ['age, units = now - charges[at_charge],', 'age, units = charges[at_charge] - now,'],
        ['if at_charge > 1 and charges[at_charge] == charges[at_charge - 2] then', 'if false then'],
        ['reply[filled + 1] = (last - filled - 1) / 2', 'reply[filled + 1] = #charges / 2'],
      ],
    'conformance > an explanation tells what is used, since when, and when it is free again': [
      ['words[i] - used + units, look)', 'words[i] - used - units, look)'],
      ['times = 11', 'times = 10'],
      ['tenth == 0 and 1 or math.ceil(used * tenth / 10)', 'math.ceil(used * tenth / 10)'],
      ['reply[filled + 1] = times', 'reply[filled + 1] = 0'],
    ],
    'limits/ban-kind > denials bring a ban on > each of several requests that are decided together counts, and brings on one ban at most':
      [['and 0 or wanted - all', 'and 0 or wanted']],
    'histories 1 > bans': [['if is_saved then blocked, is_written = math.max(blocked, ms), true end', '']],
    'conformance > requests that are denied together count one by one': [
      [
        'reply[filled + 3], reply[filled + 1], reply[filled + 2] = log',
        'reply[filled + 1], reply[filled + 2], reply[filled + 3] = log',
      ],
    ],
    'conformance > of several keys those are blocked whose limits have denied': [
      ['is_denied = is_denied or op.denied[i] end', 'is_denied = true end'],
    ],
    'limits/ban-kind > what does not count as a denial > one of a caller that waits': [
      [
        '(is_again or op.is_blocked or op.is_waiting or op.is_look) and 0',
        '(is_again or op.is_blocked or op.is_look) and 0',
      ],
    ],
    'conformance > denials bring on a ban, the last of them says so': [
      [
        'if is_again or blocked > 0 or op.is_blocked and #bans > 0 then',
        'if is_again or op.is_blocked and #bans > 0 then',
      ],
      ['reply[filled + 3] = blocked', 'reply[filled + 3] = 0'],
    ],
    'conformance > equal requests that come at once are one': [
      [
        'if is_again or blocked > 0 or op.is_blocked and #bans > 0 then',
        'if blocked > 0 or op.is_blocked and #bans > 0 then',
      ],
      ['is_again and op.again_units or 0\n', '0\n'],
    ],
    'traps/other-logs > out of memory, > what would be written is refused, and nothing is half written': [
      [
        'pcall(tables.save, log, words, ban.p, clock, clock ~= reply[1])',
        'true, tables.save(log, words, ban.p, clock, clock ~= reply[1])',
      ],
    ],
    'limits/every-kind > about so many different values in Redis > has one key, which expires a while after it is empty':
      [
        ["call_redis('DEL', log.key)\n", '\n'],
        ['if log.tables.reset then log.tables.reset(log) end', ''],
      ],
  },
}
