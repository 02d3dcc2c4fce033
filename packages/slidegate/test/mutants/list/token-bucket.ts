import type { Mutants } from '../mutant.ts'

export const tokenBucket: Mutants = {
  part: 'limits/token-bucket.lua',
  mutants: {
    'conformance > a token bucket starts full, and its tokens are refilled one by one': [
      ["'>BI6I7I6I6I6'", "'<BI6I7I6I6I6'"],
      ['BUCKET_SIZE = 32', 'BUCKET_SIZE = 31'],
      ['local rate, is_restamped = refill, false', 'local rate, is_restamped = 0, false'],
      ['if stamp <= now then', 'if stamp < now then'],
    ],
    'redis/state-errors > a token bucket with an extra byte is rejected': [
      ["LAST_OF_BUCKET = '32'", "LAST_OF_BUCKET = '31'"],
    ],
    'conformance > the debt of a token bucket is capped at 366 days, even after its refill changes': [
      ['MAX_PARTS = 2 ^ 52', 'MAX_PARTS = 2 ^ 51'],
      ['if format ~= 1 or debt > MAX_PARTS then', 'if format ~= 1 or debt >= MAX_PARTS then'],
      ['if last_refill > refill then', 'if last_refill < refill then'],
      ['if rate == refill then', 'if rate ~= refill then'],
      ['if debt > words[p + 3] then debt = words[p + 3] end', ''],
    ],
    'redis/state-errors > a token bucket rejects values of another type or format': [
      ['return nil, raw.err or NO_BUCKET', 'return nil, NO_BUCKET'],
      ['if #raw ~= BUCKET_SIZE then', 'if #raw == 0 then'],
    ],
    'conformance > a token bucket that has been full since the charge refunds nothing after the clock was set back':
      [
        ['if debt < 0 then debt = 0 end', ''],
        ["EMPTY_BUCKET = '\\1' .. string.rep('\\0', 31)", "EMPTY_BUCKET = '\\1' .. string.rep('\\1', 31)"],
      ],
    'conformance > a bucket keeps its debt when its refill changes': [['debt - (now', 'debt + (now']],
    'conformance > after the clock is set back slightly, a token bucket waits for the clock': [
      ['then return nil, stamp end', 'then return nil, now end'],
    ],
    'conformance > after the clock is set back by more than 1 s, the debt of a token bucket counts as if charged now':
      [
        ['expires, is_restamped = 0, true', 'expires, is_restamped = 0, false'],
        ['debt + parts - 1', 'debt + parts'],
        ['(used - used % parts) / parts', 'used / parts'],
        ['free = capacity - used', 'free = capacity + used'],
        ['words[p + 4]', 'words[p + 3]'],
      ],
    'histories 1 > bucket, great': [
      ['if since > now then since = now end', ''],
      ['math.max(0, now - bucket.stamp) *', '(now - bucket.stamp) *'],
      ['math.max(0, math.min(units', '(math.min(units'],
    ],
    'conformance > a charge can put a token bucket in debt until it is refilled': [
      ['free < cost and 0 or (free', '(free'],
    ],
    'histories 1 > bucket': [['rate, place + 2', 'rate, place + 1']],
    'histories 2 > bans by bucket of several keys': [['mine + cost > capacity', 'mine + cost >= capacity']],
    'histories 1 > bucket, clock set back': [
      ['or is_restamped and not is_look then', 'or is_restamped then'],
    ],
    'conformance > a refund to a token bucket adds no quota beyond its charge': [
      ['if is_first then since = now end', ''],
      ['is_first = debt == 0 or last_refill ~= refill', 'is_first = last_refill ~= refill'],
    ],
    "conformance > units that a bucket refilled at another rate aren't refunded again": [
      ['cost * mine * parts, refill', 'cost * mine * parts, last_refill'],
    ],
    'conformance > a settlement refunds its own charge, whatever was charged before and after': [
      ["    call_redis('SETRANGE', key, '1', value)\n", ''],
      ['if returned == debt then', 'if true then'],
    ],
    'redis/ttl > a token bucket with more debt than its current refill allows lives for 366 days': [
      ['keep % last_refill) / last_refill', 'keep % last_refill) / refill'],
    ],
    'redis/ttl > the TTL of a token bucket is renewed only if it would end before the debt is paid': [
      ['if expires < now + keep then', 'if expires < keep then'],
      ['last_refill, clock + lifetime', 'last_refill, clock + 2 * lifetime'],
    ],
    'redis/ttl > every key has a TTL that is no longer than needed > with a clock option, at least ten minutes':
      [['ttl_of(keep, clock ~= reply[1])', 'ttl_of(keep, false)']],
    "limits/every-kind > 'a token bucket', 'Redis' > stores no time after all of its units were refunded": [
      ["call_redis('DEL', bucket.key)", ''],
      ['at_ms > bucket.stamp', 'at_ms >= bucket.stamp'],
    ],
    "conformance > a refund to a token bucket returns only tokens that haven't refilled yet": [
      ['math.ceil(returned', 'math.floor(returned'],
    ],
    'conformance > if a refund is the first call after the clock is set back by more than 1 s, the remaining debt counts as if charged now':
      [['debt - returned))', 'debt))']],
    "limits/every-kind > 'a token bucket', 'Redis', with other operations > decides each key of a batch on its own":
      [
        [
          "if raw then kinds[key] = nil else raw = pcall_redis('GETRANGE', key, '0', LAST_OF_BUCKET) end",
          "if not raw then raw = pcall_redis('GETRANGE', key, '0', LAST_OF_BUCKET) end",
        ],
      ],
  },
}
