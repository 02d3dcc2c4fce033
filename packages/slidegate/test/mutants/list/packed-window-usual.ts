import type { Mutants } from '../mutant.ts'

export const packedWindowUsual: Mutants = {
  part: 'limits/packed-window-usual.lua',
  mutants: {
    'conformance > a refund takes nothing that was charged after a reset': [
      ['pages, front, back = now, 0, 0', 'pages, front, back = 0, 0, 0'],
    ],
    'histories 1 > bursts': [
      ['if not is_in_back', 'if is_in_back'],
      [
        'if first_of_back <= bound then records, place, rest, taken, is_in_back = raw, BACK, back, pages, true end',
        '',
      ],
      ['total, stamp = struct_unpack(RECORD_FORMAT, records, place + 1)', ''],
      ['until false', 'until true'],
      ['if next_page then', 'if false then'],
      ['PAGE, low + 1, false', 'PAGE, low - 1, false'],
      ['value1 > bound then', 'value1 >= bound then'],
      ['value4 <= bound then', 'value4 < bound then'],
      ['elseif value2 > bound then', 'elseif false then'],
      [
        'if rest > 0 then oldest_total, oldest_stamp = struct_unpack(RECORD_FORMAT, records, start + 1) end',
        '',
      ],
      ['if stamp <= cut then', 'if stamp < cut then'],
      ['reset = new_stamp + window - now', ''],
      ['if cost > limit then', 'if false then'],
      ['retry = NEVER', ''],
      ['base, pages, front = before, pages - taken, rest', ''],
      ['elseif taken > 0 then', 'elseif taken >= 0 then'],
    ],
    'limits/logs > Redis > packed > several windows are charged together or not at all': [
      ['total, stamp = struct_unpack(RECORD_FORMAT, records, place + (rest - 1) * WIDTH + 1)', ''],
      ['value = column == TOTAL and total or stamp', ''],
      ['value > bound then', 'value >= bound then'],
      ['then\n    oldest_total, oldest_stamp = struct_unpack(RECORD_FORMAT, raw, start + 1)', 'then\n    '],
      ['before_window = total', ''],
      ['used\n  answer = answer + 3', 'used\n  '],
    ],
    'conformance > a limit lowered on a live key counts what is there already': [
      ['if is_in_back then return total, nil, records, place + rest * WIDTH, 0, taken, true end', ''],
    ],
    'conformance > the window slides: each charge leaves it on its own': [
      ['value, pages - 1,', 'value, pages + 1,'],
      [
        "new_front = string.rep('\\0', PAGE_WIDTH - rest * WIDTH) .. string_sub(raw, start + 1, BACK + back * WIDTH)",
        '',
      ],
    ],
    'traps/stored-format > a window log of all parts': [
      ['if low > high then', 'if true then'],
      ['if column == STAMP then value1, value2, value3, value4 = stamp1, stamp2, stamp3, stamp4 end', ''],
      ['2, page + 1, false', '2, page + 1, true'],
      ['if oldest_stamp <= gone then', 'if false then'],
      ['cost - limit\n', 'cost + limit\n'],
      ["if new_front then value = value .. string.rep('\\0', FRONT - #value) .. new_front end", ''],
    ],
    'histories 3 > bursts': [
      ['stamp = back > 0 and struct_unpack(NUMBER_FORMAT, raw, BACK + STAMP + 1) or nil', ''],
    ],
    'conformance > what a longer window needs is kept, however busy the shorter one is': [
      ['offset = EDGES + (head +', 'offset = EDGES - (head +'],
      ['if window < keep and not is_empty then', 'if false then'],
      ['== 0 and front <', '== 0 or front <'],
      ['new_front = string_sub(new_front or string_sub(raw, FRONT + 1), (PAGE - front) * WIDTH + 1)', ''],
      ['front, back = PAGE, front', ''],
      ['elseif pages < slots then', 'elseif false then'],
      ['page, pages, back = EDGES + (head + pages) % slots * PAGE_WIDTH, pages + 1, 0', ''],
      ['ring = string_sub(raw, BACK + 1, FRONT)', ''],
      ['head, slots = 0, math.min(math.max(2 * pages, 1), most)', ''],
      ['pages, back = pages + 1, 0', ''],
      ['if ring then value = value .. ring end', ''],
    ],
    'traps/damaged-state > a sliding window > cut off at any place it does not trouble the requests beside it: 41 requests':
      [['if #found < PAGE_WIDTH then return nil end', '']],
    'conformance > until it charges, a longer window waits only for what is kept': [
      [
        'keep, expires, slots, base, total, stamp, head, pages, front, back = 0, 0, 0, 0, 0, 0, 0, 0, 0, 0',
        '',
      ],
      ['gone = now - keep', 'gone = now + keep'],
      ['then\n  before = total', 'then\n  '],
      ['numbers[i + 1] - used', 'numbers[i + 1] + used'],
      ['if free < cost * fitting then fitting = free < cost and 0 or (free - free % cost) / cost end', ''],
      ['answer = place', ''],
      ['if window > keep then window = keep end', ''],
      ['reply[answer + 1],', 'reply[answer - 1],'],
      ['\n  if mine > 0 then', '\n  if true then'],
      ["call_redis('SETRANGE', key, '0', value)", ''],
    ],
    'traps/what-is-wrong > a coarse sliding window': [['if size < BACK then return nil end', '']],
    'limits/travel-together > consume, of windows alone: what of one is told to the next': [
      ['mine < wanted', 'mine <= wanted'],
      ['if mine < wanted then', 'if true then'],
    ],
    'history/stored-form > a large ring is given back when its log has run empty, a small one kept: the usual way':
      [
        ['if is_new then expires, slots = 0, 0 end', ''],
        ['(is_new or ring)', '(is_new and ring)'],
      ],
    'limits/sliding-count > its keys stand among those of limiters, and live for the period': [
      ['elseif ttl then', 'elseif false then'],
    ],
  },
}
