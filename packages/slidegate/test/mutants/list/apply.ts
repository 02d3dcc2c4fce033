import type { Mutants } from '../mutant.ts'

export const apply: Mutants = {
  part: 'stores/redis/apply.lua',
  withoutShortCut: true,
  mutants: {
    'limits/ban-kind > the key in Redis > by a clock that is handed in, ten minutes at least': [
      ['run.is_clock_given = is_clock_given', ''],
    ],
    'traps/damaged-state > an override > "1 0 0" is unavailable, and is left alone': [
      ['reason\n  return filled + 2, keys_after', 'reason\n  return filled - 2, keys_after'],
      [
        'reply[filled + 1], reply[filled + 2] = UNREADABLE, reason',
        'reply[filled], reply[filled + 2] = UNREADABLE, reason',
      ],
    ],
    'conformance > a calendar is spelt by its limit, and says what its windows are about': [
      ["if run.type == 'reset' then", 'if true then'],
      ['local damage = load(logs, keys_read)', 'local damage'],
    ],
    'histories 1 > distinct, clock set back': [
      ['if damage then', 'if true then'],
      ['if not ops[run.type] then beyond() end', ''],
      ['if is_done then return result, keys_after end', ''],
    ],
    'limits/every-kind > about so many different values in Redis > has one key, which expires a while after it is empty':
      [
        ["call_redis('DEL', log.key)", ''],
        ['if log.kind.reset then log.kind.reset(log) end', ''],
      ],
    'traps/damaged-state > a sliding counter > a counter in its place is unavailable, and left alone': [
      ['   return filled + 2, keys_after', '   return filled - 2, keys_after'],
    ],
    'traps/damaged-state > a sliding window > a list in its place is unavailable, and left alone': [
      [
        'reply[filled + 1], reply[filled + 2] = UNREADABLE, damage',
        'reply[filled + 1], reply[filled - 2] = UNREADABLE, damage',
      ],
    ],
    'conformance > a clock that was set back does not make a lease longer': [
      ["params.kind, params.precision, params.records = 'w', first, second", "params.kind = 'w'"],
    ],
  },
}
