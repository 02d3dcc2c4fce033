import type { Mutants } from '../mutant.ts'

export const tokenBucket: Mutants = {
  part: 'limits/token-bucket.lua',
  mutants: {
    'conformance > a token bucket is full at first, and tokens come back one by one': [
      ["'>BI6I7I6I6I6'", "'<BI6I7I6I6I6'"],
      ['BUCKET_SIZE = 32', 'BUCKET_SIZE = 31'],
      ['BUCKET_SIZE = 32', 'BUCKET_SIZE = 33'],
      ['local rate, is_restamped = refill, false', 'local rate, is_restamped = 0, false'],
      [
        "if raw ~= '' then return nil, raw.err or NO_BUCKET end",
        "if raw == '' then return nil, NO_BUCKET end",
      ],
      ['if stamp <= now then', 'if stamp < now then'],
    ],
    'redis/state-errors > a token bucket with a byte too many': [
      ["LAST_OF_BUCKET = '32'", "LAST_OF_BUCKET = '31'"],
    ],
    'conformance > the debt of a token bucket saturates, at a smaller refill too: it is paid in 366 days': [
      ['MAX_PARTS = 2 ^ 52', 'MAX_PARTS = 2 ^ 51'],
      ['if format ~= 1 or debt > MAX_PARTS then', 'if format ~= 1 or debt >= MAX_PARTS then'],
      ['if last_refill > refill then rate = last_refill end', ''],
      ['if last_refill > refill then', 'if last_refill < refill then'],
      ['if rate == refill then', 'if true then'],
      ['if rate == refill then', 'if rate ~= refill then'],
      ['if debt > words[p + 3] then debt = words[p + 3] end', ''],
    ],
    'redis/damaged-state > a debt beyond all that may be is no log of ours': [
      ['MAX_PARTS = 2 ^ 52', 'MAX_PARTS = 2 ^ 53'],
      ['if format ~= 1 or debt > MAX_PARTS then', 'if format ~= 1 then'],
    ],
    'redis/state-errors > a token bucket': [
      ['return nil, raw.err or NO_BUCKET', 'return nil, NO_BUCKET'],
      ['if #raw ~= BUCKET_SIZE then', 'if #raw == 0 then'],
    ],
    'conformance > a refund to a token bucket that was full since mints nothing after the clock was set back':
      [
        ['if stamp <= now then', 'if true then'],
        ['if debt < 0 then debt = 0 end', ''],
        ["EMPTY_BUCKET = '\\1' .. string.rep('\\0', 31)", "EMPTY_BUCKET = '\\1' .. string.rep('\\1', 31)"],
      ],
    'conformance > a bucket keeps its debt when its refill changes': [
      ['(now - stamp) * rate', '(now - stamp) * refill'],
      ['debt - (now', 'debt + (now'],
    ],
    'conformance > after a small step back a token bucket waits for the clock': [
      ['if stamp <= clock + MAX_AHEAD then return nil, stamp end', ''],
      ['then return nil, stamp end', 'then return nil, now end'],
    ],
    'histories 3 > bans, clock set back': [
      ['if stamp <= clock + MAX_AHEAD then', 'if stamp <= now + MAX_AHEAD then'],
    ],
    'conformance > after a large step back a token bucket counts its debt from then on': [
      ['expires, is_restamped = 0, true', 'expires, is_restamped = 0, false'],
      ['debt + parts - 1', 'debt + parts'],
      ['debt + parts - 1', 'debt'],
      ['(used - used % parts) / parts', 'used / parts'],
      ['free = capacity - used', 'free = capacity + used'],
      ['words[p + 4]', 'words[p + 3]'],
      ['if mine > 0 or is_restamped and not is_look then', 'if mine > 0 then'],
    ],
    'limits/every-kind > a token bucket in Redis > lives on for all of its time when the clock is set back': [
      ['expires, is_restamped = 0, true', 'is_restamped = true'],
    ],
    'histories 1 > bucket, great': [
      ['if since > now then since = now end', ''],
      ['math.max(0, now - bucket.stamp) *', '(now - bucket.stamp) *'],
      ['math.max(0, math.min(units', '(math.min(units'],
      ['math.max(0, now - at_ms)', '(now - at_ms)'],
    ],
    'conformance > a charge leaves a token bucket in debt, until it is paid': [
      ['free < cost and 0 or (free', '(free'],
    ],
    'histories 1 > bucket': [
      ['-1 - debt, rate', '-debt, rate'],
      ['debt, rate, place + 2', 'debt, refill, place + 2'],
      ['rate, place + 2', 'rate, place + 1'],
    ],
    'histories 2 > bans by bucket of several keys': [
      ['op.bans and not is_shadow and', 'op.bans and'],
      ['mine + cost > capacity', 'mine + cost >= capacity'],
    ],
    "limits/every-kind > 'a token bucket', 'Redis', among the rest > brings on a ban, during which a decision and an explanation agree":
      [
        ['used + cost * mine + cost > capacity', 'used + cost * mine > capacity'],
        ['op.denied[k] = true', ''],
      ],
    'histories 1 > bucket, clock set back': [
      ['or is_restamped and not is_look then', 'or is_restamped then'],
      ['if mine > 0 or is_restamped and not is_look then', 'if true then'],
      ['if at_ms > bucket.stamp or at_ms < bucket.since', 'if at_ms < bucket.since'],
    ],
    'conformance > a refund to a token bucket mints nothing': [
      ['if is_first then since = now end', ''],
      ['is_first = debt == 0 or last_refill ~= refill', 'is_first = last_refill ~= refill'],
      ['or at_ms < bucket.since ', ''],
    ],
    'conformance > what came back to a bucket at another refill is not returned again': [
      ['is_first = debt == 0 or last_refill ~= refill', 'is_first = debt == 0'],
      ['cost * mine * parts, refill', 'cost * mine * parts, last_refill'],
      ['cost * mine * parts,', 'mine * parts,'],
      ['cost * mine * parts,', 'cost * mine,'],
      ['or bucket.refill ~= refill then', 'then'],
    ],
    'conformance > a token bucket refunds a charge after much larger ones': [
      ['if is_first then since = now end', 'since = now'],
    ],
    'conformance > what is returned is what was charged, whatever came before and after': [
      ["    call_redis('SETRANGE', key, '1', value)\n", ''],
      ['if bucket.debt == 0 then', 'if true then'],
      ["call_redis('SETRANGE', bucket.key, '1', struct_pack('>I6I7', bucket.stamp, bucket.debt))", ''],
    ],
    'redis/ttl > a token bucket that owes more than its refill of now allows lives for 366 days': [
      ['keep % last_refill) / last_refill', 'keep % last_refill) / refill'],
    ],
    'redis/ttl > the TTL of a token bucket is renewed where it would end before its debt is paid, and only there':
      [
        ['if expires < now + keep then', 'if true then'],
        ['if expires < now + keep then', 'if expires < keep then'],
        ['if expires < now + keep then', 'if expires == 0 then'],
        ['last_refill, clock + lifetime', 'last_refill, clock'],
        ['last_refill, clock + lifetime', 'last_refill, clock + 2 * lifetime'],
      ],
    'redis/ttl > every key has a time to live, and not a longer one than it needs > by a clock that is handed in: ten minutes at least':
      [['ttl_of(keep, clock ~= reply[1])', 'ttl_of(keep, false)']],
    'redis/ttl > a token bucket lives until its debt is paid, and not much longer': [
      ['ttl_of(keep, clock ~= reply[1])', 'ttl_of(keep, true)'],
    ],
    "limits/every-kind > 'a token bucket', 'Redis' > holds no time where all of it was returned": [
      ['if bucket.debt == 0 then', 'if false then'],
      ["call_redis('DEL', bucket.key)", ''],
      ['at_ms > bucket.stamp', 'at_ms >= bucket.stamp'],
      ['at_ms < bucket.since', 'at_ms <= bucket.since'],
    ],
    'conformance > a refund to a token bucket returns what has not come back by itself': [
      ['bucket.debt - math.max(0, now - bucket.stamp) * refill', 'bucket.debt'],
      ['units * parts - math.max(0, now - at_ms) * refill,', 'units * parts,'],
      ['debt - returned, math.max(bucket.stamp, now)', 'debt - returned, bucket.stamp'],
      ['math.ceil(returned', 'math.floor(returned'],
    ],
    'conformance > what a refund leaves of a debt, before anything else is asked after a large step back, counts from then on, too':
      [
        ['debt - returned, math.max(bucket.stamp, now)', 'debt - returned, now'],
        ['= debt - returned,', '= debt,'],
      ],
    "limits/every-kind > 'a token bucket', 'Redis', among the rest > keys in one batch each get their own result":
      [
        [
          "if raw then kinds[key] = nil else raw = pcall_redis('GETRANGE', key, '0', LAST_OF_BUCKET) end",
          "if not raw then raw = pcall_redis('GETRANGE', key, '0', LAST_OF_BUCKET) end",
        ],
        [
          "if raw then kinds[key] = nil else raw = pcall_redis('GETRANGE', key, '0', LAST_OF_BUCKET) end",
          "kinds[key] = nil if not raw then raw = '' end",
        ],
      ],
  },
}
