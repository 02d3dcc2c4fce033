import type { Mutants } from '../mutant.ts'

export const windowLog: Mutants = {
  part: 'limits/window-log.lua',
  withoutShortCut: true,
  mutants: {
    'conformance > a refund takes nothing that was charged after a reset': [
      ['    log.since = now\n', '    log.since = 0\n'],
    ],
    'conformance > it tells the charges that count, by their stamps, where it is asked for them and the kind keeps them':
      [
        ['if log.stamp <= cut then return charges end', ''],
        ['if from > 0 then before = at(log, from - 1, TOTAL) end', ''],
        ['stamp, total - before', 'stamp, total'],
        ['    before = total\n', ''],
      ],
    'conformance > of many charges it tells the latest, and how many units there are besides': [
      ['math.max(first_above(log, STAMP, cut), log.count + 1 - most)', 'first_above(log, STAMP, cut)'],
      ['log.count + 1 - most)', 'log.count - most)'],
    ],
    'limits/every-kind > a coarse sliding window in Redis > leaves no key behind where nothing is left in it':
      [
        ['0\n  log.base, log.total, log.stamp, log.head, log.pages, log.count = 0, 0, 0, 0, 0, 0', '0\n  '],
        ['0\n  log.front, log.back = {}, {}', '0\n  '],
        ['if from == to then return {} end', ''],
        ['front, back = struct_unpack(HEADER_FORMAT, raw)', ''],
      ],
    'conformance > a clock may begin at 0': [
      ['- first + 1), unpack(numbers,', '- first - 1), unpack(numbers,'],
      ['log.front = numbers_of(raw, EDGES - front * WIDTH, EDGES)', ''],
      ['1], log.back[2 * index', '1], log.back[2 / index'],
      ['if log.total == log.base then\n    call_redis', 'if true then\n    call_redis'],
      ["then\n    call_redis('SETRANGE', log.key, '0', value)", 'then\n    '],
      ['if not log.ring then', 'if log.ring then'],
    ],
    'conformance > after a small step back keys that are asked together are told apart': [
      ['end\n  log.page_at = nil', 'end\n  '],
      ['== EDGES + log.slots * PAGE_WIDTH', '== EDGES + log.slots / PAGE_WIDTH'],
      ['log.page, log.page_at = read(log, offset, PAGE_WIDTH), offset', ''],
      ['PAGE), place * WIDTH', 'PAGE), place / WIDTH'],
      ['if log.pages < log.slots then', 'if true then'],
      ['log.ring = older .. read(log, EDGES, split) .. page', ''],
      ['log.pages = log.pages + 1', ''],
      ['if log.pages == 0 and #front < 2 * PAGE then', 'if false then'],
      ['make_edges_fit(log, log.params.records)', ''],
      ['value = value .. padding .. records_of(front, 1, #front)', ''],
      ['value = value .. log.ring', ''],
      ['PAGE_WIDTH - #value', 'PAGE_WIDTH + #value'],
    ],
    'limits/every-kind > a sliding window in Redis > refuses "\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000\\u0000" in its place, and leaves it as it is':
      [["if type(raw) ~= 'string' then return raw.err end", '']],
    'history/stored-form > what is stored stays sound: the usual way': [
      ['text_of(offset + length - 1))', 'text_of(offset + length))'],
      ['log.head * PAGE_WIDTH', 'log.head / PAGE_WIDTH'],
      ['   log.front, log.back = {}, {}', '   '],
      ['numbers[2 * PAGE -', 'numbers[2 / PAGE -'],
      ['log.pages = log.pages - 1', ''],
      ['then\n    table.remove(front, 2 * index + 1)', 'then\n    '],
      ['  remove(log, index)', '  '],
      ['remove(log, index - 1)', ''],
    ],
    'limits/logs > Redis > packed > a whole request is returned once, and makes room at once': [
      ['bytes)\n  log.page_at = nil', 'bytes)\n  '],
      ["value = value .. string.rep('\\0', padding)", ''],
      ["call_redis('SET', log.key, value, 'PX', ttl)", ''],
      ["call_redis('SET', log.key, value, 'KEEPTTL')", ''],
      ['if high > count then high = count end', ''],
      ['lower_totals(log.front, 2 * first + 1, units)', ''],
      ['math.floor(in_ring', 'math.ceil(in_ring'],
      ['pages * PAGE_WIDTH),', 'pages / PAGE_WIDTH),'],
      ['= (index - place)', '= (index + place)'],
      ['end\n  log.back = numbers', 'end\n  '],
      ['numbers[#numbers + 1]', 'numbers[#numbers]'],
      ['if index < #front / 2 then', 'if false then'],
      ['1)\n    table.remove(front, 2 * index + 1)', '1)\n    '],
      ['if #front == 0 and log.pages > 0 then fill_front(log) end', ''],
      ['index = index - #front / 2', ''],
      ['< PAGE * log.pages', '< PAGE / log.pages'],
      ['log.pages\n  table.remove(back, 2 * index + 1)', 'log.pages\n  '],
      ['== 0 and log.base', '== 0 or log.base'],
      ['= math.min(units,', '= math.max(units,'],
      ['if index < log.count then lower(log, index, returned) end', ''],
      ['if returned < held then return returned end', ''],
      ['units.\n  if index < log.count then', 'units.\n  if false then'],
      ['log.stamp = at(log, index - 1, STAMP)', ''],
    ],
    'conformance > what a longer window needs is kept, however busy the shorter one is': [
      ["call_redis('SETRANGE', log.key, text_of(offset), bytes)", ''],
      ['(log.head + page)', '(log.head - page)'],
      ['   index = index - PAGE * log.pages', '   '],
      ['write(log, offset_of(log, log.pages), page)', ''],
    ],
    'limits/every-kind > a coarse sliding window in Redis > lives on for all of its time when the clock is set back':
      [['ttl = ttl_of(log.keep, is_clock_given)', '']],
    'traps/damaged-state > a sliding window among others > cut off while it is short it does not trouble the requests beside it either':
      [['if log.slots > 0 or #front > 0 then', 'if true then']],
    'limits/logs > Redis > packed > the request that is in the way is found among thousands, however they lie':
      [["'\\0')\n    call_redis('SETRANGE', log.key, '0', value)", "'\\0')\n    "]],
    'conformance > a denial charges nothing': [
      ['total, stamp = log.total, log.stamp', ''],
      ['log.total = log.total + units', ''],
    ],
    'conformance > after a refund all that came later leaves in its own time': [
      ['high = low + step -', 'high = low - step -'],
    ],
    'limits/logs > Redis > packed > set back by an hour, what had left the window before is not returned': [
      ['if index == 0 then return log.base end', ''],
      ['if log.stamp > cut then', 'if true then'],
    ],
    'conformance > a longer window begins with what the shorter ones have kept': [
      ['return at(log, index - 1, TOTAL)', 'return at(log, index, TOTAL)'],
      ['if records == 0 then return end', ''],
      ['drop(log, first_above(log, STAMP, cut))', ''],
    ],
    'traps/stored-format > a window log of all parts': [
      ['end\n    if log.pages > 0 then', 'end\n    if false then'],
      ['= math.min((left', '= math.max((left'],
    ],
    'conformance > charges saturate, and nobody stays locked for longer than the window': [
      ['log.base = 0', ''],
      ['if log.total + units > MAX_TOTAL then rebase(log, units) end', ''],
    ],
    'traps/numbers > Redis > totals that grow for long, since the log is never empty, stay exact': [
      ['log.total = log.total - shift', ''],
    ],
    'limits/logs > Redis > packed > set back by an hour, what counted counts from then on': [
      ["log.front, log.back, log.ring = {}, {}, ''", ''],
    ],
    'histories 3 > bursts, clock set back': [
      ['if at(log, index, STAMP) ~= stamp or log.count - index > most then return 0 end', ''],
    ],
  },
}
