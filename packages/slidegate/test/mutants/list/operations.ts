import type { Mutants } from '../mutant.ts'

export const operations: readonly Mutants[] = [
  {
    part: 'ops/explain.lua',
    mutants: {
      'conformance > explain with charges lists the charges that count, if the kind of limit stores them': [
        ['age, units = now - charges[at_charge],', 'age, units = charges[at_charge] - now,'],
        ['if at_charge > 1 and charges[at_charge] == charges[at_charge - 2] then', 'if false then'],
        ['reply[filled + 1] = (last - filled - 1) / 2', 'reply[filled + 1] = #charges / 2'],
      ],
      'conformance > explain reports the usage, when it started and when units become free': [
        ['words[i] - used + units, look)', 'words[i] - used - units, look)'],
        ['used > 0 and 10 or -1', 'used > 0 and 9 or -1'],
        ['tenth == 0 and 1 or math.ceil(used * tenth / 10)', 'math.ceil(used * tenth / 10)'],
        ['reply[filled + 1], filled = tenths + 1, filled + 1', 'reply[filled + 1], filled = 0, filled + 1'],
      ],
      'conformance > requests that are denied in one batch count separately': [
        [
          'reply[filled + 3], reply[filled + 4], reply[filled + 1], reply[filled + 2] = log',
          'reply[filled + 1], reply[filled + 2], reply[filled + 3], reply[filled + 4] = log',
        ],
      ],
      'conformance > explain reports a ban, and the state that the limits would have without it': [
        [
          'reply[filled + 3], reply[filled + 4], reply[filled + 1]',
          'reply[filled + 4], reply[filled + 3], reply[filled + 1]',
        ],
      ],
    },
  },
  {
    part: 'ops/list.lua',
    mutants: {
      'conformance > the list shows holders with the time of their last renewal': [
        ['list and list(log, words, log.p, now) or {}', '{}'],
      ],
    },
  },
  {
    part: 'ops/override.lua',
    mutants: {
      'conformance > an override applies to its key, in every process, until it is deleted': [
        ["call_redis('DEL', key)\n", '\n'],
        ["if ttl then call_redis('SET', key, raw, 'PX', ttl) else call_redis('SET', key, raw) end", ''],
        ["if run.rule then rule, ends = run.rule, run.rule == '' and 0 or ends_of(run.ruleMs) end", ''],
        ['existed = blocked + ends > 0', 'existed = true'],
        ['clock ~= reply[1]) then existed = 1 end', 'clock ~= reply[1]) then existed = 0 end'],
      ],
      'conformance > an override can expire, and the usage until then still counts': [
        ['ms >= FOREVER and FOREVER or clock + ms', 'ms >= FOREVER and FOREVER or ms'],
      ],
      "conformance > a block denies requests in its dimension, keeps the override's numbers, and expires": [
        ['run.blockMs == 0 and 0 or ends_of(run.blockMs) end', '0 end'],
      ],
      'conformance > overrides are listed with their keys': [
        ["call_redis('ZADD', index, '0', name)", ''],
        ['(given or known)', "''"],
      ],
      'conformance > unblocking a key also lifts its ban, and an exempt key is never banned': [
        ['if run.blockMs == 0 and not run.rule then', 'if false then'],
        ['log.tables.unblock(log)', ''],
      ],
    },
  },
  {
    part: 'ops/overrides.lua',
    mutants: {
      'limiter/overrides > overrides in Redis with one bucket > appear once each in a list of several pages':
        [
          ["run.after == '' and '-' or '(' .. run.after", "run.after == '' and '-' or '[' .. run.after"],
          ['if i == OVERRIDES_PAGE or bytes >= PAGE_BYTES then', 'if bytes >= PAGE_BYTES then'],
          ['told[1] = name\n', '\n'],
        ],
      'conformance > overrides are listed with their keys': [
        ['told[#told + 1], told[#told + 2] = name, raw', 'told[#told + 1], told[#told + 2] = raw, raw'],
      ],
    },
  },
  {
    part: 'ops/refund.lua',
    mutants: {
      "limits/repeats > Redis > doesn't refund a later request with the same id for the decision on an earlier one":
        [
          [
            'is_charged = not run.mayRepeat or is_still_charged(logs, words, now, run, id)',
            'is_charged = true',
          ],
          ['if units ~= run.units or', 'if'],
        ],
      "limits/repeats > Redis > doesn't refund the other when the first has left its window": [
        ['is_charged and run.charged[i]', 'run.charged[i]'],
        ['if log.entries == entries and not log.is_shadow then', 'if false then'],
        ['is_mine and return_charge(log, words, now, clock, run.atMs, run.units, id) or 0', '0'],
      ],
      'redis/travel-together > refund in a batch gets the same answer as alone': [
        ['return filled + #logs\n', 'return filled\n'],
      ],
    },
  },
  {
    part: 'ops/reset.lua',
    mutants: {
      'limits/every-kind > an approximate distinct-value limit in Redis > uses one key, which expires some time after it is empty':
        [
          ["call_redis('DEL', log.key)\n", '\n'],
          ['if log.tables.reset then log.tables.reset(log) end', ''],
        ],
    },
  },
  {
    part: 'ops/settle.lua',
    mutants: {
      'histories 1 > long streams': [
        ['elseif rest < 0 and run.charged[i] and charged_at', 'elseif rest < 0 and charged_at'],
      ],
      'conformance > only one of several simultaneous settlements succeeds': [
        ['return_charge(log, words, now, clock, 0, 1, name)', ''],
        ['reply[first + i] = return_charge(', 'local _ = return_charge('],
        ['return first + #logs', 'return first'],
      ],
      "conformance > after a reset, a reservation can't be settled and adds no quota": [
        ['if not at_ms then\n        reply', 'if false then\n        reply'],
      ],
      'conformance > a charge beyond the estimate can exceed the limit': [
        ['lease_ms = 0, is_forced = true, id = name })', 'lease_ms = 0, id = name })'],
        ['reply[first] = 1\n', '\n'],
      ],
      'conformance > a settlement holds no slot': [
        ['log.kind ~= 8 and log.entries ~= HOLDER then', 'log.kind ~= 8 then'],
      ],
    },
  },
]
