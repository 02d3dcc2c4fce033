import type { Mutants } from '../mutant.ts'

export const slidingCounter: Mutants = {
  part: 'limits/sliding-counter.lua',
  mutants: {
    'redis/stored-format > a sliding counter can be read': [
      ["'>BI6I7I7I6'", "'<BI6I7I7I6'"],
      ['TWO_WINDOWS_SIZE = 27', 'TWO_WINDOWS_SIZE = 26'],
      ['is_restamped = words[p + 3],', 'is_restamped = words[p + 2],'],
    ],
    'redis/state-errors > a sliding counter with an extra byte is rejected': [
      ["LAST_OF_TWO_WINDOWS = '27'", "LAST_OF_TWO_WINDOWS = '26'"],
    ],
    'redis/ttl > a sliding counter lives until its window and the next one are over': [
      ["if raw ~= '' then", "if raw == '' then"],
      ['if stamp > now then', 'if stamp >= now then'],
      ['elseif counter.stamp ~= start then', 'elseif false then'],
      ['2 * window, is_clock_given', 'window, is_clock_given'],
      ["raw, 'KEEPTTL'", 'raw'],
      ['counter.stamp == start - window and current or 0 end', '0 end'],
      ['charged_in == start and current or', 'false or'],
      ['if charged_in == start then current', 'if true then current'],
    ],
    'redis/state-errors > a sliding counter rejects values of another type or format': [
      ['return nil, raw.err or NO_TWO_WINDOWS', 'return nil, NO_TWO_WINDOWS'],
    ],
    'redis/state-errors > a sliding counter with a misaligned window is rejected': [
      ['or stamp % window ~= 0 or', 'or'],
    ],
    'conformance > after the clock is set back slightly across a boundary, a sliding counter waits for the clock':
      [['if stamp <= clock + MAX_AHEAD then return nil, stamp end', '']],
    'conformance > after the clock is set back by more than 1 s, all units of a sliding counter count in the current window':
      [
        ['is_restamped = current + previous, 0, true', 'is_restamped = current + previous, 0, false'],
        ['elseif stamp == start then', 'elseif false then'],
        ['current, previous = 0, stamp == start', 'previous = stamp == start'],
        ['used = current + previous - (faded', 'used = current + previous + (faded'],
        ['for i = p + 4, last do\n  local', 'for i = p + 5, last do\n  local'],
        ['if mine > 0 or is_restamped and not is_look then', 'if mine > 0 then'],
        ['current = current + cost * mine', 'current = current + cost'],
        ['1, start, current, previous, since)\n  if', '1, now, current, previous, since)\n  if'],
      ],
    "redis/ttl > only the first charge in a window sets the TTL: 'counter'": [
      ['  is_new = false\n', ''],
      ['  if is_new then', '  if true then'],
      ['(ttl_of(2 * window, clock', '(ttl_of(window, clock'],
    ],
    'limits/numbers > Redis > counts sliding counters of 2^40 units in 366 days exactly': [
      ['(now - start) / precision, window', '(now - start), window'],
      ['1, start, current, previous, counter.since)', '1, counter.stamp, current, previous, counter.since)'],
    ],
    'conformance > sliding counters with the same window share their counts, and each denies by its own limit':
      [['words[i] - used', 'words[i] + used']],
    'histories 1 > counter': [['if free < cost * fitting then', 'if free < cost then']],
    'histories 2 > counter, great': [
      ['answer = current, previous, place + 2', 'answer = current, previous, place + 1'],
    ],
    "limits/every-kind > 'a sliding counter', 'Redis', with other operations > causes a ban, on which a decision and an explanation agree":
      [['for i = p + 4, last do\n    if', 'for i = p + 5, last do\n    if']],
    'histories 1 > bans': [['mine + cost > words[i]', 'mine + cost >= words[i]']],
    'conformance > a sliding counter saturates at the highest count that its limit can distinguish': [
      [
        'current = current + cost * mine\n  if current > most_units then current = most_units end\n',
        'current = current + cost * mine\n',
      ],
    ],
    "conformance > a refund doesn't touch charges made after a reset": [
      ['at_ms < counter.since', 'at_ms <= counter.since'],
      ['at_ms - at_ms % window', 'at_ms'],
    ],
    'conformance > a settlement refunds its own charge, whatever was charged before and after': [
      ['if current == 0 and previous == 0 then since', 'if previous == 0 then since'],
      ["    call_redis('SETRANGE', key, '0', value)\n", ''],
      ['  if current == 0 and previous == 0 then\n    call', '  if previous == 0 then\n    call'],
    ],
    'conformance > a refund to a sliding counter adds no quota beyond its charge': [
      ['words[p + 1], -1, 0, 0, 0', 'words[p + 1], 0, 0, 0, 0'],
    ],
    "limits/every-kind > 'a sliding counter', 'Redis' > stores no time after all of its units were refunded":
      [["call_redis('DEL', counter.key)", '']],
    'histories 1 > bans, clock set back': [['math.min(units, held)', 'units']],
    'redis/damaged-state > a log with too many units is rejected': [
      ['MOST_IN_WINDOW = 2 ^ 52', 'MOST_IN_WINDOW = 2 ^ 53'],
    ],
    'histories 2 > bans by counter of several keys': [['op.bans and not is_shadow then', 'op.bans then']],
    "limits/every-kind > 'a sliding counter', 'Redis', with other operations > decides each key of a batch on its own":
      [
        [
          "if raw then kinds[key] = nil else raw = pcall_redis('GETRANGE', key, '0', LAST_OF_TWO_WINDOWS) end",
          "if not raw then raw = pcall_redis('GETRANGE', key, '0', LAST_OF_TWO_WINDOWS) end",
        ],
      ],
  },
}
