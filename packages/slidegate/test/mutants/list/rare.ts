import type { Mutants } from '../mutant.ts'

export const rare: Mutants = {
  part: 'ops/rare.lua',
  mutants: {
    'conformance > a renewal after the clock is set back by more than 1 s also updates stored times, so the slot lasts for its ttl':
      [['not (op.is_look and not op.hold)', 'not op.is_look']],
    'limits/ban > bans > count several requests that are decided together, and cause at most one ban': [
      ['and 0 or wanted - all', 'and 0 or wanted'],
    ],
    'histories 1 > bans': [['if is_saved then blocked, is_written = math.max(blocked, ms), true end', '']],
    'conformance > only the keys whose limits denied the request are banned': [
      ['is_denied = is_denied or denied > 0 and op.denied[i] end', 'is_denied = denied > 0 end'],
    ],
    'conformance > repeated denials cause a ban, which the last denial reports': [
      ['reply[filled + 3] = blocked', 'reply[filled + 3] = 0'],
    ],
    'conformance > simultaneous requests with the same id count as one': [
      [
        'if is_again or blocked > 0 or op.is_blocked and #bans > 0 then',
        'if blocked > 0 or op.is_blocked and #bans > 0 then',
      ],
      ['is_again and op.again_units or 0\n', '0\n'],
    ],
    'redis/reservations-and-overrides > without free memory > writes are rejected, and none is partial': [
      [
        'pcall(tables.save, log, words, ban.p, clock, clock ~= reply[1])',
        'true, tables.save(log, words, ban.p, clock, clock ~= reply[1])',
      ],
    ],
    'limits/every-kind > an approximate distinct-value limit in Redis > uses one key, which expires some time after it is empty':
      [
        ['if reason or other then', 'if reason then'],
        [
          'return refund and refund(log, words, log.p, now, at_ms, units, id, clock ~= reply[1]) or 0',
          'return refund(log, words, log.p, now, at_ms, units, id, clock ~= reply[1])',
        ],
      ],
  },
}
