import type { Mutants } from '../mutant.ts'

export const tokenBucketUsual: Mutants = {
  part: 'limits/token-bucket-usual.lua',
  mutants: {
    'conformance > a token bucket does not charge denials': [
      ['debt = debt - (now - stamp) * rate', 'debt = debt - stamp * rate'],
      ['used = math.ceil(debt / parts)', 'used = math.floor(debt / parts)'],
      ['if free < cost * fitting then fitting = free < cost and 0 or (free - free % cost) / cost end', ''],
      ['answer = answer + 3', 'answer = answer + 2'],
      ['debt, rate = debt + cost * mine * parts, refill', 'rate = refill'],
      ['retry = cost > limit and NEVER or', 'retry ='],
      [
        'math.ceil((debt - (limit - cost) * parts) / rate)',
        'math.floor((debt - (limit - cost) * parts) / rate)',
      ],
      ['used, retry, math.ceil(debt / rate)', 'used, retry, math.floor(debt / rate)'],
    ],
    'conformance > a refund to a token bucket that was full since mints nothing after the clock was set back':
      [['if debt == 0 or last_refill ~= refill then since = now end', '']],
    'conformance > what came back to a bucket at another refill is not returned again': [
      ['if debt == 0 or last_refill ~= refill then', 'if debt == 0 then'],
    ],
    'traps/what-is-wrong > a token bucket with a byte too many': [
      ['if #raw ~= BUCKET_SIZE then return nil end', ''],
    ],
    'traps/damaged-state > a debt beyond all that may be is no log of ours': [['or debt > MOST_PARTS', '']],
    'conformance > after a large step back a token bucket counts its debt from then on': [
      ['or stamp > now', ''],
    ],
    'traps/ttl > a token bucket lives until its debt is paid, and not much longer': [
      ['ttl_of(math.ceil(debt / refill), is_clock_given)', "'1'"],
    ],
  },
}
