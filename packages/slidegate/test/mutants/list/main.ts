import type { Mutants } from '../mutant.ts'

export const main: Mutants = {
  part: 'stores/redis/main.lua',
  mutants: {
    'faults/receipts > a call that is executed twice in a row > leaves a receipt that goes by itself': [
      ["RECEIPT_TTL = '600000'", "RECEIPT_TTL = '600'"],
    ],
    'faults/receipts > a call that is executed twice in a row > leaves none where nothing was charged': [
      ["if ARGV[1] == 'once' then", 'if false then'],
      ['is_repeatable and not run.isLook then', 'is_repeatable then'],
      ['ARGV[at + 5] + 0 }', 'ARGV[at - 5] + 0 }'],
      ['       local first = filled + 1', '       local first = filled'],
      ['receipt and not is_repeatable then', 'receipt then'],
    ],
    'faults/receipts > a call that comes after a later one of its place is not executed': [
      ['if last == number then', 'if false then'],
      ['at, keys, is_repeatable = 3, keys - 1, true', ''],
      ['= ARGV[at + 2] +', '= ARGV[at - 2] +'],
      ['if is_repeatable and reply[start + 1] ~= 0 then is_repeatable = false end', ''],
    ],
    'conformance > charges of one grain leave the window together': [
      ['ops, cost, wanted = ARGV[at] + 0, ARGV[at + 1] + 0, ARGV[at + 2] + 0', ''],
      ['at = at + 3', ''],
      ['if admitted then', 'if false then'],
    ],
    'conformance > a clock may begin at 0': [['is_clock_given = clock >= 0', 'is_clock_given = clock > 0']],
    'conformance > an hour ends where the local clock is set by half of one': [
      ['if not is_clock_given', 'if is_clock_given'],
    ],
    "limits/every-kind > 'so many at the same time', 'Redis', among the rest > many at once are decided in their order":
      [
        [
          'then\n    if not apply_generally then apply_generally, usual_run = general_driver(reply) end',
          'then\n    ',
        ],
        ['if run.hasId then', 'if false then'],
        ['run.id = ARGV[at]\n        at = at + 1', 'run.id = ARGV[at]\n        '],
        ['run.id = ARGV[at]', ''],
        [
          '1\n      filled, keys_read = apply_generally(run, clock, is_clock_given, filled, keys_read)',
          '1\n      ',
        ],
      ],
    'faults/receipts > a call that is executed twice in a row > is charged once, and answered alike: windows of two kinds':
      [['== 0 and not run.isDenialKept', '== 0 or not run.isDenialKept']],
    'conformance > no window holds more than its limit, and whatever fits is admitted': [
      ['for i = read + 1, is_more and log_end + 5 or log_end do words[i] = ARGV[at + i - 1] + 0 end', ''],
      [
        'if decide then kinds[LATER + log - 1] = kinds[kind] else decide = kinds[kind] end',
        'decide = kinds[kind]',
      ],
      ['is_more and log_end + 5 or log_end', 'log_end'],
      ['keys_per_op, log, read = keys_per_op + 1,', 'keys_per_op, log, read = 1,'],
      ['and -log_end or log_end', 'and log_end or log_end'],
    ],
    'histories 1 > one short log': [['0\n      at = at + 1', '0\n      ']],
    'faults/receipts > a call that is executed twice in a row > is charged once, and answered alike: sliding windows':
      [
        ['groups = ARGV[at] + 0', ''],
        ['1, keys_read + 1, start', '1, keys_read + 2, start'],
      ],
    'faults/receipts > a call that is executed twice in a row > is answered alike where an op cannot be decided':
      [['run = run or usual_run', 'run = run and usual_run']],
  },
}
