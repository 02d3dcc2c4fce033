import type { Mutants } from '../mutant.ts'

export const streamWindow: Mutants = {
  part: 'limits/stream-window.lua',
  mutants: {
    "limits/every-kind > 'a sliding window as a stream', 'Redis', among the rest > is explained: what is used, and when it is free":
      [['for i = #newest, 1, -1 do', 'for i = 1, #newest do']],
    'limits/logs > Redis > stream > of what is charged beyond what a log keeps, that is listed': [
      ['MAX_STREAM = 10000', 'MAX_STREAM = 10001'],
      ['flat[last + 1], flat[last', 'flat[last], flat[last'],
    ],
    'histories 1 > stream': [['if newest[1] then', 'if true then']],
    'limits/logs-in-redis > stream > takes back the newest at any time, another while no more than 1,024 count':
      [
        ['units and raw[2][2]', 'units or raw[2][2]'],
        ['  if id == log.newest then', '  if false then'],
      ],
    'limits/logs-in-redis > stream > totals begin anew where nothing counts any more, and before they are more than text can tell':
      [['MAX_STREAM_TOTAL = 2 ^ 52', 'MAX_STREAM_TOTAL = 2 ^ 54']],
    'limits/logs > Redis > stream > the request that is in the way is found among thousands, however they lie':
      [
        ['STREAM_READS = 50', 'STREAM_READS = 2'],
        ['units >= wanted then', 'units > wanted then'],
        ['total >= wanted then', 'total > wanted then'],
        ['low, below = math.max(low, stamp - 1), total - units', ''],
      ],
    'limits/logs > Redis > stream > set back by an hour, what had left the window before is not returned': [
      ["  call_redis('DEL', key)\n  for", '  for'],
    ],
    'histories 1 > stream, clock set back': [
      ["string.format('%d', total - lower)", "string.format('%d', total)"],
      ['elseif stamp then', 'elseif false then'],
    ],
    'limits/logs-in-redis > stream > one that another program has emptied goes on': [
      ['tables_of(kinds, 6).rewrite(key, now - window, 0)', ''],
    ],
    'conformance > stream: a shadow limit keeps only what it has room for': [
      ['key, id or raw[1], unpack', 'key, raw[1], unpack'],
      ["call_redis('XDEL', key, id)", ''],
      ['if raw[1] == removed then', 'if true then'],
      ["elseif call_redis('XLEN', key) <= most then", 'elseif true then'],
      ['stream_window.rewrite(key, gone, 0, nil, id)', ''],
    ],
    'limits/every-kind > a sliding window as a stream in Redis > leaves no key behind where nothing is left in it':
      [["if call_redis('XLEN', key) == 0 then call_redis('DEL', key) end", '']],
    'redis/stored-format > a log that is followed': [['high, above = middle, total - units', '']],
    'conformance > stream: a charge beyond the limit is waited for': [
      ['if guesses < STREAM_GUESSES then', 'if true then'],
    ],
    'conformance > stream: after a large step back all counts from now on': [
      ['if not id then return 0 end', ''],
    ],
    'conformance > stream: a refund returns one request, wherever it stands, once': [
      ['lower = lower + units', ''],
      ['math.max(MIN_REFUND_ENTRIES, unpack(words, p + 2, log.last))', 'MIN_REFUND_ENTRIES'],
    ],
  },
}
