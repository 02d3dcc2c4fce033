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
    'conformance > of several keys those are blocked whose limits have denied': [['filled = filled + 3', '']],
    'conformance > an explanation tells what is used, since when, and when it is free again': [
      ['log.params.limits[j] - used + units)', 'log.params.limits[j] - used - units)'],
      ['= blocked > 0 and', '= blocked >= 0 and'],
      ['if used > 0 then', 'if true then'],
      ['times = 11', ''],
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
    'limits/travel-together > a page of overrides travels with decisions, and is of no key of theirs': [
      ['reply[filled + 1], reply[filled + 2] = 0,', 'reply[filled - 1], reply[filled + 2] = 0,'],
    ],
    'conformance > a ban is lifted with a block, and an exempt key is not banned': [
      ['run.blockMs == 0 and not run.rule and logs.ban', 'logs.other'],
      ['log.kind.unblock(log)', ''],
    ],
    'conformance > a block denies in any dimension, leaves the numbers, and ends': [
      ['if override().change(each, run, clock) then existed = 1 end', 'existed = 1'],
    ],
    'limits/travel-together > consume, by one that waits': [['0 or run.isWaiting then', '0 then']],
    'limits/ban-kind > what does not count as a denial > one of a caller that waits': [
      ['if denied == 0 or run.isWaiting then return blocked end', ''],
      ['made = made or make_beyond()', ''],
      ['log.params.limits[j] - used + units)', 'log.params.limits[j] - used + units + 1)'],
    ],
    'histories 1 > several keys': [['step == 0 and 1 or math', 'math']],
    'histories 1 > concurrency': [
      ['now, filled, false)', 'now, filled, true)'],
      ['reply[filled + 1] = is_held', 'reply[filled - 1] = is_held'],
      [
        '  save(logs, clock, run.is_clock_given)\n  reply[filled + 1] = is_held',
        '  \n  reply[filled + 1] = is_held',
      ],
      ['log.is_changed = log.is_changed or counted', ''],
      ['if is_extended then', 'if true then'],
      ["if log.entries == 'holder'", "if log.entries ~= 'holder'"],
    ],
  },
}
