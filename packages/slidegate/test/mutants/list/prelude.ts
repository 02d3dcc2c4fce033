import type { Mutants } from '../mutant.ts'

export const prelude: Mutants = {
  part: 'stores/redis/prelude.lua',
  mutants: {
    'traps/numbers > Redis > totals that grow for long, since the log is never empty, stay exact': [
      ['MAX_UNITS = 2 ^ 46', 'MAX_UNITS = 2 ^ 48'],
    ],
    'histories 1 > bursts': [
      ['local NEVER = -1', 'local NEVER = 0'],
      ['local BACK = 57', 'local BACK = 58'],
      ["HOT_OFFSET = '33'", "HOT_OFFSET = '39'"],
      ['local STAMP = 6', 'local STAMP = 7'],
      ['local WIDTH = 12', 'local WIDTH = 13'],
      ['local PAGE = 4', 'local PAGE = 3'],
      ['local PAGE_WIDTH = 48', 'local PAGE_WIDTH = 47'],
      ['local FRONT = 105', 'local FRONT = 106'],
      ['local EDGES = 153', 'local EDGES = 154'],
      ['if not text then', 'if text then'],
    ],
    'traps/ttl > a key that is charged when the clock says 0 has a time to live, too': [
      ['MIN_GIVEN_TTL = 600000', 'MIN_GIVEN_TTL = 0'],
    ],
    'traps/stored-format > a window log': [['local FORMAT = 1', 'local FORMAT = 2']],
    'history/stored-form > a large ring is given back when its log has run empty, a small one kept: the usual way':
      [
        ["'>BI6I6I6I6I6I2I6I6I6I2I2BB'", "'<BI6I6I6I6I6I2I6I6I6I2I2BB'"],
        ['local KEPT_SLOTS = 64', 'local KEPT_SLOTS = 0'],
        ['local KEPT_SLOTS = 64', 'local KEPT_SLOTS = 6400'],
      ],
    'limits/logs-in-redis > stream > totals begin anew where nothing counts any more, and before they are more than text can tell':
      [["= string.format('%d', number)", '= tostring(number)']],
    "traps/ttl > the first charge in a window gives a key its time, and no other does: '9-per-1h'": [
      ['keep + math.max(4000, math.floor(keep / 4))', 'keep'],
      ['math.max(lifetime,', 'math.min(lifetime,'],
    ],
    'traps/ttl > what is held, and the values that count, live as long as their window and a quarter more': [
      ['return keep + math.max(4000, math.floor(keep / 4))', 'return 2 * keep + 4000'],
      ['return is_clock_given or now - now % part > stamp', 'return false'],
    ],
    'traps/ttl > a token bucket lives until its debt is paid, and not much longer': [
      [
        'text_of(is_clock_given and math.max(lifetime, MIN_GIVEN_TTL) or lifetime)',
        'text_of(math.max(lifetime, MIN_GIVEN_TTL))',
      ],
    ],
    'conformance > after a large step back a token bucket counts its debt from then on': [
      ['BUCKET_SIZE = 26', 'BUCKET_SIZE = 25'],
      ['BUCKET_SIZE = 26', 'BUCKET_SIZE = 27'],
    ],
    'conformance > the debt of a token bucket saturates, at a smaller refill too: it is paid in 366 days': [
      ['MOST_PARTS = 2 ^ 52', 'MOST_PARTS = 2 ^ 51'],
    ],
    'traps/damaged-state > a debt beyond all that may be is no log of ours': [
      ['MOST_PARTS = 2 ^ 52', 'MOST_PARTS = 2 ^ 53'],
    ],
    'traps/what-is-wrong > a token bucket with a byte too many': [
      ["LAST_OF_BUCKET = '26'", "LAST_OF_BUCKET = '25'"],
    ],
    'conformance > a charge counts in every limit, shadow and fixed too': [
      ['COUNTER_SIZE = 13', 'COUNTER_SIZE = 12'],
      ['COUNTER_SIZE = 13', 'COUNTER_SIZE = 14'],
    ],
    'conformance > a sliding counter forgets what two windows have left behind': [
      ['TWO_WINDOWS_SIZE = 27', 'TWO_WINDOWS_SIZE = 26'],
      ['TWO_WINDOWS_SIZE = 27', 'TWO_WINDOWS_SIZE = 28'],
    ],
    'traps/what-is-wrong > a sliding counter with a byte too many': [
      ["LAST_OF_TWO_WINDOWS = '27'", "LAST_OF_TWO_WINDOWS = '26'"],
    ],
  },
}
