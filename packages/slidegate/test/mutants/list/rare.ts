import type { Mutants } from '../mutant.ts'

export const rare: Mutants = {
  part: 'stores/redis/rare.lua',
  mutants: {
    'limits/repeats > Redis > nor both when the clock was set back in between': [
      ['or entries == REQUEST and at_ms ~= run.atMs then', 'then'],
    ],
    'limits/repeats > Redis > a decision on a request that was returned takes nothing back of another of its id':
      [
        [
          'is_charged = not run.mayRepeat or is_still_charged(logs, words, now, run, id)',
          'is_charged = true',
        ],
        ['if units ~= run.units or', 'if'],
      ],
    'limits/repeats > Redis > nor is the other when the first has left its window': [
      ['is_charged and run.charged[i]', 'run.charged[i]'],
      ['if log.entries == entries and not log.is_shadow then', 'if false then'],
      ['is_mine and return_charge(log, words, now, clock, run.atMs, run.units, id) or 0', '0'],
    ],
    'conformance > those who hold are shown, with the time of their last renewal': [
      ['list and list(log, words, log.p, now) or {}', '{}'],
    ],
    'conformance > a refund returns the very units that were charged': [
      ['if returned > 0 then save(log, words, clock) end', ''],
    ],
    'limits/travel-together > refund': [['return filled + #logs\n', 'return filled\n']],
    'limits/travel-together > settle': [
      ['elseif rest < 0 and run.charged[i] and charged_at', 'elseif rest < 0 and charged_at'],
    ],
    'conformance > of several who settle at once one does': [
      ['return_charge(log, words, now, clock, 0, 1, name)', ''],
      ['reply[first + i] = return_charge(', 'local _ = return_charge('],
      ['return first + #logs', 'return first'],
    ],
    'conformance > after a reset nothing is to be settled, and nothing is minted': [
      ['if not at_ms then\n        reply', 'if false then\n        reply'],
    ],
    'conformance > what is charged beyond the estimate may pass the limit': [
      ['elseif rest > 0 and log.kind ~= 8 and log.entries ~= HOLDER then', 'elseif false then'],
      ['lease_ms = 0, is_forced = true, id = name })', 'lease_ms = 0, id = name })'],
      ['reply[first] = 1\n', '\n'],
    ],
    'conformance > a settlement is no holder': [
      ['log.kind ~= 8 and log.entries ~= HOLDER then', 'log.kind ~= 8 then'],
    ],
    'conformance > it tells the charges that count, by their stamps, where it is asked for them and the kind keeps them':
      [
        ['age, units = now - charges[at_charge],', 'age, units = charges[at_charge] - now,'],
        ['if at_charge > 1 and charges[at_charge] == charges[at_charge - 2] then', 'if false then'],
        ['reply[filled + 1] = (last - filled - 1) / 2', 'reply[filled + 1] = #charges / 2'],
      ],
    'conformance > an explanation tells what is used, since when, and when it is free again': [
      ['words[i] - used + units, look)', 'words[i] - used - units, look)'],
      ['used > 0 and 10 or -1', 'used > 0 and 9 or -1'],
      ['tenth == 0 and 1 or math.ceil(used * tenth / 10)', 'math.ceil(used * tenth / 10)'],
      ['reply[filled + 1], filled = tenths + 1, filled + 1', 'reply[filled + 1], filled = 0, filled + 1'],
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
      ['is_denied = is_denied or denied > 0 and op.denied[i] end', 'is_denied = denied > 0 end'],
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
        ['if reason or other then', 'if reason then'],
        ['local returned = refund and refund(', 'local returned = refund('],
      ],
  },
}
