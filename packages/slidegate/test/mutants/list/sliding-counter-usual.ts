import type { Mutants } from '../mutant.ts'

export const slidingCounterUsual: Mutants = {
  part: 'limits/sliding-counter-usual.lua',
  mutants: {
    'histories 1 > bursts': [
      ['current, previous = 0, stamp == start - window and current or 0', 'current, previous = 0, 0'],
      ['math.floor((now - start) / precision)', 'math.ceil((now - start) / precision)'],
      ['if free < cost * fitting then fitting = free < cost and 0 or (free - free % cost) / cost end', ''],
      ['counted = current + cost * mine', 'counted = current'],
      ['start + 2 * window - now or', 'start + window - now or'],
      ['if room < 0 then', 'if false then'],
      ['if counted <= room then units, free, ends = previous, room - counted, start end', ''],
      ['elapsed * precision or window', 'elapsed * precision or 0'],
      ['since = now end', 'end'],
    ],
    'traps/what-is-wrong > a sliding counter with a byte too many': [
      ['if #raw ~= TWO_WINDOWS_SIZE then return nil end', ''],
    ],
  },
}
