import type { Mutants } from '../mutant.ts'

export const rare: Mutants = {
  part: 'ops/rare.lua',
  mutants: {
    'conformance > a renewal, too, sets all times of the key right, so that it lasts for its ttl': [
      ['not (op.is_look and not op.hold)', 'not op.is_look'],
    ],
    'limits/ban > denials bring a ban on > each of several requests that are decided together counts, and brings on one ban at most':
      [['and 0 or wanted - all', 'and 0 or wanted']],
    'histories 1 > bans': [['if is_saved then blocked, is_written = math.max(blocked, ms), true end', '']],
    'conformance > of several keys those are blocked whose limits have denied': [
      ['is_denied = is_denied or denied > 0 and op.denied[i] end', 'is_denied = denied > 0 end'],
    ],
    'conformance > denials bring on a ban, the last of them says so': [
      ['reply[filled + 3] = blocked', 'reply[filled + 3] = 0'],
    ],
    'conformance > equal requests that come at once are one': [
      [
        'if is_again or blocked > 0 or op.is_blocked and #bans > 0 then',
        'if blocked > 0 or op.is_blocked and #bans > 0 then',
      ],
      ['is_again and op.again_units or 0\n', '0\n'],
    ],
    'redis/reservations-and-overrides > out of memory, > what would be written is refused, and nothing is half written':
      [
        [
          'pcall(tables.save, log, words, ban.p, clock, clock ~= reply[1])',
          'true, tables.save(log, words, ban.p, clock, clock ~= reply[1])',
        ],
      ],
    'limits/every-kind > about so many different values in Redis > has one key, which expires a while after it is empty':
      [
        ['if reason or other then', 'if reason then'],
        [
          'return refund and refund(log, words, log.p, now, at_ms, units, id, clock ~= reply[1]) or 0',
          'return refund(log, words, log.p, now, at_ms, units, id, clock ~= reply[1])',
        ],
      ],
  },
}
