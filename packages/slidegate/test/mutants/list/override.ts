import type { Mutants } from '../mutant.ts'

export const override: Mutants = {
  part: 'limits/override.lua',
  mutants: {
    'conformance > an override is in force for its key, in every process, until it is deleted': [
      ['FOREVER = 4503599627370496', 'FOREVER = 450359962737'],
      ['ends == FOREVER and FOREVER or ends > clock', 'ends > clock'],
      ["rule_ms = rule == '' and 0 or left_of(ends, clock)", 'rule_ms = 0'],
      ["return rule_ms == 0 and '' or rule, rule_ms,", "return '', rule_ms,"],
      ['if own then renumber(words, kind, p, at, most + 0, own) end', ''],
      ["if rule ~= '' then apply(changed, logs, rule, numbers) end", ''],
      ['reply[first] = OVERRIDDEN', ''],
      ['return after, numbers, wanted, nil, op', 'return after, words, wanted, nil, op'],
      ['after = rule, rule_ms, blocked_ms,', "after = '', rule_ms, blocked_ms,"],
    ],
    'histories 1 > overrides': [
      ['numbers[name], length = changed,', "numbers[''], length = changed,"],
      ['is_any = is_any or rule_ms + blocked_ms > 0', 'is_any = is_any or rule_ms > 0'],
      ["rules = rules .. '\\n' .. rule", "rules = '\\n' .. rule"],
    ],
    'histories 2 > overrides': [["OVERRIDE_END = ':o'", "OVERRIDE_END = ':p'"]],
    'conformance > an override may end by itself, and what was used under it counts on': [
      ['ends > clock and ends - clock or 0\n', 'ends - clock\n'],
      ['ends > clock and ends - clock or 0\n', 'ends > clock and ends or 0\n'],
    ],
    'histories 1 > overrides and bans, clock set back': [
      ["return rule_ms == 0 and '' or rule, rule_ms,", 'return rule, rule_ms,'],
    ],
    'conformance > numbers of every kind change on the log that there is': [
      ['local units, window = own.limit or words[at + 1],', 'local units, window = words[at + 1],'],
      ['words[at], words[at + 1] = window + precision - 1, units', 'words[at] = window + precision - 1'],
      ['words[at] = own.limit\n', '\n'],
      ['(kind > 5 and 2 or kind == 4 and 4 or 3)', '(kind == 4 and 4 or 3)'],
      ['(kind > 5 and 2 or kind == 4 and 4 or 3)', '(kind > 5 and 2 or 3)'],
    ],
    'conformance > a bucket is given another capacity and refill': [
      [
        'local capacity, refill, parts = own.capacity or words[p + 4],',
        'local capacity, refill, parts = words[p + 4],',
      ],
      ['own.refill or words[p + 1], words[p + 2]', 'words[p + 1], words[p + 2]'],
      [
        'math.max(most_parts - most_parts % parts, capacity * parts), capacity',
        'math.max(most_parts - most_parts % parts, capacity * parts), words[p + 4]',
      ],
    ],
    'conformance > a window is made longer and shorter': [
      ['own.windowMs or words[at] - precision + 1', 'words[at] - precision + 1'],
      ['words[at], words[at + 1] = window + precision - 1, units', 'words[at + 1] = units'],
    ],
    'conformance > names that a plan does not have are unused, and used again when it has': [
      ['and not (own.windowMs or own.capacity or own.refill) then', 'then'],
    ],
    'conformance > the limits of an exempt key only count': [
      ["if rule == 'exempt' then words[p] = -math.abs(words[p]) end", ''],
    ],
    'conformance > a block denies in any dimension, leaves the numbers, and ends': [
      ['rule_ms, left_of(blocked, clock), ends, blocked', 'rule_ms, 0, ends, blocked'],
      ['if blocked_ms > most_blocked then most_blocked = blocked_ms end', ''],
      ['if most_blocked > 0 then op, wanted = op or { lease_ms = 0 }, 0 end', ''],
    ],
    'conformance > what would not survive a change of numbers is refused, with what to write': [
      ["numbers[name] or limits == 1 and numbers['']", 'numbers[name]'],
    ],
    'overrides/overrides > overrides in Redis with one bucket > a list of more than a page is whole, and has each once':
      [['INDEX_LENGTH = 10', 'INDEX_LENGTH = 9']],
    'traps/damaged-state > an override > "1 0 0" is unavailable, and is left alone': [
      ['if not blocked then return nil, NO_OVERRIDE end', ''],
      ['if not rule then return first, words, 0, rule_ms, op end', ''],
    ],
    'traps/damaged-state > an override > "1 0 4503599627370496 null\\n" is unavailable, and is left alone': [
      ['if not numbers then return first, words, 0, NO_OVERRIDE, op end', ''],
    ],
    'traps/damaged-state > an override > "1 0 4503599627370496 {\\"hour\\":5}\\n" is unavailable, and is left alone':
      [['return length == #rule and numbers or nil', 'return numbers']],
  },
}
