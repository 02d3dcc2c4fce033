import type { Mutants } from '../mutant.ts'

export const slidingCounter: Mutants = {
  part: 'limits/sliding-counter.lua',
  mutants: {
    'redis/stored-format > a sliding counter': [
      ["'>BI6I7I7I6'", "'<BI6I7I7I6'"],
      ['TWO_WINDOWS_SIZE = 27', 'TWO_WINDOWS_SIZE = 26'],
      ['TWO_WINDOWS_SIZE = 27', 'TWO_WINDOWS_SIZE = 28'],
      ['is_restamped = words[p + 3],', 'is_restamped = words[p + 2],'],
      ['is_restamped = words[p + 3], now - now % window,', 'is_restamped = words[p + 3], now,'],
    ],
    'redis/state-errors > a sliding counter with a byte too many': [
      ["LAST_OF_TWO_WINDOWS = '27'", "LAST_OF_TWO_WINDOWS = '26'"],
    ],
    'redis/ttl > a sliding counter lives until its window and the next are over': [
      ['now - now % window, true, false', 'now - now % window, false, false'],
      ["if raw ~= '' then", "if raw == '' then"],
      ['if stamp > now then', 'if stamp >= now then'],
      ['if counter.is_new then', 'if false then'],
      ['2 * words[p + 1], is_clock_given', 'words[p + 1], is_clock_given'],
      ["raw, 'KEEPTTL'", 'raw'],
      [
        '  if counter.stamp ~= start then current, previous = 0, counter.stamp == start - window and current or 0 end\n',
        '',
      ],
      ['counter.stamp == start - window and current or 0 end', '0 end'],
      ['charged_in == start and current or', 'false or'],
      ['charged_in == start - window and previous or 0', '0'],
      ['if charged_in == start then current', 'if true then current'],
      ['counter.is_new = counter.stamp ~= start\n', '\n'],
    ],
    'redis/state-errors > a sliding counter': [
      ['return nil, raw.err or NO_TWO_WINDOWS', 'return nil, NO_TWO_WINDOWS'],
      ['  if #raw ~= TWO_WINDOWS_SIZE then return nil, raw.err or NO_TWO_WINDOWS end\n', ''],
    ],
    'redis/state-errors > a sliding counter whose window begins between two of its windows': [
      ['or stamp % window ~= 0 or', 'or'],
    ],
    'conformance > after a small step back over an edge a sliding counter waits for the clock': [
      ['if stamp > now then', 'if false then'],
      ['if stamp <= clock + MAX_AHEAD then return nil, stamp end', ''],
    ],
    'conformance > after a large step back all that a sliding counter holds is of this window': [
      ['current, previous, is_restamped = current + previous, 0, true', 'is_restamped = true'],
      ['is_restamped = current + previous, 0, true', 'is_restamped = current, 0, true'],
      ['is_restamped = current + previous, 0, true', 'is_restamped = current + previous, 0, false'],
      ['elseif stamp == start then', 'elseif false then'],
      ['previous = 0, stamp == start - window and current or 0\nend', 'previous = 0, 0\nend'],
      ['previous = 0, stamp == start - window and current or 0\nend', 'previous = 0, current\nend'],
      ['current, previous = 0, stamp == start', 'previous = stamp == start'],
      ['used = current + previous -', 'used = previous -'],
      ['used = current + previous - (faded', 'used = current + previous + (faded'],
      ['used = current + previous - (faded - faded % 1)', 'used = current + previous'],
      ['for i = p + 4, last do\n  local', 'for i = p + 5, last do\n  local'],
      ['if mine > 0 or is_restamped and not is_look then', 'if mine > 0 then'],
      ['current = current + cost * mine', 'current = current + cost'],
      ['1, start, current, previous, since)\n  if', '1, now, current, previous, since)\n  if'],
    ],
    "redis/ttl > the first charge in a window gives a key its time, and no other does: 'counter'": [
      ['  is_new = false\n', ''],
      ['  if is_new then', '  if true then'],
      ['  if is_new then', '  if false then'],
      ['(ttl_of(2 * window,', '(ttl_of(window,'],
      ['if counter.is_new then', 'if true then'],
    ],
    'limits/numbers > Redis > sliding counters of 2^40 units in 366 days are counted to the last': [
      ['(now - start) / precision, window', '(now - start), window'],
      ['if counter.current == 0 and counter.previous == 0 then', 'if counter.current == 0 then'],
      ['else previous = previous - returned end', 'end'],
      [
        'counter.stamp, counter.current, counter.previous = start, current, previous',
        'counter.current, counter.previous = current, previous',
      ],
      ['counter.stamp, counter.current, counter.previous = start, current, previous', ''],
    ],
    'conformance > sliding counters of one window share it, and are denied each by its limit': [
      ['for i = p + 4, last do\n  local', 'for i = p + 4, p + 4 do\n  local'],
      ['words[i] - used', 'words[i] + used'],
    ],
    'histories 1 > counter': [
      ['if free < cost * fitting then', 'if free < cost then'],
      ['if free < cost * fitting then', 'do'],
      ['free < cost and 0 or (free', '(free'],
    ],
    'histories 2 > counter, great': [
      ['(free - free % cost) / cost', 'free / cost'],
      ['answer = current, previous, place + 2', 'answer = current, previous, place + 1'],
      ['answer = current, previous, place', 'answer = current, 0, place'],
      ['answer = current, previous, place', 'answer = used, previous, place'],
    ],
    "limits/every-kind > 'a sliding counter', 'Redis', among the rest > brings on a ban, during which a decision and an explanation agree":
      [
        ['for i = p + 4, last do\n    if', 'for i = p + 5, last do\n    if'],
        ['used + cost * mine + cost > words[i]', 'used + cost * mine > words[i]'],
      ],
    'histories 1 > bans': [
      ['mine + cost > words[i]', 'mine + cost >= words[i]'],
      ['op.denied[k] = true', ''],
    ],
    'conformance > a sliding counter counts no more units than its limit can tell apart': [
      ['if mine > 0 or is_restamped and not is_look then', 'if true then'],
      [
        'current = current + cost * mine\n  if current > most_units then current = most_units end\n',
        'current = current + cost * mine\n',
      ],
    ],
    'conformance > a refund takes nothing that was charged after a reset': [
      ['if current == 0 and previous == 0 then since = now end', ''],
      ['if at_ms < counter.since then return 0 end', ''],
      ['at_ms < counter.since', 'at_ms <= counter.since'],
      ['at_ms - at_ms % window', 'at_ms'],
    ],
    'conformance > a sliding counter returns units to the window that they came in': [
      ['if current == 0 and previous == 0 then since', 'if current == 0 then since'],
    ],
    'conformance > what is returned is what was charged, whatever came before and after': [
      ['if current == 0 and previous == 0 then since', 'if previous == 0 then since'],
      ['current = current + cost * mine', 'current = current + mine'],
      ['1, start, current, previous, since)\n  if', '1, start, current, previous, now)\n  if'],
      ["    call_redis('SETRANGE', key, '0', value)\n", ''],
      ['if counter.current == 0 and counter.previous == 0 then', 'if counter.previous == 0 then'],
      ["call_redis('SET', counter.key, raw, 'KEEPTTL')", ''],
    ],
    'limits/every-kind > a sliding counter in Redis > has one key, which expires a while after it is empty': [
      ['ttl_of(2 * window, clock ~= reply[1])', 'ttl_of(2 * window, true)'],
    ],
    'conformance > a refund to a sliding counter mints nothing': [
      ['words[p + 1], -1, 0, 0, 0', 'words[p + 1], 0, 0, 0, 0'],
    ],
    "limits/every-kind > 'a sliding counter', 'Redis' > holds no time where all of it was returned": [
      ['if counter.current == 0 and counter.previous == 0 then', 'if false then'],
      ["call_redis('DEL', counter.key)", ''],
    ],
    'histories 1 > bans, clock set back': [
      ['charged_in == start - window and previous or 0', 'previous'],
      ['math.min(units, held)', 'units'],
      ['then current = current - returned else', 'then else'],
    ],
    'redis/damaged-state > units beyond all that may be is no log of ours': [
      ['MOST_IN_WINDOW = 2 ^ 52', 'MOST_IN_WINDOW = 2 ^ 53'],
      ['or current > MOST_IN_WINDOW or', 'or'],
    ],
    'redis/damaged-state > more units before is no log of ours': [
      ['or previous > MOST_IN_WINDOW then', 'then'],
    ],
    'histories 2 > bans by counter of several keys': [['op.bans and not is_shadow then', 'op.bans then']],
    'redis/ttl > every key has a time to live, and not a longer one than it needs > by a clock that is handed in: ten minutes at least':
      [['ttl_of(2 * window, clock ~= reply[1])', 'ttl_of(2 * window, false)']],
    "limits/every-kind > 'a sliding counter', 'Redis', among the rest > keys in one batch each get their own result":
      [
        [
          "if raw then kinds[key] = nil else raw = pcall_redis('GETRANGE', key, '0', LAST_OF_TWO_WINDOWS) end",
          "if not raw then raw = pcall_redis('GETRANGE', key, '0', LAST_OF_TWO_WINDOWS) end",
        ],
        [
          "if raw then kinds[key] = nil else raw = pcall_redis('GETRANGE', key, '0', LAST_OF_TWO_WINDOWS) end",
          "kinds[key] = nil if not raw then raw = '' end",
        ],
      ],
  },
}
