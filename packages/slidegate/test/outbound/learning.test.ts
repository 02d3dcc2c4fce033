import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type MemoryStore, memoryStore } from '../../src/index.ts'
import { type UpstreamLimiterOptions, upstreamLimiter } from '../../src/outbound/index.ts'
import { keyGateOf, learnedFrom } from '../../src/outbound/learned-limit.ts'
import type { Quota, ResponseHeaders } from '../../src/outbound/response-headers.ts'
import { upstreamTerms } from '../../src/outbound/upstream-limiter.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { errorOf } from '../input/refusal.ts'
import { answer, ok, SENDERS, upstreamOf } from './senders.ts'

/** Creates two limiters, like two processes with a budget of 10 per 10 s. The clock is manual. */
function budget(options: Partial<UpstreamLimiterOptions> = {}) {
  const clock = new ManualClock()
  const store: MemoryStore = memoryStore({ clock: clock.now })
  const make = () => upstreamLimiter({ limits: [{ limit: 10, window: '10s' }], store, ...options })
  return { clock, here: make(), elsewhere: make() }
}

const options = { key: 'k', retry: false } as const

describe.each(Object.entries(SENDERS))('%s', (_, sender) => {
  // Stops the time of this process, because a late response would be charged again.
  beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }))
  afterEach(() => void vi.useRealTimers())

  /** Sends a request whose response has these headers. Resolves when all learned limits are written. */
  async function sent(
    here: ReturnType<typeof budget>['here'],
    status: number,
    fields: Record<string, string>,
    more = {},
  ) {
    const { url } = await upstreamOf(answer(status, fields))
    await sender(here, { ...options, ...more })(url)
    await keyGateOf(here, 'k').learning
  }

  const holdOf = async ({ elsewhere }: ReturnType<typeof budget>) =>
    (await elsewhere.peek('k')).blockedMs ?? 0

  it.each([
    ['Retry-After of a 429', 429, { 'Retry-After': '20' }, 20_000],
    ['Retry-After of a 503', 503, { 'Retry-After': '20' }, 20_000],
    [
      'the reset of an empty quota in a 429',
      429,
      { 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': '7' },
      7000,
    ],
    ['a 429 without headers', 429, {}, 1000],
    [
      'an empty quota that we do not limit',
      200,
      { RateLimit: '"daily";r=0;t=60', 'RateLimit-Policy': '"daily";q=9;w=86400' },
      60_000,
    ],
    [
      'a quota that stays empty for longer than our window',
      200,
      { RateLimit: '"a";r=0;t=60', 'RateLimit-Policy': '"a";q=10;w=10' },
      60_000,
    ],
    [
      'an empty quota above our limit',
      200,
      { 'X-RateLimit-Limit': '5000', 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': '60' },
      60_000,
    ],
  ])(
    'holds back requests in all processes, slightly longer than requested: %s',
    async (_, status, fields, ms) => {
      const budgets = budget({ marginMs: 100 })
      await sent(budgets.here, status, fields)
      const holdMs = await holdOf(budgets)
      expect(holdMs).toBeGreaterThanOrEqual(ms + 100)
      expect(holdMs).toBeLessThanOrEqual(ms + 200)
    },
  )

  it.each([
    ['a 503 without headers', 503, {}],
    ['Retry-After of another status', 200, { 'Retry-After': '20' }],
    [
      'the remaining units of a quota that we do not limit',
      200,
      { RateLimit: '"daily";r=1;t=60', 'RateLimit-Policy': '"daily";q=9;w=86400' },
    ],
    [
      'our own quota, which we know is empty',
      200,
      { RateLimit: '"a";r=9;t=10', 'RateLimit-Policy': '"a";q=10;w=10' },
    ],
  ])('holds back no requests for %s', async (_, status, fields) => {
    const budgets = budget()
    await sent(budgets.here, status, fields)
    expect(await budgets.elsewhere.peek('k')).toMatchObject({ allowed: true, remaining: 9 })
  })

  it('holds back longer each time if the upstream gives no time, counting simultaneous rejections once', async () => {
    const budgets = budget({ marginMs: 100 })
    // Responses arrive after all requests were sent.
    const { url } = await upstreamOf((request, response) => {
      vi.advanceTimersByTime(1)
      return answer(429)(request, response)
    })
    const send = sender(budgets.here, options)
    const gate = keyGateOf(budgets.here, 'k')
    gate.enter()
    const holds: number[] = []
    for (const together of [3, 2]) {
      await Promise.all(Array.from({ length: together }, () => send(url)))
      await gate.learning
      holds.push(Math.floor((await holdOf(budgets)) / 1000))
      budgets.clock.advance(10_000)
      vi.advanceTimersByTime(1)
    }
    expect(holds).toEqual([1, 2])
  })

  it('holds back requests for at most maxHoldMs', async () => {
    const budgets = budget()
    await sent(budgets.here, 429, { 'Retry-After': '999999999' }, { maxHoldMs: 5000 })
    expect(await holdOf(budgets)).toBe(5000)
  })

  it('keeps a long hold if a shorter one follows', async () => {
    const budgets = budget()
    const { url } = await upstreamOf(async (request, response) => {
      await budgets.elsewhere.block('k', '1m')
      return answer(429, { 'Retry-After': '1' })(request, response)
    })
    await sender(budgets.here, options)(url)
    await keyGateOf(budgets.here, 'k').learning
    expect(await holdOf(budgets)).toBe(60_000)
  })

  it('charges units that others used at the upstream, in all processes', async () => {
    const { here, elsewhere } = budget()
    await sent(here, 200, { RateLimit: '"a";r=4;t=10', 'RateLimit-Policy': '"a";q=10;w=10' })
    expect((await elsewhere.peek('k')).remaining).toBe(4)
  })

  it("doesn't charge units again that were used by this limiter in the meantime", async () => {
    const { here, elsewhere } = budget()
    const { url } = await upstreamOf(async (request, response) => {
      await elsewhere.consume('k', { cost: 4 })
      return answer(200, { 'X-RateLimit-Limit': '10', 'X-RateLimit-Remaining': '5' })(request, response)
    })
    await sender(here, options)(url)
    await keyGateOf(here, 'k').learning
    expect((await elsewhere.peek('k')).remaining).toBe(5)
  })

  it('makes no store call for responses without news, in any order', async () => {
    const { here } = budget()
    const answers: (() => void)[] = []
    const { url } = await upstreamOf((request, response) => {
      answers.unshift(() => answer(200, { RateLimit: '"a";r=7' })(request, response))
      if (answers.length === 3) for (const each of answers) each()
    })
    const peek = vi.spyOn(here, 'peek')
    const send = sender(here, options)
    await Promise.all([send(url), send(url), send(url)])
    await keyGateOf(here, 'k').learning
    expect(peek).not.toHaveBeenCalled()
  })

  it.each([
    ['draft 11', { 'RateLimit-Policy': '"a";q=4;w=10' }],
    ['draft 7', { 'RateLimit-Policy': '4;w=10', RateLimit: 'limit=4, remaining=3, reset=10' }],
    ['draft 6', { 'RateLimit-Limit': '4, 4;w=10', 'RateLimit-Remaining': '3' }],
    ['X-RateLimit-*', { 'X-RateLimit-Limit': '4', 'X-RateLimit-Remaining': '3' }],
  ])('applies a lower limit in all processes: %s', async (_, fields) => {
    const { here, elsewhere } = budget()
    await sent(here, 200, fields)
    expect(await elsewhere.peek('k')).toMatchObject({
      remaining: 3,
      limits: [{ name: '10-per-10s', limit: 4, windowMs: 10_500 }],
    })
    expect((await elsewhere.peek('another')).remaining).toBe(10)
  })

  it('raises a limit again, up to the declared one', async () => {
    const { clock, here, elsewhere } = budget()
    const limits: number[] = []
    for (const limit of [4, 6, 5000]) {
      await sent(here, 200, { 'RateLimit-Policy': `"a";q=${limit};w=10` })
      clock.advance(500)
      limits.push((await elsewhere.peek('k')).limits[0]!.limit)
    }
    expect(limits).toEqual([4, 6, 10])
    expect((await elsewhere.overrides.get('k'))!.limits).toEqual({ '10-per-10s': { limit: 10 } })
  })

  it('sends a request that costs more than a lowered limit, since a higher limit could never be learned otherwise', async () => {
    const { clock, here, elsewhere } = budget()
    const { url, asked } = await upstreamOf(answer(200, { 'RateLimit-Policy': '"a";q=2;w=10' }), ok)
    const send = sender(here, { ...options, cost: 5 })
    await send(url)
    await keyGateOf(here, 'k').learning
    clock.advance(500)
    expect((await elsewhere.peek('k')).limits[0]!.limit).toBe(2)
    await send(url)
    clock.advance(500)
    expect(asked).toHaveLength(2)
    expect((await elsewhere.peek('k')).limits[0]).toMatchObject({ limit: 10, remaining: 0 })
    expect(await errorOf(() => sender(here, { ...options, cost: 11 })(url))).toMatchObject({
      reason: 'impossible',
    })
  })

  it('never sends a request that costs more than a limit set by an operator', async () => {
    const { here } = budget()
    const { url, asked } = await upstreamOf(ok)
    await here.overrides.set('k', { limit: 2 })
    expect(await errorOf(() => sender(here, { ...options, cost: 5 })(url))).toMatchObject({
      reason: 'impossible',
    })
    expect(asked).toEqual([])
  })

  it('holds back requests for a limit of 0, but not forever', async () => {
    const budgets = budget()
    await sent(budgets.here, 200, { 'RateLimit-Policy': '"a";q=0;w=10', RateLimit: '"a";r=0;t=30' })
    expect(await holdOf(budgets)).toBeGreaterThanOrEqual(30_000)
    budgets.clock.advance(60_000)
    expect((await budgets.elsewhere.peek('k')).remaining).toBe(10)
  })

  it('changes the limit with the reported window', async () => {
    const limits = [
      { limit: 10, window: '10s' },
      { limit: 100, window: '1h', name: 'hourly' },
    ] as const
    const { clock, here, elsewhere } = budget({ limits, marginMs: 100 })
    await sent(here, 200, {
      'RateLimit-Policy': '"a";q=10;w=10, "b";q=50;w=3600',
      RateLimit: '"b";r=20;t=60',
    })
    clock.advance(500)
    const [burst, hourly] = (await elsewhere.peek('k')).limits
    expect(burst).toMatchObject({ limit: 10, windowMs: 10_100 })
    expect(hourly).toMatchObject({ name: 'hourly', limit: 50, windowMs: 3_600_100, remaining: 20 })
  })

  it('learns nothing with learn: false', async () => {
    const { here, elsewhere } = budget()
    await sent(
      here,
      429,
      { 'Retry-After': '60', 'X-RateLimit-Limit': '4', 'X-RateLimit-Remaining': '0' },
      { learn: false },
    )
    expect(await elsewhere.peek('k')).toMatchObject({ allowed: true, remaining: 9, limits: [{ limit: 10 }] })
  })
})

describe('learnedFrom', () => {
  const { here } = budget({ marginMs: 100 })
  const terms = upstreamTerms(here)!
  const learned = (
    status: number,
    { quotas = [], retryAfterMs }: Partial<ResponseHeaders>,
    refusals = 0,
    chance = 0,
  ) =>
    learnedFrom({ quotas, retryAfterMs }, status, terms, {
      refusals,
      maxHoldMs: 300_000,
      random: () => chance,
    })

  it('doubles the hold each time the upstream gives no time', () => {
    const holds = [1, 2, 3, 4, 30].map((refusals) => learned(429, {}, refusals).holdMs)
    expect(holds).toEqual([1100, 2100, 4100, 8100, 300_000])
  })

  it('delays the request itself for the whole requested time, even if the hold is shorter', () => {
    const holds = ({ requestedMs, holdMs }: ReturnType<typeof learned>) => [requestedMs, holdMs]
    expect(holds(learned(429, { retryAfterMs: 900_000 }))).toEqual([900_100, 300_000])
    expect(holds(learned(429, {}, 2000))).toEqual([300_100, 300_000])
  })

  it('adds a random part of up to one margin to the hold', () => {
    expect(learned(429, { retryAfterMs: 5000 }, 0, 0.5).holdMs).toBe(5150)
    expect(learned(429, { retryAfterMs: 0 }, 0, 0.5).holdMs).toBe(0)
  })

  it('caps the margin of a long window', () => {
    const hourly = upstreamTerms(upstreamLimiter({ limits: [{ limit: 10, window: '1h' }] }))!
    const how = { refusals: 1, maxHoldMs: 300_000, random: () => 0.5 }
    expect(learnedFrom({ quotas: [], retryAfterMs: 1000 }, 429, hourly, how).holdMs).toBe(2500)
  })

  it.each<[string, Quota, object]>([
    ['matched by window', { limit: 7, windowMs: 10_000, remaining: 3 }, { units: 7, remaining: 3 }],
    ['matched by a window in rounded seconds', { limit: 7, windowMs: 10_900 }, { units: 7 }],
    ['with another window', { limit: 7, windowMs: 11_000, remaining: 3 }, {}],
    ['without a window', { limit: 7, remaining: 3 }, { units: 7, remaining: 3 }],
    ['without a window, and larger', { limit: 11, remaining: 3 }, {}],
    ['with only the remaining units', { remaining: 3 }, { remaining: 3 }],
  ])('matches a quota to a limit of ours, or to none: %s', (_, quota, told) => {
    expect(learned(200, { quotas: [quota] }).limits).toEqual(
      [{ units: undefined, remaining: undefined, ...told }].map((each) =>
        Object.keys(told).length === 0 ? {} : each,
      ),
    )
  })
})
