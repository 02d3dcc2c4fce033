import type { Mutants } from '../mutant.ts'

export const beyond: Mutants = {
  part: 'stores/redis/beyond.lua',
  withoutShortCut: true,
  mutants: {
    'conformance > it tells the charges that count, by their stamps, where it is asked for them and the kind keeps them':
      [
        ['local age, units = now - charges[i]', 'local age, units = charges[i] - now'],
        ['if i > 1 and charges[i] == charges[i - 2] then', 'if false then'],
        ['reply[filled + 1] = (last - filled - 1) / 2', 'reply[filled + 1] = #charges / 2'],
        ['if run.charges and log.kind.charges then', 'if log.kind.charges then'],
        ['if run.charges and log.kind.charges then', 'if run.charges then'],
      ],
    'limits/line-kind > who waits > loses its place when it does not ask again half a second after it could have':
      [
        ['local PATIENCE = 500', 'local PATIENCE = 499'],
        ['line in ipairs(logs.line or {}) do', 'line in ipairs(logs.line and {}) do'],
        [
          'if line.part == log.part then return line.kind.ahead(line, line.params, now, ticket, room, now + 2 * PATIENCE) end',
          '',
        ],
        ['if logs[i].ahead > 0 then return true end', ''],
        [
          'formers\n  for _, former in ipairs(logs.former or {}) do',
          'formers\n  for _, former in ipairs(logs.former and {}) do',
        ],
        [
          'now)\n  for _, former in ipairs(formers or {}) do',
          'now)\n  for _, former in ipairs(formers and {}) do',
        ],
        ['= math.min(cost + log.ahead, limit)', '= cost'],
        ['waits[log.part] = waits[log.part] or 0', ''],
        ['log.is_shadow and 0', 'log.is_shadow or 0'],
        ['waits[log.part] = math.max(waits[log.part], retry == NEVER and math.huge or retry)', ''],
        ['wait = math.max(wait, waits[log.part])', ''],
        ['or wait == math.huge,', 'or wait ~= math.huge,'],
        [
          'now)\n  for _, log in ipairs(logs.line or {}) do',
          'now)\n  for _, log in ipairs(logs.line and {}) do',
        ],
        ['do\n    log.is_changed = true', 'do\n    '],
        ['if is_out or waits[log.part] < wait - PATIENCE then', 'if true then'],
        [
          'log.kind.put(log, log.params, now, { id = ticket.id, sinceMs = since }, run.cost, now + expected + PATIENCE)',
          '',
        ],
        ['made = made or make_beyond()', ''],
      ],
    'conformance > who gives up his place, or does not come back, holds up nobody': [
      ['local PATIENCE = 500', 'local PATIENCE = 5000'],
      ['expected + PATIENCE)', 'expected)'],
    ],
    'limits/line-kind > who waits > where something is held, is expected to ask again soon': [
      ['local HELD = 100', 'local HELD = 1000'],
      ['local HELD = 100', 'local HELD = 101'],
      ['local FILL = 100', 'local FILL = 101'],
      ['local FILL = 100', 'local FILL = 50'],
      ['now + 2 * PATIENCE)', 'now + PATIENCE)'],
      ['math.floor((cost + log.ahead', 'math.floor((cost - log.ahead'],
      [
        'math.min(fills * math.min(log.params.windows[j],',
        'math.min(fills / math.min(log.params.windows[j],',
      ],
      ['if log.used[j] + log.charged + wanted <= limit then return fill_time, reset end', ''],
      [
        "if logs[i].entries == 'holder' and not logs[i].is_shadow then expected = math.min(wait, HELD) end",
        '',
      ],
      ["if log.entries == 'holder'", "if log.entries ~= 'holder'"],
      ['if is_extended then', 'if true then'],
      ['log.is_changed = log.is_changed or counted', ''],
      [
        '  save(logs, clock, run.is_clock_given)\n  reply[filled + 1] = is_held',
        '  \n  reply[filled + 1] = is_held',
      ],
      ['reply[filled + 1] = is_held', 'reply[filled - 1] = is_held'],
      ['now, filled, false)', 'now, filled, true)'],
    ],
    'limits/line-kind > who waits > is told a time apart from those of the others, where a limit is filled many times':
      [
        ['MOST_FILLS = 1000', 'MOST_FILLS = 1001'],
        ['MOST_FILLS = 1000', 'MOST_FILLS = 2000'],
      ],
    'conformance > a dimension can be told of changes on its own': [
      ['if former.part ~= log.part then return nil end', ''],
      ['if served == limit then return math.min(place, #former.params.windows) end', ''],
      [
        'now)\n  for _, former in ipairs(logs.former or {}) do',
        'now)\n  for _, former in ipairs(logs.former and {}) do',
      ],
      ['if place then log.used[j] = log.used[j] + former.used[place] end', ''],
      ['log.ones = log.ones or {}', ''],
      ['if not one then', 'if false then'],
      [
        'one = setmetatable({ windows = { params.windows[j] }, limits = { params.limits[j] } }, { __index = params })',
        '',
      ],
      ['log.kind.check(log, one, at_ms, later, true)', ''],
      ['formers = formers or {}', ''],
    ],
    'histories 3 > windows that change': [['log.params.serves[j]', 'log.params.serves[1]']],
    'histories 1 > reservations under limits that change': [
      ['return math.min(place, #former.params.windows)', 'return place'],
    ],
    'conformance > a sliding window after a fixed one: what was used before counts on, if it is told of': [
      ['= log.used[j] + former.used[place] end', '= math.max(log.used[j], former.used[place]) end'],
    ],
    'limits/line-kind > who waits > lines of several parts are each their own': [
      ['if line.part == log.part then', 'if true then'],
      ['place = place + 3', ''],
      ['log.kind.remove(log, log.params, now, ticket.id)', ''],
      ['filled)\n  save(logs, clock, run.is_clock_given)', 'filled)\n  '],
      [
        'filled)\n  for _, log in ipairs(logs.line or {}) do',
        'filled)\n  for _, log in ipairs(logs.line and {}) do',
      ],
      ['run.id)\n    log.is_changed = true', 'run.id)\n    '],
      ['log.kind.remove(log, log.params, now, run.id)', ''],
    ],
    'conformance > requests that are denied together count one by one': [
      ['part and not log.is_shadow', 'part and log.is_shadow'],
      ['if log.used[j] + log.charged + log.cost > log.params.limits[j] then return true end', ''],
      [
        'blocked end\n  for _, log in ipairs(logs.ban or {}) do',
        'blocked end\n  for _, log in ipairs(logs.ban and {}) do',
      ],
      ['denied))\n      log.is_changed = true', 'denied))\n      '],
      ['blocked = math.max(blocked, log.kind.denied(log, log.params, now, denied))', ''],
      ['filled = answer(logs, run, now, run.count, filled + 1)', ''],
      ['reply[filled + 1] = times', 'reply[filled] = times'],
      ['filled = filled + 1 + times', ''],
      [
        '  end\n  for _, log in ipairs(logs.ban or {}) do',
        '  end\n  for _, log in ipairs(logs.ban and {}) do',
      ],
      ['3], reply[filled + 1],', '3], reply[filled - 1],'],
    ],
    'limits/ban-kind > what does not count as a denial > a denial by the limits of another part, though a shadow limit of this one has no room':
      [['part and not log.is_shadow', 'part']],
    'limits/ban-kind > what does not count as a denial > one who waits in line': [
      ['if denied == 0 or run.ticket then return blocked end', ''],
      ['0\n    if log.counts then', '0\n    if true then'],
    ],
    'limits/travel-together > consume, in line': [
      ['0 or run.ticket then', '0 then'],
      ['log.params.limits[j] - used + units)', 'log.params.limits[j] - used + units + 1)'],
    ],
    'conformance > of several keys those are blocked whose limits have denied': [
      ['0 and has_denied(logs, log.part) then', '0 then'],
      ['filled = filled + 3', ''],
    ],
    'limits/ban-kind > blocked by hand > only so, with `true`: denials then leave nothing behind, and no command is spent on it':
      [['log.params.after > 0', 'log.params.after >= 0']],
    'conformance > another alignment: no wait is too short, none is for ever, and all is free in the end': [
      ['formers[#formers + 1]', 'formers[#formers]'],
    ],
    'conformance > a bucket after a sliding window: no wait is too short, none is for ever, and all is free in the end':
      [
        [
          'reset = math.max(reset, former.kind.reset_after(former, former.params, place_in(former, log, j), now))',
          '',
        ],
        ['   for _, former in ipairs(formers or {}) do', '   for _, former in ipairs(formers and {}) do'],
        ['j, now + middle)', 'j, now - middle)'],
        ['used = used + used_at(former, place_in(former, log, j), now + middle)', ''],
        ['if formers then return falls_to(log, formers, j, now, limit - wanted) + fill_time, reset end', ''],
      ],
    'conformance > of what was used under limits of before it tells how much, but not since when': [
      ['if formers then return falls_to(log, formers, j, now, used - units) end', ''],
      ['or math.ceil(used', 'or math.floor(used'],
    ],
    'conformance > an explanation tells what is used, since when, and when it is free again': [
      ['log.params.limits[j] - used + units)', 'log.params.limits[j] - used - units)'],
      ['= blocked > 0 and', '= blocked >= 0 and'],
      ['if used > 0 then', 'if true then'],
      ['times = 11', ''],
    ],
    'limits/line-kind > who waits > who sleeps though there is room holds up nobody; who has none yet, or is about to come, does':
      [['if not is_full then return 0, reset end', '']],
    'histories 3 > a line, the clock set back now and then': [
      ['if cost > limit then return NEVER, reset end', ''],
      ['now, wanted) + fill_time,', 'now, wanted) - fill_time,'],
      ['ticket.sinceMs ==', 'ticket.sinceMs ~='],
    ],
    'limits/line-kind > a clock that was set back > by more than a second: the line is forgotten, and all ask again':
      [['or math.min(ticket.sinceMs, now)', 'or ticket.sinceMs']],
    'limits/line-kind > who waits > since a time that the clock has not reached again, comes before who comes later':
      [['or math.min(ticket.sinceMs, now)', 'or ticket.sinceMs']],
    'limits/line-kind > where Redis is out of memory, who is denied waits all the same, in no line': [
      ['pcall(save, logs.line,', 'save(logs.line,'],
    ],
    'conformance > ops of a list are decided in its order': [
      ['run.is_clock_given)\n  reply[filled + 1] = 0', 'run.is_clock_given)\n  reply[filled] = 0'],
      ['0\n  return filled + 1\nend', '0\n  return filled - 1\nend'],
      ['0, run.id)\n      log.is_changed = true', '0, run.id)\n      '],
    ],
    'limits/travel-together > charge': [
      [
        'ops.charge(logs, run, clock, now, filled)\n  restamp(logs, now)',
        'ops.charge(logs, run, clock, now, filled)\n  ',
      ],
    ],
    'limits/repeats > Redis > nor is the other when the first has left its window': [
      ["if logs[i].entries == 'request' and not logs[i].is_shadow then entries = 'request' end", ''],
      ['if log.entries == entries and not log.is_shadow then', 'if false then'],
      ['    return false', '    return true'],
      ['now, run.id) ~= run.units then', 'now, run.id) == run.units then'],
      ['end\n  return true', 'end\n  return false'],
      ['run.mayRepeat or is_still_charged(logs,', 'run.mayRepeat and is_still_charged(logs,'],
      ['run.charged[i] and is_charged', 'run.charged[i] or is_charged'],
      ['returned = log.kind.refund(log, log.params, now, run.atMs, run.units, run.id)', ''],
      ['log.is_changed = returned > 0', ''],
      ['reply[filled + i]', 'reply[filled - i]'],
      ['  save(logs, clock, run.is_clock_given)\n  return', '  \n  return'],
    ],
    'limits/repeats > Redis > nor both when the clock was set back in between': [
      ["entries == 'request' and at_ms ~= run.atMs or ", ''],
    ],
    'limits/repeats > Redis > a decision on a request that was returned takes nothing back of another of its id':
      [
        [' or log.kind.units(log, log.params, now, run.id) ~= run.units then', ' then'],
        ['= not run.mayRepeat or is_still_charged(logs, now, run)', '= true'],
      ],
    'limits/travel-together > refund': [
      ['return filled + #logs', 'return filled - #logs'],
      ['run, _, now, filled)\n  restamp(logs, now)', 'run, _, now, filled)\n  '],
      ['= blocked > 0 and 0 or admitted', '= admitted'],
    ],
    'limits/travel-together > extend': [
      ['is_extended)\n  restamp(logs, now)', 'is_extended)\n  '],
      ['is_held\n  return filled + 1', 'is_held\n  return filled - 1'],
    ],
    'limits/travel-together > release, what nobody holds': [['= log.is_changed or counted', '= counted']],
    "conformance > a release that comes too late frees nobody else's": [
      ['if not (counted or log.is_shadow) then is_held = 0 end', ''],
    ],
    'limits/permits > Redis > is held where a shadow limit had no room for it': [
      ['not (counted or log.is_shadow) then', 'not counted then'],
    ],
    'conformance > those who hold are shown, with the time of their last renewal': [
      ['now, filled, true)', 'now, filled, false)'],
      ['log.params, now) or {}', 'log.params, now) and {}'],
    ],
    'histories 2 > distinct, clock set back': [
      ['_, _, now, filled)\n  restamp(logs, now)', '_, _, now, filled)\n  '],
    ],
    'limits/travel-together > settle': [
      [
        'ops.settle(logs, run, clock, now, filled)\n  restamp(logs, now)',
        'ops.settle(logs, run, clock, now, filled)\n  ',
      ],
      ['and run.charged[i] and', 'and'],
      [' and charged_at[log.part] == run.instants[log.part] then', ' then'],
      ['or math.ceil(used', 'or math.floor(used'],
    ],
    'limits/given-back-once > Redis: what counts anew, for the clock was set back, is not returned by a settlement':
      [
        ['run.units, filled + 1', 'run.units, filled - 1'],
        ['charged_at[log.part] = log.kind.find(log, log.params, now, run.reservation)', ''],
        ["if log.params.role == 'reservations' then", 'if true then'],
      ],
    'limits/given-back-once > Redis: a reservation is settled, not refunded': [
      ['ipairs(logs.reservations or {})', 'ipairs(logs.reservations and {})'],
    ],
    'limits/travel-together > settle, what nobody has reserved': [
      ['   save(logs, clock, run.is_clock_given)', '   '],
    ],
    'conformance > after a reset nothing is to be settled, and nothing is minted': [
      ['if not charged_at[log.part] then', 'if false then'],
    ],
    'conformance > of several who settle at once one does': [
      ['run.reservation)\n      log.is_changed = true', 'run.reservation)\n      '],
      ['log.kind.refund(log, log.params, now, charged_at[log.part], 1, run.reservation)', ''],
      ['log.is_changed = log.is_changed or returned > 0', ''],
      ['reply[first + i]', 'reply[first - i]'],
      ['return first + #logs', 'return first - #logs'],
    ],
    'conformance > what is charged beyond the estimate may pass the limit': [
      ['elseif rest > 0 and log.counts then', 'elseif false then'],
      ['if log.entries ~=', 'if log.entries =='],
      ['       log.is_changed = true', '       '],
      ["log.kind.commit(log, log.params, now, rest, 0, log.entries and run.reservation or '')", ''],
      ['  save(logs, clock, run.is_clock_given)\n  reply[first]', '  \n  reply[first]'],
      ['reply[first] = 1', ''],
    ],
    'conformance > a settlement is no holder': [["if log.entries ~= 'holder' then", 'if true then']],
    'limits/ban-kind > a clock that was set back > denials keep their age': [
      [
        'ops.block(logs, run, clock, now, filled)\n  restamp(logs, now)',
        'ops.block(logs, run, clock, now, filled)\n  ',
      ],
    ],
    'conformance > of several keys it tells each; of some of them, too': [
      ['run.ms)\n    log.is_changed = true', 'run.ms)\n    '],
      ['log.kind.block(log, log.params, now, run.ms)', ''],
      ['blocked_for(logs.ban or {},', 'blocked_for(logs.ban and {},'],
    ],
    'overrides/overrides > overrides in redis > no process need hear of the end of a ttl': [
      ['reply[filled + 1] = outcome', 'reply[filled - 1] = outcome'],
    ],
    'overrides/notes-of-overrides > written by several at once, in redis > all of them are remembered': [
      ['if not next then return filled + 1 end', ''],
    ],
    'limits/notes > in Redis > that is full says so to each of those who write at the same time': [
      ['next\n  return filled + 2', 'next\n  return filled - 2'],
      ['reply[filled + 2] = next', 'reply[filled - 2] = next'],
    ],
    'limits/travel-together > notes': [
      ['reply[filled + 1], reply[filled + 2] = 0,', 'reply[filled - 1], reply[filled + 2] = 0,'],
    ],
  },
}
