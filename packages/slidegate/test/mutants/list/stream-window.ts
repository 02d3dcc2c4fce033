import type { Mutants } from '../mutant.ts'

export const streamWindow: Mutants = {
  part: 'limits/stream-window.lua',
  mutants: {
    "limits/every-kind > 'a sliding window as a stream', 'Redis', with other operations > supports explain, with its usage and when it frees up":
      [['for i = #newest, 1, -1 do', 'for i = 1, #newest do']],
    'limits/logs > Redis > stream > lists only what a log keeps of larger charges': [
      ['MAX_STREAM = 10000', 'MAX_STREAM = 10001'],
      ['flat[last + 1], flat[last', 'flat[last], flat[last'],
    ],
    'histories 1 > stream': [['if newest[1] then', 'if true then']],
    "limits/logs-in-redis > log: 'stream' > refunds the newest request at any time, and others only if at most 1,024 count":
      [
        ['units and raw[2][2]', 'units or raw[2][2]'],
        ['  if id == log.newest then', '  if false then'],
      ],
    "limits/logs-in-redis > log: 'stream' > restarts totals when nothing counts, and before they exceed their maximum":
      [['MAX_STREAM_TOTAL = 2 ^ 52', 'MAX_STREAM_TOTAL = 2 ^ 54']],
    'limits/logs > Redis > stream > finds the blocking request among thousands, however they are spaced': [
      ['STREAM_READS = 50', 'STREAM_READS = 2'],
      ['units >= wanted then', 'units > wanted then'],
      ['total >= wanted then', 'total > wanted then'],
      ['low, below = math.max(low, stamp - 1), total - units', ''],
    ],
    'limits/logs > Redis > stream > refunds nothing that left the window before the clock was set back by an hour':
      [["  call_redis('DEL', key)\n  for", '  for']],
    'histories 1 > stream, clock set back': [
      ["string.format('%d', total - lower)", "string.format('%d', total)"],
      ['elseif stamp then', 'elseif false then'],
    ],
    "limits/logs-in-redis > log: 'stream' > continues after another program emptied it": [
      ['tables_of(kinds, 6).rewrite(key, now - window, 0)', ''],
    ],
    'conformance > stream: a shadow limit stores only the requests that fit': [
      ['key, id or raw[1], unpack', 'key, raw[1], unpack'],
      ["call_redis('XDEL', key, id)", ''],
      ['if raw[1] == removed then', 'if true then'],
      ["elseif call_redis('XLEN', key) <= most then", 'elseif true then'],
      ['stream_window.rewrite(key, gone, 0, nil, id)', ''],
    ],
    'limits/every-kind > a sliding window as a stream in Redis > leaves no key behind when it is empty': [
      ["if call_redis('XLEN', key) == 0 then call_redis('DEL', key) end", ''],
    ],
    'redis/stored-format > a stream can be read and appended to': [
      ['high, above = middle, total - units', ''],
    ],
    'conformance > stream: a charge beyond the limit has to expire before the next request is admitted': [
      ['if guesses < STREAM_GUESSES then', 'if true then'],
    ],
    'conformance > stream: after the clock is set back by more than 1 s, all requests count as if made now': [
      ['if not id then return 0 end', ''],
    ],
    'conformance > stream: a refund removes its request from any position, and only once': [
      ['lower = lower + units', ''],
      ['math.max(MIN_REFUND_ENTRIES, unpack(words, p + 2, log.last))', 'MIN_REFUND_ENTRIES'],
    ],
  },
}
