import type { Mutants } from '../mutant.ts'

export const operations: readonly Mutants[] = [
  {
    part: 'ops/explain.lua',
    mutants: {
      'conformance > it tells the charges that count, by their stamps, where it is asked for them and the kind keeps them':
        [
          ['age, units = now - charges[at_charge],', 'age, units = charges[at_charge] - now,'],
          ['if at_charge > 1 and charges[at_charge] == charges[at_charge - 2] then', 'if false then'],
          ['reply[filled + 1] = (last - filled - 1) / 2', 'reply[filled + 1] = #charges / 2'],
        ],
      'conformance > an explanation tells what is used, since when, and when it is free again': [
        ['words[i] - used + units, look)', 'words[i] - used - units, look)'],
        ['used > 0 and 10 or -1', 'used > 0 and 9 or -1'],
        ['tenth == 0 and 1 or math.ceil(used * tenth / 10)', 'math.ceil(used * tenth / 10)'],
        ['reply[filled + 1], filled = tenths + 1, filled + 1', 'reply[filled + 1], filled = 0, filled + 1'],
      ],
      'conformance > requests that are denied together count one by one': [
        [
          'reply[filled + 3], reply[filled + 1], reply[filled + 2] = log',
          'reply[filled + 1], reply[filled + 2], reply[filled + 3] = log',
        ],
      ],
    },
  },
  {
    part: 'ops/list.lua',
    mutants: {
      'conformance > those who hold are shown, with the time of their last renewal': [
        ['list and list(log, words, log.p, now) or {}', '{}'],
      ],
    },
  },
  {
    part: 'ops/override.lua',
    mutants: {
      'conformance > an override is in force for its key, in every process, until it is deleted': [
        ["call_redis('DEL', key)\n", '\n'],
        ["if ttl then call_redis('SET', key, raw, 'PX', ttl) else call_redis('SET', key, raw) end", ''],
        ["if run.rule then rule, ends = run.rule, run.rule == '' and 0 or ends_of(run.ruleMs) end", ''],
        ['existed = blocked + ends > 0', 'existed = true'],
        ['clock ~= reply[1]) then existed = 1 end', 'clock ~= reply[1]) then existed = 0 end'],
      ],
      'conformance > an override may end by itself, and what was used under it counts on': [
        ['ms >= FOREVER and FOREVER or clock + ms', 'ms >= FOREVER and FOREVER or ms'],
      ],
      'conformance > a block denies in any dimension, leaves the numbers, and ends': [
        ['run.blockMs == 0 and 0 or ends_of(run.blockMs) end', '0 end'],
      ],
      'conformance > overrides are listed with the keys that they were set for': [
        ["call_redis('ZADD', index, '0', name)", ''],
        ['(given or known)', "''"],
      ],
      'conformance > a ban is lifted with a block, and an exempt key is not banned': [
        ['if run.blockMs == 0 and not run.rule then', 'if false then'],
        ['log.tables.unblock(log)', ''],
      ],
    },
  },
  {
    part: 'ops/overrides.lua',
    mutants: {
      'limiter/overrides > overrides in Redis with one bucket > a list of more than a page is whole, and has each once':
        [
          ["run.after == '' and '-' or '(' .. run.after", "run.after == '' and '-' or '[' .. run.after"],
          ['if i == OVERRIDES_PAGE or bytes >= PAGE_BYTES then', 'if bytes >= PAGE_BYTES then'],
          ['told[1] = name\n', '\n'],
        ],
      'conformance > overrides are listed with the keys that they were set for': [
        ['told[#told + 1], told[#told + 2] = name, raw', 'told[#told + 1], told[#told + 2] = raw, raw'],
      ],
    },
  },
  {
    part: 'ops/refund.lua',
    mutants: {
      'limits/repeats > Redis > a decision on a request that was returned takes nothing back of another of its id':
        [
          [
            'is_charged = not run.mayRepeat or is_still_charged(logs, words, now, run, id)',
            'is_charged = true',
          ],
          ['if units ~= run.units or', 'if'],
        ],
      'limits/repeats > Redis > nor is the other when the first has left its window': [
        ['is_charged and run.charged[i]', 'run.charged[i]'],
        ['if log.entries == entries and not log.is_shadow then', 'if false then'],
        ['is_mine and return_charge(log, words, now, clock, run.atMs, run.units, id) or 0', '0'],
      ],
      'redis/travel-together > refund': [['return filled + #logs\n', 'return filled\n']],
    },
  },
  {
    part: 'ops/reset.lua',
    mutants: {
      'limits/every-kind > about so many different values in Redis > has one key, which expires a while after it is empty':
        [
          ["call_redis('DEL', log.key)\n", '\n'],
          ['if log.tables.reset then log.tables.reset(log) end', ''],
        ],
    },
  },
  {
    part: 'ops/settle.lua',
    mutants: {
      'redis/travel-together > settle': [
        ['elseif rest < 0 and run.charged[i] and charged_at', 'elseif rest < 0 and charged_at'],
      ],
      'conformance > of several who settle at once one does': [
        ['return_charge(log, words, now, clock, 0, 1, name)', ''],
        ['reply[first + i] = return_charge(', 'local _ = return_charge('],
        ['return first + #logs', 'return first'],
      ],
      'conformance > after a reset nothing is to be settled, and nothing is minted': [
        ['if not at_ms then\n        reply', 'if false then\n        reply'],
      ],
      'conformance > what is charged beyond the estimate may pass the limit': [
        ['lease_ms = 0, is_forced = true, id = name })', 'lease_ms = 0, id = name })'],
        ['reply[first] = 1\n', '\n'],
      ],
      'conformance > a settlement is no holder': [
        ['log.kind ~= 8 and log.entries ~= HOLDER then', 'log.kind ~= 8 then'],
      ],
    },
  },
]
