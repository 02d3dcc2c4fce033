import type { Mutants } from '../mutant.ts'

export const consume: Mutants = {
  part: 'ops/consume.lua',
  mutants: {
    'conformance > hammering while denied does not move the next admission': [
      ['is_shadow = KEYS[k],', 'is_shadow = KEYS[1],'],
    ],
    'conformance > peek answers what consume would, before any charge': [
      ['if last < 0 then last, is_shadow = -last, true end', ''],
      ['last, is_shadow = -last, true', 'last = -last'],
      ['last, is_shadow = -last, true', 'is_shadow = true'],
      ['fitting, answer = admitted, place', 'fitting, answer = wanted, place'],
      ['is_shadow and admitted or fitting', 'fitting'],
      ['is_shadow and admitted or fitting', 'admitted'],
      ['is_shadow and admitted or fitting', 'is_shadow and wanted or fitting'],
      ['answer - 1', 'answer'],
      ['if op and op.is_forced then', 'if op then'],
      ['  if next_log then', '  if false then'],
      ['last + 1, k + 1, answer, all', 'last + 1, k, answer, all'],
      ['k + 1, answer, all', 'k + 1, place, all'],
      ['k + 1, answer, all', 'k + 1, answer, admitted'],
      ['k + 1, answer, all', 'k + 1, answer, wanted'],
    ],
    'conformance > a charge may pass the limit, and counts like any other': [
      ['if op and op.is_forced then fitting, all = wanted, wanted end', ''],
      ['then fitting, all = wanted, wanted end', 'then all = wanted end'],
      ['then fitting, all = wanted, wanted end', 'then fitting = wanted end'],
    ],
    'conformance > shadow limits of equal windows are counted apart': [
      ['k + 1, answer, all', 'k + 1, answer, fitting'],
    ],
    'conformance > several limits are charged all or none': [
      ['    all, filled = next_log(', '    local _\n    _, filled = next_log('],
    ],
    'histories 1 > sliding, clock set back': [
      ['    if not all then return nil, filled end\n', ''],
      ['return nil, filled', 'return nil'],
      ['fitting < all and fitting or all', 'all'],
      ['fitting < all and fitting or all', 'fitting'],
      [
        'asked, is_look = fitting < all and fitting or all, wanted,',
        'asked, is_look = fitting < all and fitting or all, admitted,',
      ],
      ['    is_look = op.is_look and not op.hold\n', ''],
      ['    elseif op.is_look then\n      mine = 0\n', ''],
      ['return all, filled\nend', 'return fitting, filled\nend'],
      ['return all, filled\nend', 'return mine, filled\nend'],
    ],
    'conformance > after the clock was set back, what a month holds counts in the one of now': [
      [
        'asked, is_look = fitting < all and fitting or all, wanted, false',
        'asked, is_look = fitting < all and fitting or all, wanted, true',
      ],
    ],
    'conformance > a renewal, too, sets all times of the key right, so that it lasts for its ttl': [
      ['op.is_look and not op.hold', 'op.is_look'],
    ],
    'conformance > a request that came twice is returned once': [
      ['if op.again_at and not op.is_blocked then', 'if false then'],
      ['mine, asked = 0, 0', 'asked = 0'],
    ],
  },
}
