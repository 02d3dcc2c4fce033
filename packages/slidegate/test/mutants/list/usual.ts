import type { Mutants } from '../mutant.ts'

export const usual: Mutants = {
  part: 'stores/redis/usual.lua',
  mutants: {
    'histories 1 > bursts': [
      ['last, is_shadow = -last, true', 'last = -last'],
      ['if numbers[last + 1] then', 'if false then'],
      ['is_shadow and admitted or fitting', 'fitting'],
      ['if not all then return nil end', 'all = all or 0'],
      ['fitting < all and fitting or all', 'all'],
      ['if mine > 0 then', 'if true then'],
      ['return all, filled', 'return fitting, filled'],
    ],
  },
}
