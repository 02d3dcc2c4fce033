import type { Mutants } from '../mutant.ts'

export const override: Mutants = {
  part: 'limits/override.lua',
  mutants: {
    'conformance > an override applies to its key, in every process, until it is deleted': [
      ['FOREVER = 4503599627370496', 'FOREVER = 450359962737'],
      ['local first, is_named = last + 1, false', 'local first, is_named = last + 2, false'],
    ],
    'histories 1 > overrides': [
      ["string.find(names, '/' .. name .. ' ', first, true)", "string.find(names, '/' .. name, first, true)"],
      ["NOTHING = '1 0 0 \\n'", "NOTHING = '1 0 0\\n'"],
    ],
    'histories 1 > overrides and bans, clock set back': [['until at > #stored', 'until true']],
    'histories 2 > overrides and bans, clock set back': [["OVERRIDE_END = ':o'", "OVERRIDE_END = ':p'"]],
    'conformance > an override can expire, and the usage until then still counts': [
      ['if mark and ends > clock and', 'if mark and'],
    ],
    'conformance > an override changes the numbers of every kind of limit and keeps the log': [
      [
        'units, length = words[p + 1], limit or words[place + 1],',
        'units, length = words[p + 1], words[place + 1],',
      ],
      ['is_fitting and limit or words[place]', 'words[place]'],
      ['place = p + (where % 65536 - kind) / 16', 'place = p + 3'],
    ],
    "conformance > an override changes a bucket's capacity and refill": [
      ['capacity or words[p + 4], refill or words[p + 1]', 'capacity or words[p + 4], words[p + 1]'],
      ['changed[p + 1], changed[p + 4] = refill, capacity', 'changed[p + 1] = refill'],
      [
        "elseif field == 'refill' then\n          refill = digits",
        "elseif field == 'refill' then\n          capacity = digits",
      ],
    ],
    'conformance > an override makes a window longer or shorter': [
      ['changed[place], changed[place + 1] = length, units\n', 'changed[place + 1] = units\n'],
      [
        "elseif field == 'windowMs' then\n          window = digits",
        "elseif field == 'windowMs' then\n          limit = digits",
      ],
    ],
    "conformance > an override's limit names are unused if the plan doesn't have them": [
      ['and not (window or capacity or refill)\n', '\n'],
    ],
    "conformance > the limits of an exempt key count but don't deny": [
      ['changed[p] = -math.abs(changed[p])', ''],
    ],
    "conformance > a block denies requests in its dimension, keeps the override's numbers, and expires": [
      [
        'if blocked > clock then changed.is_blocked = true end',
        'if blocked > 0 then changed.is_blocked = true end',
      ],
    ],
    "limiter/overrides > overrides in Redis with one bucket > don't change a limit of the same name in another dimension":
      [['if found and found < last then', 'if found then']],
    'limiter/overrides > overrides in Redis with one bucket > appear once each in a list of several pages': [
      ['INDEX_LENGTH = 10', 'INDEX_LENGTH = 9'],
    ],
    'redis/damaged-state > an override > with the record "1 0 0" is rejected and unchanged': [
      ['if not mark then return nil, NO_OVERRIDE end', ''],
    ],
    'redis/damaged-state > an override > with the record "1 0 4503599627370496 null\\n" is rejected and unchanged':
      [
        [
          "mark, at = string.match(stored, '^exempt(\\n)()', at)",
          "mark, at = string.match(stored, '(\\n)()', at)",
        ],
      ],
    'redis/damaged-state > an override > with the record "1 0 4503599627370496 {\\"hour\\":5}\\n" is rejected and unchanged':
      [
        [
          "if mark ~= '\\n' and mark ~= '{}\\n' and mark ~= '}}\\n' then return nil, NO_OVERRIDE end",
          'at = at or #stored + 1',
        ],
      ],
    'conformance > overrides are listed with their keys': [
      ['string.sub(index, 1, -1 - INDEX_LENGTH)', 'string.sub(index, 1, -INDEX_LENGTH)'],
    ],
  },
}
