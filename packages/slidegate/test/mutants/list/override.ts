import type { Mutants } from '../mutant.ts'

export const override: Mutants = {
  part: 'limits/override.lua',
  mutants: {
    'conformance > an override is in force for its key, in every process, until it is deleted': [
      ['return ends == FOREVER and FOREVER or math.max(0, ends - clock)', 'return math.min(0, ends - clock)'],
      ["local rule_ms = record.rule == '' and 0 or left_of(record.ends, clock)", 'local rule_ms = 0'],
      ['if own then (renumber[declared.kind] or renumber_limit)(params, j, own) end', ''],
      [
        'logs.is_overridden, logs.blocked_ms = true, math.max',
        'logs.is_overridden, logs.blocked_ms = false, math.max',
      ],
      ['reply[filled + 1] = OVERRIDDEN', 'reply[filled + 1] = 0'],
      ["reply[filled + 1] = told and told.rule or ''", "reply[filled + 1] = ''"],
      ["call_redis('DEL', key)", ''],
      ["if ttl then call_redis('SET', key, raw, 'PX', ttl) else call_redis('SET', key, raw) end", ''],
      [
        "record.rule = run.rule or before and before.rule or ''",
        "record.rule = before and before.rule or ''",
      ],
      ['if run.rule then record.ends =', 'if not run.rule then record.ends ='],
      ['return before and true or false', 'return true'],
    ],
    'conformance > overrides are listed with the keys that they were set for': [
      ["call_redis('ZADD', index, '0', name)", ''],
      [
        'return string_sub(index, 1, -1 - INDEX_LENGTH) .. name',
        'return string_sub(index, 1, -INDEX_LENGTH) .. name',
      ],
      ['local given = run.given and run.given[stored.part] or given_of(record)', "local given = ''"],
      ['page[at + 1], page[at + 2], page[at + 3] = name, given_of(record), told.rule', ''],
      ['page[at + 4], page[at + 5] = text_of(told.rule_ms), text_of(told.blocked_ms)', ''],
    ],
    'overrides/overrides > overrides in Redis with one bucket > a list of more than a page is whole, and has each once':
      [
        ["'(' .. after", "'[' .. after"],
        ['if i == OVERRIDES_PAGE or', 'if'],
        ['page[1] = name', ''],
      ],
    'conformance > an override may end by itself, and what was used under it counts on': [
      ['math.max(0, ends - clock)\nend', 'math.max(1, ends - clock)\nend'],
      ['FOREVER and FOREVER or clock + ms', 'FOREVER and FOREVER or ms'],
    ],
    'conformance > numbers of every kind change on the log that there is': [
      ['params.limits[j] = units\n  if', 'if'],
      ['params.limits, params.windows = { unpack(declared.limits) }, { unpack(declared.windows) }', ''],
      ['local units, window = own.limit or params.limits[j],', 'local units, window = params.limits[j],'],
    ],
    'conformance > a bucket is given another capacity and refill': [
      ['params.limits[j], params.windows[j], params.refill = capacity, fill, refill', ''],
      [
        'own.capacity or params.limits[j], own.refill or params.refill,',
        'params.limits[j], own.refill or params.refill,',
      ],
      ['own.refill or params.refill, params.parts', 'params.refill, params.parts'],
    ],
    'conformance > a window is made longer and shorter': [
      ['own.windowMs or params.windows[j] - precision + 1', 'params.windows[j] - precision + 1'],
      ['params.limits[j], params.windows[j] = units, window + precision - 1', 'params.limits[j] = units'],
    ],
    'conformance > names that a plan does not have are unused, and used again when it has': [
      ['if not units or own.windowMs or', 'if not units or'],
    ],
    'conformance > what would not survive a change of numbers is refused, with what to write': [
      ["or is_only and numbers['']", ''],
    ],
    'conformance > the limits of an exempt key only count': [
      ["declared.shadow or rule == 'exempt'", 'declared.shadow'],
      [
        'reply[filled + 2], reply[filled + 3] = told and told.rule_ms or 0,',
        'reply[filled + 2], reply[filled + 3] = 0,',
      ],
    ],
    'conformance > a block denies in any dimension, leaves the numbers, and ends': [
      ['math.max(logs.blocked_ms, each.in_force.blocked_ms)', 'logs.blocked_ms'],
      ['told and told.blocked_ms or 0\n', '0\n'],
      ['run.blockMs == 0 and 0 or ends_of(run.blockMs)', '0'],
      ['if run.blockMs then record.blocked', 'if not run.blockMs then record.blocked'],
    ],
  },
}
