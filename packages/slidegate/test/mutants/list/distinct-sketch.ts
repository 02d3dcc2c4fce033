import type { Mutants } from '../mutant.ts'

export const distinctSketch: Mutants = {
  part: 'limits/distinct-sketch.lua',
  mutants: {
    'limits/distinct-sketch > a log with another length or impossible numbers is rejected': [
      ["LAST_OF_SKETCHES = '8'", "LAST_OF_SKETCHES = '7'"],
      [
        'stamp % precision ~= 0 or turn >= SUB_WINDOWS then return nil',
        'stamp % precision ~= 0 or turn > SUB_WINDOWS then return nil',
      ],
      ['passed = (now - now % precision - stamp) / precision', 'passed = 0'],
    ],
    'limits/every-kind > an approximate distinct-value limit in Redis > uses one key, which expires some time after it is empty':
      [
        ['place % SUB_WINDOWS)\nend', 'place)\nend'],
        ['ttl_of(SUB_WINDOWS * precision, clock ~= reply[1])\n', 'ttl_of(precision, clock ~= reply[1])\n'],
      ],
    "limits/every-kind > 'an approximate distinct-value limit', 'Redis' > reports when it is unused again, to the millisecond":
      [
        ['if age < 0 then return 0 end', ''],
        [
          'reset = now - now % precision + SUB_WINDOWS * precision - now',
          'reset = now + SUB_WINDOWS * precision - now',
        ],
      ],
    'conformance > an approximate limit counts a value until its whole step has left the window': [
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
    'limits/distinct-sketch > an invalid sketch in place of a sketch is rejected, without affecting other ops':
      [["if type(count) == 'table' then return nil, count.err end", '']],
    'limits/distinct-sketch > the count of a damaged sketch stays below the maximum': [
      ['return math.min(count, MAX_UNITS)', 'return count'],
      [
        'limit - used < cost and 0 or math.floor((limit - used) / cost) end',
        'math.floor((limit - used) / cost) end',
      ],
    ],
    'limits/distinct-sketch > an approximate limit works with a clock that starts at 0': [
      ['stamp, turn = -SUB_WINDOWS * precision, 0', 'stamp, turn = 0, 0'],
    ],
    'redis/state-errors > an approximate distinct-value limit rejects values of another type or format': [
      ['return nil, raw.err or NO_SKETCHES', 'return nil, NO_SKETCHES'],
    ],
    "limits/every-kind > 'an approximate distinct-value limit', 'Redis' > neither frees nor blocks a key when the clock is set back by 3600000 ms":
      [
        ['if stamp > now then\n', 'if false then\n'],
        ['stamp, is_restamped = now - now % precision, true', 'is_restamped = true'],
      ],
    'redis/travel-together > an approximate distinct-value limit keeps the state of keys in one batch separate':
      [['if mine > 0 then\n  reset = now - now % precision + SUB_WINDOWS * precision - now\nelseif', 'if']],
    "limits/every-kind > 'an approximate distinct-value limit', 'Redis', with other operations > causes a ban, on which a decision and an explanation agree":
      [['if op and op.bans and not is_shadow then op.denied[k] = true end', '']],
    'limits/distinct-sketch > a key at its limit is denied for all values on Redis': [
      ['while cost <= limit and age >= 0 do', 'while cost < limit and age >= 0 do'],
    ],
    'limits/distinct-sketch > all keys stay after the clock was set back': [
      ['if mine > 0 or is_restamped and not is_look then', 'if mine > 0 then'],
    ],
  },
}
