import type { Mutants } from '../mutant.ts'

export const entryWindow: Mutants = {
  part: 'limits/entry-window.lua',
  withoutShortCut: true,
  mutants: {
    'conformance > it tells the charges that count, by their stamps, where it is asked for them and the kind keeps them':
      [
        ['  if log.restamped then return log.live > 0 and', '  if false then return log.live > 0 and'],
        ['if now - stamp < params.windows[1] then charges', 'if true then charges'],
      ],
    'conformance > of many charges it tells the latest, and how many units there are besides': [
      ["text_of(-most), '-1'", "'0', '-1'"],
    ],
    'limits/logs-in-redis > zset > no more than 10,000 are kept, whatever is charged': [
      ['MAX_ENTRIES = 10000', 'MAX_ENTRIES = 10001'],
      ['= math.max(all - log.live - log.units, all - MAX_ENTRIES)', '= all - log.live - log.units'],
    ],
    'limits/logs > Redis > zset > of what is charged beyond what a log keeps, that is listed': [
      ['MAX_ENTRIES = 10000', 'MAX_ENTRIES = 9999'],
      ['MAX_WORDS = 4000', 'MAX_WORDS = 3999'],
    ],
    'limits/every-kind > a sliding window as a sorted set in Redis > refuses "what is no log" in its place, and leaves it as it is':
      [
        ['if newest.err then return newest.err end', ''],
        ['log.stamp, log.live, log.restamped, log.added, log.removed = 0, nil, nil, nil, nil', ''],
        ['if newest[2] then', 'if false then'],
        ['log.stamp = tonumber(newest[2])', ''],
      ],
    'limits/every-kind > a sliding window as a sorted set in Redis > leaves no key behind where nothing is left in it':
      [
        ['log.before = log.stamp', ''],
        ["all = call_redis('ZADD', key, stamp, log.added)", ''],
        ['if log.removed then', 'if false then'],
        ["call_redis('ZREM', key, log.removed)", ''],
        ["0 and call_redis('ZSCORE',", "0 or call_redis('ZSCORE',"],
        ['stamp = stamp and tonumber(stamp)', ''],
        ['stamp and tonumber(stamp)', 'stamp or tonumber(stamp)'],
        ['return stamp and now', 'return stamp or now'],
        ['if not stamp then', 'if stamp then'],
        ['log.removed, log.units, log.is_newest = entry, units, stamp == log.stamp', ''],
      ],
    'limits/logs > Redis > zset > part of a request is not returned': [
      ['if before then members[#members + 1] = before end', ''],
      ['and entry or entry', 'and entry and entry'],
      ['written = written + call_redis(command, key, unpack(words, first, last))', ''],
      ['text_of(log.stamp)\n  if log.restamped then', 'text_of(log.stamp)\n  if true then'],
      ['if log.added then', 'if false then'],
      ['all\n    if log.units > 1 then', 'all\n    if false then'],
      ["all = write_all('ZADD', key, members_of(log.added, log.units, stamp))", ''],
      ['if gone > 0 then', 'if gone >= 0 then'],
      ['log.card = 0', ''],
      ["log.card = call_redis('ZCARD', log.key)", ''],
      ['log.live = live_in(log, params, now)', ''],
      ['log.added, log.units, log.stamp = entry, math.min(units, MAX_ENTRIES), now', ''],
    ],
    'conformance > after a large step back holders are held for a ttl from now': [
      ["write_all('ZADD', key, log.restamped.words)", ''],
      ['log.restamped, log.stamp = { words = words, gone = gone, live = live }, now', ''],
      ['text_of(cost - limit', 'text_of(cost + limit'],
      ["'WITHSCORES')[2] + window - now", "'WITHSCORES')[2] + window + now"],
    ],
    'limits/logs-in-redis > zset > what had left the window by a clock that was set back stays away': [
      ["write_all('ZREM', key, log.restamped.gone)", ''],
      ['gone[#gone + 1] =', 'gone[#gone] ='],
      [
        'if log.restamped then return now - log.stamp < params.windows[1] and #log.restamped.words / 2 or 0 end',
        '',
      ],
    ],
    'limits/logs > Redis > zset > set back by an hour, what had left the window before is not returned': [
      ["all = log.restamped and call_redis('ZCARD', key) or log.card + all", ''],
      ['if gone > 0 then', 'if false then'],
      ["call_redis('ZREMRANGEBYRANK', key, '0', text_of(math.min(gone, log.units + PRUNED) - 1))", ''],
      ['log.units + PRUNED) - 1))', 'log.units + PRUNED)))'],
      ['log.stamp - params.windows[1],', 'log.stamp + params.windows[1],'],
      ['tonumber(all[i + 1])', 'tonumber(all[i - 1])'],
      ['words[#words + 1],', 'words[#words],'],
      ["log.card - call_redis('ZCOUNT',", "log.card + call_redis('ZCOUNT',"],
    ],
    'limits/logs-in-redis > zset > what has left the window is removed as requests come': [
      ['= math.max(all - log.live - log.units, all - MAX_ENTRIES)', '= all - MAX_ENTRIES'],
    ],
    'limits/logs-in-redis > of a sorted set a charge removes little more than it adds': [
      ['math.min(gone, log.units + PRUNED) -', 'gone -'],
    ],
    'conformance > sliding window of a sorted set: what was charged before can be returned after the limit changed':
      [
        ['then\n    if log.units > 1 then', 'then\n    if false then'],
        ["write_all('ZREM', key, members_of(log.removed, log.units))", ''],
      ],
    'limits/permits > Redis > a release after that frees nobody else': [
      ['log.is_newest and not log.restamped then', 'log.is_newest then'],
    ],
    'limits/logs-in-redis > zset > what had left the window does not come back with it': [
      ['if log.is_newest and not log.restamped then', 'if false then'],
      ["call_redis('ZREMRANGEBYSCORE', key, '-inf', text_of(log.before - log.params.windows[1]))", ''],
      ['units, stamp == log.stamp', 'units, stamp ~= log.stamp'],
    ],
    'limits/logs-in-redis > zset > lives as long again where it counts anew, though nothing is charged': [
      ['log.restamped or log.added', 'log.added'],
    ],
    'limits/every-kind > a sliding window as a sorted set in Redis > lives on for all of its time when the clock is set back':
      [
        ["call_redis('PEXPIRE', key, ttl_of(window, is_clock_given))", ''],
        ['params.windows[1] - now)', 'params.windows[1] + now)'],
      ],
    'histories 3 > distinct, clock set back': [
      ['live[all[i]] = true', ''],
      ['live[all[i]] = true', 'live[all[i]] = false'],
    ],
    'traps/other-logs > damaged, > log r3600000: > a sorted set in its place is unavailable, and left alone':
      [['log.live = log.live or live_in(log, params, now)', '']],
    "limits/every-kind > 'a sliding window as a sorted set', 'Redis' > takes what a request costs, and never one above the limit":
      [['if cost > limit then return NEVER end', '']],
    'limits/logs > Redis > zset > set back by an hour, what counted counts from then on': [
      ['if log.restamped then return window end', ''],
    ],
    'histories 3 > concurrency, clock set back': [
      ['if log.restamped then return log.restamped.live[entry] and now or nil end', ''],
      ['log.restamped.live[entry] and now', 'log.restamped.live[entry] or now'],
      ['if not stamp then return 0 end', ''],
      ['if not entry_window.find(log, params, now, entry) then return false end', ''],
    ],
    'conformance > a request that comes again for less reports the units that were charged': [
      ['do least, above = above, 2 * above end', 'do least, above = above, above + 1 break end'],
      ['while above - least > 1 do', 'while false do'],
      ['then least = middle else above = middle end', 'then above = middle else least = middle end'],
    ],
    'limits/repeats > Redis > a holder whose id comes again is not freed by the decision of the one before': [
      ['if entry_window.units(log, params, now, entry) ~= units then return 0 end', ''],
    ],
    'conformance > what was consumed by an id is renewed and released by it, by anybody': [
      ['if entry_window.units(log, params, now, entry) ~= units then return false end', ''],
    ],
    'conformance > zset: after a large step back all counts from now on': [
      ["if log.entries ~= 'holder' and stamp ~= at_ms then return 0 end", ''],
    ],
    'conformance > a value takes one unit, however often it comes': [
      ["if log.entries == 'value' and entry and", "if log.entries ~= 'value' and entry and"],
      ['log.live - 1, math.min(', 'log.live - 1, math.max('],
      ['params.limits[1]) - 1', 'params.limits[1])'],
    ],
    'conformance > a value that is charged counts without being asked': [
      ['math.min(log.live, params.limits[1]) - 1', 'log.live - 1'],
    ],
    'conformance > a value that is returned was seen all the same': [
      ["if log.entries == 'value' then return 0 end", ''],
    ],
    'conformance > those who hold are shown, with the time of their last renewal': [
      ['log.live = (log.live or live_in(log, params, now)) - units', ''],
      ['log.added, log.units, log.stamp = entry, units, now', ''],
      ['return true', 'return false'],
      [
        "found = call_redis('ZRANGEBYSCORE', log.key, after(now - params.windows[1]), '+inf', 'WITHSCORES')",
        '',
      ],
      ["'1', found[i + 1]", "'1', found[i - 1]"],
    ],
    'histories 2 > distinct, clock set back': [
      ['{}\n  if log.restamped then', '{}\n  if false then'],
      ['0 and i - 1 or i', '0 and i or i'],
    ],
  },
}
