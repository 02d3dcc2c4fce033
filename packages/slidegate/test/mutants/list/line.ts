import type { Mutants } from '../mutant.ts'

export const line: Mutants = {
  part: 'limits/line.lua',
  withoutShortCut: true,
  mutants: {
    'limits/line-kind > who waits > loses its place when it does not ask again half a second after it could have':
      [
        ['local LINE_SIZE = 7', 'local LINE_SIZE = 6'],
        ['local LINE_SIZE = 7', 'local LINE_SIZE = 8'],
        ['TICKET_SIZE = 30', 'TICKET_SIZE = 29'],
        ['TICKET_SIZE = 30', 'TICKET_SIZE = 31'],
        ['then return false', 'then return true'],
        ['if since < own_since then return true end', ''],
        ['then return true', 'then return false'],
        ['log.tickets = table.concat(tickets)', ''],
        ["log.stamp, log.tickets = 0, ''", ''],
        ["if raw == '' then return nil end", ''],
        ["if raw == '' then", "if raw ~= '' then"],
        ['log.tickets = string_sub(raw, LINE_SIZE + 1)', ''],
        ['string_sub(raw, LINE_SIZE + 1)', 'string_sub(raw, LINE_SIZE)'],
        ['if log.tickets ==', 'if log.tickets ~='],
        ["call_redis('SET', log.key, raw, 'PX', ttl_of(latest - clock, is_clock_given))", ''],
        ['ticket.sinceMs ==', 'ticket.sinceMs ~='],
        ['if until_ms > now and is_before(id,', 'if until_ms >= now and is_before(id,'],
        ['if until_ms > now and is_before(id, since, ticket.id, own_since) then', 'if false then'],
        ['ahead = ahead + units', ''],
        ['if until_ms <= soon or units > room then awaited = awaited + units end', ''],
        ['return math.min(ahead,', 'return math.max(ahead,'],
        ['math.min(awaited,', 'math.max(awaited,'],
        ['ticket.sinceMs, math.min(units,', 'ticket.sinceMs, math.max(units,'],
        ['tickets[#tickets + 1]', 'tickets[#tickets]'],
        ['  write(log, now, tickets)', '  '],
      ],
    'limits/line-kind > the line is bounded > by 256 tickets: one more sees all before it, and takes no place':
      [
        ['MOST_OF_LINE = 7687', 'MOST_OF_LINE = 7686'],
        ['if until_ms > now and id', 'if id'],
        ['#raw <= MOST_OF_LINE', '#raw < MOST_OF_LINE'],
        ['#tickets < 256 then', '#tickets <= 256 then'],
        ['now and #tickets < 256 then', 'now then'],
      ],
    'limits/line-kind > who waits > where some of its requests were admitted, waits from now on with the rest':
      [['if ours ~= theirs then return ours < (theirs or -1) end', '']],
    'histories 3 > a line, the clock set back now and then': [
      ['if id == own then return false end', ''],
      ['own_since and is_less(id,', 'own_since or is_less(id,'],
      [
        'if until_ms > now and id ~= own then others[#others + 1] = string_sub(log.tickets, at, at + TICKET_SIZE - 1) end',
        '',
      ],
      ["if log.tickets == '' then", 'if false then'],
      ["log.tickets, log.stamp = '', 0", ''],
      ['math.min(ticket.sinceMs,', 'math.max(ticket.sinceMs,'],
    ],
    'limits/line-kind > who waits > waits for those before it, too': [
      ['is_less(id, own)', 'is_less(own, id)'],
    ],
    'histories 1 > a line, the clock set back now and then': [
      ['log.stamp = #tickets == 0 and 0 or math.max(log.stamp, now)', ''],
      ['math.max(log.stamp,', 'math.min(log.stamp,'],
      ['_, log.stamp = struct_unpack(LINE_FORMAT, raw)', ''],
      ["call_redis('DEL', log.key)", ''],
    ],
    'traps/what-is-wrong > a line': [["if type(raw) ~= 'string' then return raw.err end", '']],
    'limits/line-kind > the key in Redis > a later format in its place is unavailable, and left alone': [
      ['LINE_SIZE and #raw', 'LINE_SIZE or #raw'],
    ],
    'traps/other-logs > lives for as long as it matters: > a line, and it is no key when nobody waits': [
      ['latest = math.max(latest, until_ms)', ''],
      ['math.max(latest,', 'math.min(latest,'],
    ],
    'limits/line-kind > who waits > who is about to come is awaited, though there is room: after 3599500 ms':
      [['until_ms <= soon', 'until_ms < soon']],
    'limits/line-kind > the key in Redis > lives until the last ticket is over, and not much longer': [
      ['write(log, now, others_in(log, now, id))', ''],
    ],
  },
}
