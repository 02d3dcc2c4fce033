import type { Mutants } from '../mutant.ts'

export const fixedWindowUsual: Mutants = {
  part: 'limits/fixed-window-usual.lua',
  mutants: {
    'conformance > from the first hit on, a window begins with the first charge': [
      ['now - length + 1 or now - now % length', 'now - now % length or now - now % length'],
      ['(from_first_hit and since or since - since % length)', '(since - since % length)'],
    ],
    'histories 1 > bursts': [
      ['if stamp >= start and units > 0 then since, used, is_new = stamp, units, false end', ''],
      ['if free < cost * fitting then fitting = free < cost and 0 or (free - free % cost) / cost end', ''],
      ['used + cost * mine + cost\n', 'used + cost * mine\n'],
      ['retry = cost > limit and NEVER or left', 'retry = left'],
      ['(used > 0 or mine > 0) and left or 0', 'left'],
      ["call_redis('SETRANGE', key, '7', struct_pack(NUMBER_FORMAT, units))", ''],
      ['or stamp > now', ''],
    ],
    'traps/what-is-wrong > a fixed window with a byte too many': [
      ['if #raw ~= COUNTER_SIZE then return nil end', ''],
    ],
    "traps/ttl > the first charge in a window gives a key its time, and no other does: '9-per-1h'": [
      ['ttl_of(left, is_clock_given)', "'1'"],
    ],
  },
}
