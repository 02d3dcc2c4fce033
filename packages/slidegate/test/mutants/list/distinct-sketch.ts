import type { Mutants } from '../mutant.ts'

export const distinctSketch: Mutants = {
  part: 'limits/distinct-sketch.lua',
  withoutShortCut: true,
  mutants: {
    'limits/distinct-sketch > sketches of an earlier log are ignored': [
      ["if age < log.begun then call_redis('DEL', sketch) end", ''],
      ["if raw == '' then return nil end", ''],
    ],
    'limits/distinct-sketch > all keys of a log expire, also one that was lost and comes again': [
      ["if changed == 1 or log.restamped then call_redis('PEXPIRE', sketch, ttl) end", ''],
    ],
    'limits/distinct-sketch > after the clock was set back all keys live on': [
      ['if changed == 1 or log.restamped then', 'if changed == 1 then'],
      ['if log.begun > 0 or log.restamped then', 'if log.begun > 0 then'],
    ],
    'limits/distinct-sketch > what is no sketch in place of a sketch is refused, and harms no other op': [
      ["if type(count) == 'table' then error({ unusable = count.err }) end", ''],
      ['count_since(log, age)\n        call_redis', 'call_redis'],
      [
        "changed = pcall_redis('PFADD', sketch, log.added)",
        "changed = call_redis('PFADD', sketch, log.added)",
      ],
    ],
    'limits/distinct-sketch > by a clock that begins at 0 it counts as by any other': [
      ['log.stamp, log.place = -SUB_WINDOWS * log.params.precision, 0', 'log.stamp, log.place = 0, 0'],
    ],
    'limits/distinct-sketch > a log of another length, or whose numbers lead nowhere, is refused': [
      ['#raw == SKETCHES_SIZE and', ''],
      ['log.stamp % log.params.precision == 0 and', ''],
      ['and log.place < SUB_WINDOWS then', 'then'],
    ],
    'limits/distinct-sketch > a count that a damaged sketch claims stays below the greatest number of units':
      [['return math.min(count, MAX_UNITS)', 'return count']],
    'limits/distinct-sketch > at its limit a key is denied for all values, and told how, on Redis': [
      ['count_since(log, age) + cost > params.limits[i] do', 'count_since(log, age) > params.limits[i] do'],
      ['(SUB_WINDOWS - 1 - age) * params', '(SUB_WINDOWS - age) * params'],
      ['log.stamp + SUB_WINDOWS * params.precision - now)', 'log.stamp + params.precision - now)'],
      ['return SUB_WINDOWS - 1 - passed(log, params, now)', 'return SUB_WINDOWS - passed(log, params, now)'],
    ],
    'limits/distinct-sketch > memory, Redis and a model that keeps the tenth of each value agree > history 0':
      [
        ['(log.place - age) % SUB_WINDOWS', 'log.place'],
        ['log.begun = passed(log, params, now)', 'log.begun = 0'],
        ['for age = 0, SUB_WINDOWS - 1 do\n    local sketch', 'for age = 0, 0 do\n    local sketch'],
        ['if age < 0 then return 0 end', ''],
      ],
    'conformance > an approximate limit counts a value to the end of a tenth': [
      ['if cost > params.limits[i] then return NEVER end', 'if true then return NEVER end'],
    ],
    'limits/distinct-sketch > memory, Redis and a model that keeps the tenth of each value agree > history 1':
      [
        ['(log.place + log.begun) % SUB_WINDOWS', 'log.place'],
        ['log.stamp, log.restamped = now - now % params.precision, true', 'log.restamped = true'],
      ],
    'limits/every-kind > about so many different values in Redis > has one key, which expires a while after it is empty':
      [
        ['local ttl = ttl_of(SUB_WINDOWS * log', 'local ttl = ttl_of(log'],
        ["for age = 0, SUB_WINDOWS - 1 do call_redis('DEL', sketch_of(log, age)) end", ''],
      ],
    'limits/every-kind > about so many different values in Redis > charges nothing where memory is full, and goes on to deny':
      [["count_since(log, age)\n        call_redis('PFADD', sketch, log.added)", 'count_since(log, age)']],
    'traps/what-is-wrong > about so many different values': [
      ["if type(raw) ~= 'string' then return raw.err end", ''],
    ],
    'limits/every-kind > about so many different values in Redis > refuses "what is no log" in its place, and leaves it as it is':
      [["return 'not a distinct sketch of format 1'", 'return nil']],
    'conformance > an approximate limit denies known values too while it is reached': [
      ['used[1] = count_since(log, oldest_age(log, params, now))', 'used[1] = 0'],
    ],
  },
}
