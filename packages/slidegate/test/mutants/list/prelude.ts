import type { Mutants } from '../mutant.ts'

export const prelude: Mutants = {
  part: 'ops/prelude.lua',
  mutants: {
    'limits/numbers > Redis > totals that grow for long, since the log is never empty, stay exact': [
      ['MAX_UNITS = 2 ^ 46', 'MAX_UNITS = 2 ^ 48'],
    ],
    'histories 1 > sliding, clock set back': [['NEVER = -1', 'NEVER = 0']],
    'conformance > after a large step back all counts from now on: never over': [
      ['MAX_AHEAD = 1000', 'MAX_AHEAD = 1001'],
    ],
    'redis/ttl > every key has a time to live, and not a longer one than it needs > by a clock that is handed in: ten minutes at least':
      [['MIN_GIVEN_TTL = 600000', 'MIN_GIVEN_TTL = 0']],
    'histories 1 > bans, clock set back': [['LATER = 1000', 'LATER = 0']],
    'histories 2 > overrides and bans, clock set back': [["NUMBER_FORMAT = '>I6'", "NUMBER_FORMAT = '<I6'"]],
    'redis/ttl > what is held, and the values that count, live as long as their window and a quarter more': [
      ['slack = keep / 4', 'slack = keep / 8'],
      ['slack < 5000 and', 'slack > 5000 and'],
    ],
    'redis/ttl > the lifetime is renewed by a request that it would not outlast': [
      ['or lifetime), lifetime', 'or lifetime), 2 * lifetime'],
    ],
  },
}
