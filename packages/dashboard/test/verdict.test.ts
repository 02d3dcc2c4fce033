import { describe, expect, it } from 'vitest'
import { keyTraffic } from '../src/limiter/key-traffic.ts'
import { prefixOf } from '../src/limiter/networks.ts'
import { evidenceOf, type Verdict, verdictOf } from '../src/limiter/verdict.tsx'
import { type Arrival, Crowd, type Observed, observe } from './support/traffic.ts'

/** Between 2.5 and 5 minutes, as in the service. */
const SECONDS = 280
const END = SECONDS * 1000
const MINUTE = 60_000

function judged({ history, requests, denials, limits }: Observed): Verdict {
  return verdictOf(evidenceOf(history, requests, keyTraffic(requests, denials, limits), 0))
}

/** Callers with their own number of requests, at random times. */
function callers(
  crowd: Crowd,
  how: {
    readonly many: number
    readonly least: number
    readonly most: number
    readonly from?: number
    readonly to?: number
  },
  key: (i: number) => Arrival['key'] = (i) => `user:${i}`,
): Arrival[] {
  const { many, least, most, from = 0, to = END } = how
  return Array.from({ length: many }, (_, i) => {
    const own = key(i)
    return crowd.random(() => own, crowd.between(least, most), from, to)
  }).flat()
}

const PER_MINUTE = { limit: 10, windowMs: MINUTE }

function honestLogins(crowd: Crowd): Arrival[] {
  return callers(crowd, { many: 400, least: 1, most: 3 }, (i) => ({
    user: `u${i}`,
    address: crowd.address(),
  }))
}

/** 150 addresses in each of 20 networks. */
const attacker = (i: number) => `198.51.${i % 20}.${1 + Math.floor(i / 20)}`

interface Traffic {
  readonly is: string
  readonly verdict: Verdict['kind']
  /** The title or the text. */
  readonly says: RegExp
  /** The keys that it names, in any order. */
  readonly names?: readonly string[]
  observed(crowd: Crowd): Observed
}

const TRAFFICS: readonly Traffic[] = [
  {
    is: 'one scraper among 1,498 callers',
    verdict: 'abuse',
    says: /abuse by scraper/,
    names: ['scraper'],
    observed: (crowd) =>
      observe(
        [
          ...callers(crowd, { many: 1497, least: 1, most: 6 }),
          ...crowd.random(() => 'scraper', 1490, 0, END),
        ],
        SECONDS,
        PER_MINUTE,
      ),
  },
  {
    is: 'a flood by 3 keys',
    verdict: 'abuse',
    says: /abuse by 3 keys/,
    names: ['flood:0', 'flood:1', 'flood:2'],
    observed: (crowd) =>
      observe(
        [
          ...callers(crowd, { many: 300, least: 5, most: 20 }),
          ...callers(crowd, { many: 3, least: 800, most: 3000, from: 100_000 }, (i) => `flood:${i}`),
        ],
        SECONDS,
        PER_MINUTE,
      ),
  },
  {
    is: 'a flood of 10 seconds among slightly denied users',
    verdict: 'abuse',
    says: /abuse by flood/,
    names: ['flood'],
    observed: (crowd) =>
      observe(
        [
          ...callers(crowd, { many: 600, least: 20, most: 50 }),
          ...crowd.random(() => 'flood', 9000, 200_000, 210_000),
        ],
        SECONDS,
        PER_MINUTE,
      ),
  },
  {
    is: 'many slightly denied users',
    verdict: 'tight',
    says: /limit is too tight\. /,
    observed: (crowd) => observe(callers(crowd, { many: 400, least: 20, most: 50 }), SECONDS, PER_MINUTE),
  },
  {
    is: 'far more slightly denied users than the service counts exactly',
    verdict: 'tight',
    says: /limit is too tight\. /,
    observed: (crowd) => observe(callers(crowd, { many: 2000, least: 20, most: 50 }), SECONDS, PER_MINUTE),
  },
  {
    is: 'many slightly denied addresses, of unrelated networks',
    verdict: 'tight',
    says: /limit is too tight\. /,
    observed: (crowd) =>
      observe(
        callers(crowd, { many: 800, least: 20, most: 50 }, () => crowd.address()),
        SECONDS,
        PER_MINUTE,
      ),
  },
  {
    is: 'one partner at 1.3 times the limit',
    verdict: 'tight',
    says: /too tight for partner/,
    names: ['partner'],
    observed: (crowd) =>
      observe(
        [
          ...callers(crowd, { many: 200, least: 5, most: 60 }),
          ...crowd.random(() => 'partner', Math.round((1.3 * 100 * END) / MINUTE), 0, END),
        ],
        SECONDS,
        { limit: 100, windowMs: MINUTE },
      ),
  },
  {
    is: 'one partner at 1.3 times an hourly limit, all denied for the rest of the hour',
    verdict: 'tight',
    says: /too tight for partner/,
    names: ['partner'],
    observed: (crowd) =>
      observe(
        [
          ...callers(crowd, { many: 100, least: 5, most: 300, to: 60 * MINUTE }),
          ...crowd.random(() => 'partner', 1300, 0, 60 * MINUTE),
        ],
        3600,
        { limit: 1000, windowMs: 60 * MINUTE },
        3600 - SECONDS,
      ),
  },
  {
    is: 'an attack from 3,000 addresses in 20 networks',
    verdict: 'distributed',
    says: /one attacker with many addresses\. .* 20 networks/,
    observed: (crowd) =>
      observe(
        [
          ...callers(crowd, { many: 3000, least: 35, most: 50 }, attacker),
          ...callers(crowd, { many: 500, least: 2, most: 25 }, () => crowd.address()),
        ],
        SECONDS,
        PER_MINUTE,
      ),
  },
  {
    is: 'an attack from 300 IPv6 networks of one provider',
    verdict: 'distributed',
    says: /one attacker with many addresses\. .* share a network/,
    observed: (crowd) =>
      observe(
        [
          ...callers(
            crowd,
            { many: 300, least: 100, most: 200 },
            (i) => `2001:db8:77:${i.toString(16)}::/64`,
          ),
          ...callers(crowd, { many: 500, least: 2, most: 25 }, () => crowd.address()),
        ],
        SECONDS,
        PER_MINUTE,
      ),
  },
  {
    is: 'a login attack on one account from 2,000 addresses',
    verdict: 'distributed',
    says: /ann is attacked from many addresses/,
    names: ['ann'],
    observed: (crowd) =>
      observe(
        [
          ...Array.from({ length: 2000 }, (_, i) =>
            crowd.random(() => ({ user: 'ann', address: attacker(i) }), 2, 0, END),
          ).flat(),
          ...honestLogins(crowd),
        ],
        SECONDS,
        { user: { limit: 5, windowMs: 15 * MINUTE }, address: { limit: 50, windowMs: 15 * MINUTE } },
      ),
  },
  {
    is: 'a login attack on 8 accounts from 60 addresses of one network',
    verdict: 'distributed',
    says: /8 keys are attacked from many addresses/,
    observed: (crowd) =>
      observe(
        [
          ...Array.from({ length: 5600 }, (_, i) =>
            crowd.random(
              () => ({ user: `victim${i % 8}`, address: `198.51.100.${crowd.between(1, 60)}` }),
              1,
              0,
              END,
            ),
          ).flat(),
          ...honestLogins(crowd),
        ],
        SECONDS,
        { user: { limit: 5, windowMs: MINUTE }, address: { limit: 20, windowMs: MINUTE } },
      ),
  },
  {
    is: 'a login attack on 100 accounts from 3,000 addresses',
    verdict: 'distributed',
    says: /100 keys are attacked from many addresses/,
    observed: (crowd) =>
      observe(
        [
          ...Array.from({ length: 12_000 }, (_, i) =>
            crowd.random(
              () => ({ user: `victim${i % 100}`, address: attacker(crowd.between(0, 2999)) }),
              1,
              0,
              END,
            ),
          ).flat(),
          ...honestLogins(crowd),
        ],
        SECONDS,
        { user: { limit: 5, windowMs: 15 * MINUTE }, address: { limit: 50, windowMs: 15 * MINUTE } },
      ),
  },
  {
    is: 'one address that tries 500 accounts, or 500 users behind one address',
    verdict: 'unclear',
    says: /check whether their requests succeed/,
    names: ['203.0.113.9'],
    observed: (crowd) =>
      observe(
        [
          ...callers(crowd, { many: 500, least: 1, most: 4 }, (i) => ({
            user: `u${i}`,
            address: '203.0.113.9',
          })),
          ...callers(crowd, { many: 400, least: 1, most: 3 }, (i) => ({
            user: `v${i}`,
            address: crowd.address(),
          })),
        ],
        SECONDS,
        { user: { limit: 5, windowMs: 15 * MINUTE }, address: { limit: 50, windowMs: 15 * MINUTE } },
      ),
  },
  {
    is: 'one client that retries every 200 ms',
    verdict: 'retries',
    says: /client:7 doesn’t back off/,
    names: ['client:7'],
    observed: (crowd) =>
      observe(
        [...callers(crowd, { many: 100, least: 5, most: 20 }), ...crowd.loop('client:7', 200, 0, END)],
        SECONDS,
        PER_MINUTE,
      ),
  },
  {
    is: 'one client that retries every 3 seconds a limit per hour',
    verdict: 'retries',
    says: /client:7 doesn’t back off/,
    names: ['client:7'],
    observed: (crowd) =>
      observe(
        [
          ...callers(crowd, { many: 100, least: 1, most: 4 }),
          ...crowd.random(() => 'client:7', 5, 0, 1000),
          ...crowd.loop('client:7', 3000, 1000, END),
        ],
        SECONDS,
        { limit: 5, windowMs: 60 * MINUTE },
      ),
  },
  {
    is: 'a burst at opening hour',
    verdict: 'tight',
    says: /limit is too tight\. /,
    observed: (crowd) =>
      observe(
        [
          ...callers(crowd, { many: 300, least: 1, most: 6 }),
          ...callers(
            crowd,
            { many: 400, least: 10, most: 17, from: 240_000, to: 250_000 },
            (i) => `early:${i}`,
          ),
        ],
        SECONDS,
        PER_MINUTE,
      ),
  },
  {
    is: 'a limit that is ten times too low for everyone',
    verdict: 'unclear',
    says: /far too low.* with their usual demand/,
    observed: (crowd) => observe(callers(crowd, { many: 200, least: 200, most: 400 }), SECONDS, PER_MINUTE),
  },
  {
    is: 'one caller alone, far above the limit',
    verdict: 'unclear',
    says: /one caller.*far too low/,
    names: ['global'],
    observed: (crowd) =>
      observe(
        crowd.random(() => 'global', 2000, 0, END),
        SECONDS,
        PER_MINUTE,
      ),
  },
  {
    is: 'one batch job that is below the limit on average',
    verdict: 'unclear',
    says: /burst/,
    names: ['job'],
    observed: (crowd) =>
      observe(
        [
          ...callers(crowd, { many: 100, least: 1, most: 6 }),
          ...crowd.random(() => 'job', 45, 100_000, 100_500),
        ],
        SECONDS,
        PER_MINUTE,
      ),
  },
  {
    is: '40 flooding accounts among 1,000 callers',
    verdict: 'abuse',
    says: /abuse by 40 keys/,
    observed: (crowd) =>
      observe(
        [
          ...callers(crowd, { many: 1000, least: 1, most: 12 }),
          ...callers(crowd, { many: 40, least: 300, most: 900 }, (i) => `bot:${i}`),
        ],
        SECONDS,
        PER_MINUTE,
      ),
  },
  {
    is: 'slightly denied callers of a private network',
    verdict: 'unclear',
    says: /private.*Check who owns/,
    observed: (crowd) =>
      observe(
        callers(crowd, { many: 300, least: 30, most: 50 }, (i) => `10.1.${i % 3}.${1 + Math.floor(i / 3)}`),
        SECONDS,
        PER_MINUTE,
      ),
  },
  {
    is: 'users that are each at two and a half times the limit',
    verdict: 'unclear',
    says: /no single cause|doesn’t know what share/i,
    observed: (crowd) => observe(callers(crowd, { many: 200, least: 110, most: 130 }), SECONDS, PER_MINUTE),
  },
  {
    is: 'more slightly denied users than the service can count',
    verdict: 'unclear',
    says: /doesn’t know what share/,
    observed: (crowd) => observe(callers(crowd, { many: 8000, least: 25, most: 40 }), SECONDS, PER_MINUTE),
  },
  {
    is: 'one client at two and a half times the limit',
    verdict: 'unclear',
    says: /with the key’s usual demand/,
    names: ['eager'],
    observed: (crowd) =>
      observe(
        [...callers(crowd, { many: 200, least: 1, most: 10 }), ...crowd.random(() => 'eager', 118, 0, END)],
        SECONDS,
        PER_MINUTE,
      ),
  },
  {
    is: 'too few denials',
    verdict: 'unclear',
    says: /at least 20/,
    observed: (crowd) =>
      observe(
        [...callers(crowd, { many: 100, least: 1, most: 6 }), ...crowd.random(() => 'job', 29, 0, 500)],
        SECONDS,
        PER_MINUTE,
      ),
  },
  {
    is: 'no denials',
    verdict: 'none',
    says: /Nothing was denied in the last 4 min 40 s\.$/,
    observed: (crowd) => observe(callers(crowd, { many: 300, least: 1, most: 6 }), SECONDS, PER_MINUTE),
  },
  {
    is: 'shadow denials only',
    verdict: 'none',
    says: /Shadow limits would have denied [\d,]+ of [\d,]+ requests/,
    observed: (crowd) =>
      observe(callers(crowd, { many: 100, least: 50, most: 90 }), SECONDS, { ...PER_MINUTE, shadow: true }),
  },
]

describe('the verdict', () => {
  it.each(TRAFFICS)('on $is is $verdict', ({ verdict, says, names, observed }) => {
    for (const seed of [1, 2]) {
      const { kind, title, text, keys } = judged(observed(new Crowd(seed)))
      expect([kind, `${title}. ${text}`]).toEqual([verdict, expect.stringMatching(says)])
      if (names !== undefined) expect(keys.map(({ key }) => key).toSorted()).toEqual(names)
    }
  })
})

describe('the network of a key', () => {
  it.each([
    ['203.0.113.7', '203.0.113.0/24'],
    ['ip:203.0.113.7', '203.0.113.0/24'],
    ['203.0.113.7:/login', '203.0.113.0/24'],
    ['::ffff:203.0.113.7', '203.0.113.0/24'],
    ['2001:db8:1:2::', '2001:db8:1::/48'],
    ['2001:DB8:0001:2::/64', '2001:db8:1::/48'],
    ['ip:2001:db8::1', '2001:db8:0::/48'],
    ['2001:db8:1:2:3:4:5:6 login', '2001:db8:1::/48'],
    ['user:42', undefined],
    ['user:dead:beef', undefined],
    ['1.2.3.4.5', undefined],
    ['300.2.3.4', undefined],
    ['v1.2.3', undefined],
    ['12:30:45', undefined],
  ])('%s is in %s', (key, prefix) => {
    expect(prefixOf(key)).toBe(prefix)
  })
})
