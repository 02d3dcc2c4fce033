import type { Mutants } from '../mutant.ts'

export const consume: Mutants = {
  part: 'ops/consume.lua',
  mutants: {
    "conformance > denied requests don't delay the next admission": [
      ['is_shadow = KEYS[k],', 'is_shadow = KEYS[1],'],
    ],
    'conformance > peek reports what consume would decide': [
      ['last, is_shadow = -last, true', 'is_shadow = true'],
      ['fitting, answer = admitted, place', 'fitting, answer = wanted, place'],
      ['answer - 1', 'answer'],
      ['  if next_log then', '  if false then'],
      ['last + 1, k + 1, answer, all', 'last + 1, k, answer, all'],
    ],
    'conformance > a charge can exceed the limit and counts like an admitted request': [
      ['then fitting, all = wanted, wanted end', 'then fitting = wanted end'],
    ],
    'histories 1 > sliding, clock set back': [
      ['return nil, filled', 'return nil'],
      ['    elseif op.is_look then\n      mine = 0\n', ''],
      ['return all, filled\nend', 'return mine, filled\nend'],
    ],
    'conformance > after the clock is set back to an earlier month, later usage still counts': [
      [
        'asked, is_look = fitting < all and fitting or all, wanted, false',
        'asked, is_look = fitting < all and fitting or all, wanted, true',
      ],
    ],
    'conformance > a renewal after the clock is set back by more than 1 s also updates stored times, so the slot lasts for its ttl':
      [['op.is_look and not op.hold', 'op.is_look']],
    'conformance > a repeated request is refunded once': [
      ['if op.again_at and not op.is_blocked then', 'if false then'],
      ['mine, asked = 0, 0', 'asked = 0'],
    ],
  },
}
