import type { Mutants } from '../mutant.ts'

export const general: Mutants = {
  part: 'stores/redis/general.lua',
  withoutShortCut: true,
  mutants: {
    'conformance > after a large step back all counts from now on: never over': [
      ['MAX_AHEAD = 1000', 'MAX_AHEAD = 1001'],
      ['kinds[tag] = kinds[tag] or makers[tag]()', ''],
      [
        'kind = kind_of(params.kind), params = params, entries = params.entries, is_shadow = params.shadow, used = {},',
        '',
      ],
      ['part = part, counts = not params.role,', ''],
      ['logs[#logs + 1] =', 'logs[#logs - 1] ='],
      ['if params.role then', 'if true then'],

      ['damage = log.kind.load(log) or damage', ''],
      ['if log.stamp > now then', 'if false then'],
      ['log.kind.restamp(log, log.params, now)', ''],
      ['and 0 or cost', 'and 0 or 0'],
      ['= math.max(0, limits[i]', '= math.min(0, limits[i]'],
      ['if free < cost * count then count = math.floor(free / cost) end', ''],
      ['log.kind.check(log, log.params, now, log.used, false, run.id)', ''],
      ['log.cost = cost_in(log, now, run.cost, run)', ''],
      ['if not log.is_shadow then admitted = room_in(log, admitted) end', ''],
      ['log.charged, log.is_changed = log.cost * fitting, true', ''],
      ['log.kind.commit(log, log.params, now, log.charged, run.leaseMs, run.id)', ''],
      ['reply[filled + 1] = used[j]', 'reply[filled - 1] = used[j]'],
      ['if is_full then retry = kind.retry_after(log, params, j, now, cost) end', ''],
      ['reply[filled + 2], reply[filled + 3] = retry,', 'reply[filled - 2], reply[filled + 3] = retry,'],
      ['if log.is_changed then log.kind.save(log, clock, is_clock_given) end', ''],
      [
        'ops.consume(logs, run, clock, now, filled)\n  restamp(logs, now)',
        'ops.consume(logs, run, clock, now, filled)\n  ',
      ],
      ['if admitted > 0 and not first then commit(logs, now, run, admitted) end', ''],
      ['if logs.ban and admitted < run.count then', 'if true then'],
      ['end\n  save(logs, clock, run.is_clock_given)', 'end\n  '],
      ['reply[filled + 1] = admitted', 'reply[filled] = admitted'],
    ],
    'conformance > a small step back holds time until the clock has caught up': [
      ['MAX_AHEAD = 1000', 'MAX_AHEAD = 999'],
      ['if newest > now and newest <= clock + MAX_AHEAD then now = newest end', ''],
    ],
    'conformance > requests that are denied together count one by one': [
      ['log.entries, logs[params.role] = nil, logs[params.role] or {}', ''],
      ['    if log.counts then\n      log.kind.check(log,', '    if true then\n      log.kind.check(log,'],

      ['    if log.counts then\n      local', '    if true then\n      local'],
      ['blocked = beyond().ban_denied(logs, now, run, run.count - admitted)', ''],
      ['if admitted == 0 and not pcall(save, logs.ban, clock, run.is_clock_given) then blocked = 0 end', ''],
      ['reply[filled + 1],', 'reply[filled - 1],'],
    ],
    'conformance > after the clock was set back, a window from the first hit on begins now': [
      ['now and newest <= clock + MAX_AHEAD then', 'now then'],
    ],
    'conformance > a denial, too, sets the times right, so that the wait is not begun anew': [
      ['     log.is_changed = true', '     '],
    ],
    'limits/repeats > Redis > what a shadow limit had no room for is not returned to it, and it lets nobody pass':
      [['and not log.is_shadow and', 'and']],
    'conformance > equal requests that come at once are one': [
      ['if at_ms then return { at_ms = at_ms, units = log.kind.units(log, log.params, now, id) } end', ''],
      ['run.mayRepeat and (log.entries', 'run.mayRepeat or (log.entries'],
      ['reply[start + 2],', 'reply[start - 2],'],
      ['end\n  if first then', 'end\n  if false then'],
    ],
    'limits/repeats > Redis > of holders, one is returned': [
      [
        "and (find_in(logs, 'request', now, run.id) or find_in(logs, 'holder', now, run.id))",
        "and find_in(logs, 'request', now, run.id)",
      ],
    ],
    "limits/every-kind > 'so many different values', 'Redis', among the rest > many at once are decided in their order":
      [['filled = filled + 3', '']],
    'conformance > a value takes one unit, however often it comes': [
      ['log.used, false, run.id)', 'log.used)'],
      ['reply[filled + 1] = check(logs,', 'reply[filled] = check(logs,'],
    ],
    'conformance > of requests made at once the first are admitted, in their order': [
      ['= math.floor(free / cost) end', '= 0 end'],
      ['log.cost * fitting,', 'log.cost,'],
    ],
    'conformance > with shadow limits only, everything is allowed and nothing awaited': [
      [
        'if not log.is_shadow then admitted = room_in(log, admitted) end',
        'admitted = room_in(log, admitted)',
      ],
    ],
    'conformance > a shadow limit has a history of its own': [
      ['= log.is_shadow and room_in(log, admitted) or admitted', '= admitted'],
    ],
    'limits/logs > Redis > stream > a shadow limit counts what it has room for, and decides nothing': [
      ['fitting > 0 and log.cost', 'log.cost'],
    ],
    'limits/given-back-once > Redis: what counts anew, for the clock was set back, is not returned by a settlement':
      [
        ['do\n    log.is_changed = true', 'do\n    '],
        ['ipairs(logs.reservations or {})', 'ipairs(logs.reservations and {})'],
        ['log.kind.commit(log, log.params, now, 1, 0, run.reservation)', ''],
      ],
    'conformance > of several who settle at once one does': [
      ['log.params, now, 1,', 'log.params, now, run.cost,'],
    ],
    'limits/travel-together > consume, of windows alone: what of one is told to the next': [
      ['= charged < cost * count and used[j]', '= used[j]'],
    ],
    'limits/logs-in-redis > zset > the id of a request that is long or unprintable is stored as its hash': [
      ['= start + 3, answer(logs,', '= start - 3, answer(logs,'],
      ['place = place + 3', ''],
      ['if reply[place] > 0 then reply[place] = reply[place] + now - at_ms end', ''],
    ],
    'histories 3 > concurrency': [
      ['if takes_once(logs[i], run) then place = place + 1 end', ''],
      ['     filled = filled + 1', '     '],
      ['if takes_once(log, run) then', 'if false then'],
      ['reply[filled] = cost', ''],
      ['log.kind.find(log, log.params, now, run.id) and 0 or cost', 'cost'],
    ],
    'conformance > a request that came twice is returned once': [['0 and not first then', '0 then']],
    'limits/repeats > Redis > one that comes after the clock was set back counts from then on, however often it comes':
      [['first then\n    save(logs, clock, run.is_clock_given)', 'first then\n    ']],
    'traps/other-logs > out of memory, > what would be written is refused, and nothing is half written': [
      [
        '0 and not pcall(save, logs.ban, clock, run.is_clock_given) then blocked = 0 end',
        '0 then save(logs.ban, clock, run.is_clock_given) end',
      ],
    ],
    'conformance > denials bring on a ban, the last of them says so': [
      ['if blocked > 0 then', 'if false then'],
      ['BLOCKED, blocked\n    filled = filled + 2', 'BLOCKED, blocked'],
    ],
    'conformance > a blocked key waits for its limits, too, if they open after the ban': [
      ['check(logs, now, run)\n  reply[filled] = 0', 'reply[filled] = 0'],

      ['reply[filled + 1] = BANNED', ''],
      ['= (ban.kind.look(ban, ban.params, now))', '= 0'],

      ['return answer(logs, run, now, run.count, filled)', 'return filled'],
    ],
    'histories 2 > bans, clock set back': [
      ['if banned then\n    save(logs, clock, run.is_clock_given)', 'if banned then'],
      ['if banned then return banned end', ''],
    ],
    'histories 1 > bans': [['reply[filled] = 0\n  return', 'return']],
    'limits/logs > Redis > stream > set back by an hour, what counted counts from then on': [
      [
        'ops.peek(logs, run, clock, now, filled)\n  restamp(logs, now)',
        'ops.peek(logs, run, clock, now, filled)\n  ',
      ],
    ],
    'conformance > a request that comes again for less reports the units that were charged': [
      ['at_ms - clock, first.units', 'at_ms - clock, run.cost'],
    ],
    'conformance > a count of requests is decided like as many single ones': [
      ['log.charged + log.cost', 'log.cost'],
    ],
    'limits/ban-kind > what does not count as a denial > one of a caller that waits': [
      ['table.insert(logs[params.role], log)', ''],
    ],
    'conformance > an override is in force for its key, in every process, until it is deleted': [
      ["keys = keys + (run.type == 'override' and 2 or 1)", 'keys = keys + 1'],
      [
        'if logs.is_overridden then filled = override().tell(logs, filled) end\n  local banned = denial_by_ban(logs, run, now, filled)\n  if banned then\n',
        'local banned = denial_by_ban(logs, run, now, filled)\n  if banned then\n',
      ],
    ],
    'conformance > a block denies in any dimension, leaves the numbers, and ends': [
      ['local blocked, bans = logs.blocked_ms, logs.ban', 'local blocked, bans = 0, logs.ban'],
      ['not logs.ban and logs.blocked_ms == 0', 'not logs.ban'],
    ],
  },
}
