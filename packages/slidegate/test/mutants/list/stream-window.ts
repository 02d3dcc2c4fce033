import type { Mutants } from '../mutant.ts'

export const streamWindow: Mutants = {
  part: 'limits/stream-window.lua',
  withoutShortCut: true,
  mutants: {
    'conformance > it tells the charges that count, by their stamps, where it is asked for them and the kind keeps them':
      [
        ['#charges + 2] = now, log.rewritten', '#charges + 2] = log.rewritten[i].stamp - 1, log.rewritten'],
        ['now - params.windows[1] + 1))\n  local newest', 'now - params.windows[1]))\n  local newest'],
        ['for i = #newest, 1, -1 do', 'for i = 1, #newest do'],
      ],
    'conformance > of many charges it tells the latest, and how many units there are besides': [
      ["first, 'COUNT', text_of(most))", 'first)'],
    ],
    'limits/logs > Redis > stream > of what is charged beyond what a log keeps, that is listed': [
      ['MAX_STREAM = 10000', 'MAX_STREAM = 10001'],
      ["if words[1] ~= 'id'", "if words[1] == 'id'"],
      ['log.stamp, log.total, log.newest, log.live, log.first = 0, 0, nil, nil, nil', ''],
      ['if raw[1] then', 'if true then'],
      ['log.stamp - log.params.windows[1]', 'log.stamp + log.params.windows[1]'],
      ["if type(answer) ~= 'table' then return end", ''],
      ['if log.added then append(log) end', ''],
      ['if log.total == 0 or log.stamp <= cut then return 0 end', ''],
      ['log.live = log.live or live_in(log, params, now)', ''],
      ['units = math.min(units, MAX_STREAM)', ''],
      ["log.added, log.units, log.stamp = entry or '', units, now", ''],
      ['log.total, log.live = log.total + units, log.live + units', ''],
      ['now - params.windows[1]))', 'now + params.windows[1]))'],
      ['flat[last + 1], flat[last', 'flat[last], flat[last'],
    ],
    'limits/logs-in-redis > stream > takes back the newest at any time, another while no more than 1,024 count':
      [
        ['MAX_REFUND_ENTRIES = 128, 1024', 'MAX_REFUND_ENTRIES = 128, 1023'],
        ['MAX_REFUND_ENTRIES = 128, 1024', 'MAX_REFUND_ENTRIES = 128, 1025'],
        ['units and raw[2][2]', 'units or raw[2][2]'],
        ['if id == log.newest then', 'if false then'],
        ["if call_redis('XLEN', key) > most then return 0 end", ''],
      ],
    'limits/logs-in-redis > stream > totals begin anew where nothing counts any more, and before they are more than text can tell':
      [
        ['MAX_STREAM_TOTAL = 2 ^ 52', 'MAX_STREAM_TOTAL = 2 ^ 54'],
        ['log.total = 0', ''],
        ['elseif log.total + units > MAX_STREAM_TOTAL then', 'elseif false then'],
        ['log.rewritten = readable_after(log, now - params.windows[1])', ''],
        ['text_of(each.total - log.base)', 'text_of(each.total + log.base)'],
        ['log.total, log.base, log.first_total = log.live, 0, log.first_total - log.base', ''],
      ],
    'limits/logs > Redis > stream > the request that is in the way is found among thousands, however they lie':
      [
        ['STREAM_READS = 50', 'STREAM_READS = 2'],
        ['units >= wanted then', 'units > wanted then'],
        ['total >= wanted then', 'total > wanted then'],
        ['low, below = math.max(low, stamp - 1), total - units', ''],
      ],
    'traps/damaged-state > a stream among others > a log of another scale in its place is unavailable, and left alone':
      [['if stamp > MAX_STREAM_STAMP or total > MAX_STREAM_TOTAL then return nil end', '']],
    'traps/damaged-state > a stream among others > a log of other numbers in its place is unavailable, and left alone':
      [
        [
          'if not (units >= 1 and units <= total and units % 1 == 0 and total % 1 == 0) then return nil end',
          '',
        ],
      ],
    'limits/logs > Redis > stream > set back by an hour, what had left the window before is not returned': [
      ['log.key, text_of(math.max(0,', 'log.key, text_of(math.min(0,'],
      ['log.newest, log.stamp, log.total, log.before = raw[1][1], stamp, total, stamp', ''],
      ["call_redis('DEL', key)", ''],
      ['log.stamp - params.windows[1]),', 'log.stamp + params.windows[1]),'],
      ['total = total + entry.units', ''],
      ['entry[1], entry[2][6], entry.stamp = id, text_of(total), now', ''],
      ['log.rewritten, log.is_restamped = entries, true', ''],
      ['= now - params.windows[1]', '= now + params.windows[1]'],
      ['if log.is_restamped then return log.total end', ''],
      ['log.live = live_in(log, params, now)', ''],
      ['if at_ms <= math.max(now - params.windows[1], gone) then return 0 end', ''],
    ],
    'limits/every-kind > a sliding window as a stream in Redis > refuses "\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000" in its place, and leaves it as it is':
      [['if raw.err then return raw.err end', '']],
    'limits/every-kind > a sliding window as a stream in Redis > has one key, which expires a while after it is empty':
      [
        ['log.is_restamped, log.rewritten, log.added, log.removed, log.before = false, nil, nil, nil, 0', ''],
        ['log.rewritten or needs_ttl(log.before,', 'log.rewritten and needs_ttl(log.before,'],
        [
          'if log.rewritten or needs_ttl(log.before, log.stamp, window, is_clock_given) then',
          'if false then',
        ],
        ["call_redis('PEXPIRE', log.key, ttl_of(window, is_clock_given))", ''],
      ],
    'limits/logs-in-redis > stream > out of memory nothing is half written, nor is more written in the shade of what is removed':
      [["call_redis('XSETID', key, LAST_STREAM_ID)", '']],
    'limits/logs-in-redis > stream > no more than 10,000 are kept, whatever is charged': [
      ["if log.live > MAX_STREAM then trimming, how, threshold = 'MAXLEN', '=', MAX_STREAM_TEXT end", ''],
      ['if log.live > MAX_STREAM', 'if log.units > MAX_STREAM'],
    ],
    'limits/logs-in-redis > stream > one that another program has emptied goes on': [
      ["if string.find(answer.err, 'equal or smaller', 1, true) then", 'if false then'],
      ['  rewrite(log, log.rewritten)', '  '],
      ['log.rewritten = readable_after(log, cut)', ''],
      [' call_redis(unpack(words))', ' '],
    ],
    'conformance > stream: a shadow limit keeps only what it has room for': [
      ['if log.removed then', 'if false then'],
      ["call_redis('XDEL', log.key, log.removed)", ''],
      ['if log.rewritten then rewrite(log, log.rewritten) end', ''],
      ['total, total - units', 'total, total + units'],
      ['if log.live == 0', 'if log.live ~= 0'],
      ['if charged == units and raw[2][2] == entry then return raw[1] end', ''],
      ['log.key, log.stamp - params.windows[1]', 'log.key, log.stamp + params.windows[1]'],
      ['log.removed = id', ''],
      ['if each[1] == id then', 'if true then'],
      ['kept[#kept + 1] =', 'kept[#kept - 1] ='],
      ['log.rewritten = kept', ''],
    ],
    'limits/every-kind > a sliding window as a stream in Redis > leaves no key behind where nothing is left in it':
      [["if call_redis('XLEN', log.key) == 0 then call_redis('DEL', log.key) end", '']],
    'limits/logs-in-redis > stream > begins anew with what counts when the clock was set back': [
      ['log.stamp, log.total, log.live = now, total, total', ''],
      ['log.total - log.base', 'log.total + log.base'],
    ],
    'traps/stored-format > a log that is followed': [
      ['= log.first - 1,', '= log.first,'],
      ['high, above = middle, total - units', ''],
    ],
    'conformance > stream: a charge beyond the limit is waited for': [
      ['if guesses < STREAM_GUESSES then', 'if true then'],
      ['if i == 1 and total', 'if i ~= 1 and total'],
      ['if total >= wanted then return stamp end', ''],
      ['+ cost - limit) +', '+ cost + limit) +'],
    ],
    'traps/damaged-state > a stream > whatever stands among its entries, the requests beside it are decided':
      [['if not stamp then return log.stamp end', '']],
    "limits/every-kind > 'a sliding window as a stream', 'Redis' > takes what a request costs, and never one above the limit":
      [['if cost > limit then return NEVER end', '']],
    'limits/logs > Redis > stream > set back by an hour, what counted counts from then on': [
      ['if log.is_restamped or not log.first then return window end', ''],
      ['if log.total == 0 then', 'if log.total ~= 0 then'],
      ['log.stamp + params.windows[1]', 'log.stamp - params.windows[1]'],
    ],
    'conformance > stream: after a large step back all counts from now on': [
      ['if not id then return 0 end', ''],
    ],
    'limits/logs-in-redis > stream > what had left the window does not come back with it': [
      ["call_redis('XTRIM', key, 'MINID', '=', text_of(math.max(0, gone + 1)))", ''],
    ],
    'conformance > stream: a refund returns one request, wherever it stands, once': [
      ['returned = units', ''],
      ['if returned > 0 then each[2][6] = text_of(each.total - returned) end', ''],
    ],
    'histories 1 > stream, clock set back': [
      [
        'if stamp then entries[#entries + 1] = { raw[1], raw[2], stamp = stamp, units = units, total = total } end',
        '',
      ],
    ],
    'limits/logs-in-redis > stream > whoever follows sees nothing twice when requests are returned': [
      ["call_redis('XADD', key, id, 'id', words[2], 'cost', words[4], 'total', words[6])", ''],
    ],
  },
}
