import type { Mutants } from '../mutant.ts'

export const distinctSketch: Mutants = {
  part: 'limits/distinct-sketch.lua',
  mutants: {
    'limits/distinct-sketch > a log of another length, or whose numbers lead nowhere, is refused': [
      ["LAST_OF_SKETCHES = '8'", "LAST_OF_SKETCHES = '7'"],
      [
        'stamp % precision ~= 0 or turn >= SUB_WINDOWS then return nil',
        'stamp % precision ~= 0 or turn > SUB_WINDOWS then return nil',
      ],
      ['passed = (now - now % precision - stamp) / precision', 'passed = 0'],
    ],
    'limits/every-kind > about so many different values in Redis > has one key, which expires a while after it is empty':
      [
        ['place % SUB_WINDOWS)\nend', 'place)\nend'],
        ['ttl_of(SUB_WINDOWS * precision, clock ~= reply[1])\n', 'ttl_of(precision, clock ~= reply[1])\n'],
      ],
    "limits/every-kind > 'about so many different values', 'Redis' > says when all of it is free, to the millisecond":
      [
        ['if age < 0 then return 0 end', ''],
        [
          'reset = now - now % precision + SUB_WINDOWS * precision - now',
          'reset = now + SUB_WINDOWS * precision - now',
        ],
      ],
    'conformance > an approximate limit counts a value to the end of a tenth': [
      ['sketch_of(key, place - age))\n', 'sketch_of(key, place + age))\n'],
      ['oldest_age = SUB_WINDOWS - 1 - passed', 'oldest_age = SUB_WINDOWS - 2 - passed'],
      ['reply[answer], answer = -1 - used, answer + 1', 'reply[answer], answer = used, answer + 1'],
      [
        'reset = 0, math.max(0, stamp + SUB_WINDOWS * precision - now)',
        'reset = 0, math.max(0, stamp + precision - now)',
      ],
      ['if count + cost <= limit then break end', 'if count + cost < limit then break end'],
      ['stamp + (SUB_WINDOWS - 1 - age) * precision - now', 'stamp + (SUB_WINDOWS - age) * precision - now'],
      [
        'reply[filled + 1], reply[filled + 2], filled = retry, reset, filled + 2',
        'reply[filled + 1], reply[filled + 2], filled = reset, retry, filled + 2',
      ],
    ],
    'limits/distinct-sketch > what is no sketch in place of a sketch is refused, and harms no other op': [
      ["if type(count) == 'table' then return nil, count.err end", ''],
    ],
    'limits/distinct-sketch > a count that a damaged sketch claims stays below the greatest number of units':
      [
        ['return math.min(count, MAX_UNITS)', 'return count'],
        [
          'limit - used < cost and 0 or math.floor((limit - used) / cost) end',
          'math.floor((limit - used) / cost) end',
        ],
      ],
    'limits/distinct-sketch > by a clock that begins at 0 it counts as by any other': [
      ['stamp, turn = -SUB_WINDOWS * precision, 0', 'stamp, turn = 0, 0'],
    ],
    'redis/state-errors > about so many different values': [
      ['return nil, raw.err or NO_SKETCHES', 'return nil, NO_SKETCHES'],
    ],
    "limits/every-kind > 'about so many different values', 'Redis' > a clock set back by 3600000 ms frees nobody, and locks nobody out":
      [
        ['if stamp > now then\n', 'if false then\n'],
        ['stamp, is_restamped = now - now % precision, true', 'is_restamped = true'],
      ],
    'redis/travel-together > about so many different values: what one key has is not what the next one has': [
      ['if mine > 0 then\n  reset = now - now % precision + SUB_WINDOWS * precision - now\nelseif', 'if'],
    ],
    "limits/every-kind > 'about so many different values', 'Redis', among the rest > brings on a ban, during which a decision and an explanation agree":
      [['if op and op.bans and not is_shadow then op.denied[k] = true end', '']],
    'limits/distinct-sketch > at its limit a key is denied for all values, and told how, on Redis': [
      ['while cost <= limit and age >= 0 do', 'while cost < limit and age >= 0 do'],
    ],
    'limits/distinct-sketch > after the clock was set back all keys live on': [
      ['if mine > 0 or is_restamped and not is_look then', 'if mine > 0 then'],
    ],
  },
}
