import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type MemoryStore, memoryStore } from '../../src/index.ts'
import { type UpstreamLimiterOptions, upstreamLimiter } from '../../src/outbound/index.ts'
import { keyGateOf, learnedFrom } from '../../src/outbound/learned-limit.ts'
import type { Quota, ResponseHeaders } from '../../src/outbound/response-headers.ts'
import { upstreamTerms } from '../../src/outbound/upstream-limiter.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { errorOf } from '../input/refusal.ts'
import { answer, ok, SENDERS, upstreamOf } from './senders.ts'

/** Two processes with a budget of 10 per 10 s, on a clock that stands still. */
function budget(options: Partial<UpstreamLimiterOptions> = {}) {
  const clock = new ManualClock()
  const store: MemoryStore = memoryStore({ clock: clock.now })
  const make = () => upstreamLimiter({ limits: [{ limit: 10, window: '10s' }], store, ...options })
  return { clock, here: make(), elsewhere: make() }
}

const options = { key: 'k', retry: false } as const

describe.each(Object.entries(SENDERS))('%s', (_, sender) => {
  // In this process no time passes: an answer that is late would be charged anew.
  beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }))
  afterEach(() => void vi.useRealTimers())

  /** Sends so many requests, of which the answers carry these fields; resolves when all is learnt. */
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
      'a reset of what a 429 calls empty',
      429,
      { 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': '7' },
      7000,
    ],
    ['a 429 that says nothing', 429, {}, 1000],
    [
      'a quota that is none of ours and empty',
      200,
      { RateLimit: '"daily";r=0;t=60', 'RateLimit-Policy': '"daily";q=9;w=86400' },
      60_000,
    ],
    [
      'one of ours that is empty for longer than its window',
      200,
      { RateLimit: '"a";r=0;t=60', 'RateLimit-Policy': '"a";q=10;w=10' },
      60_000,
    ],
    [
      'a larger one that is empty',
      200,
      { 'X-RateLimit-Limit': '5000', 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': '60' },
      60_000,
    ],
  ])('holds everybody back, in all processes, and a little longer: %s', async (_, status, fields, ms) => {
    const budgets = budget({ marginMs: 100 })
    await sent(budgets.here, status, fields)
    const holdMs = await holdOf(budgets)
    expect(holdMs).toBeGreaterThanOrEqual(ms + 100)
    expect(holdMs).toBeLessThanOrEqual(ms + 200)
  })

  it.each([
    ['a 503 that says nothing', 503, {}],
    ['Retry-After of anything else', 200, { 'Retry-After': '20' }],
    [
      'what remains of a quota that is none of ours',
      200,
      { RateLimit: '"daily";r=1;t=60', 'RateLimit-Policy': '"daily";q=9;w=86400' },
    ],
    [
      'our own quota that is empty as we know',
      200,
      { RateLimit: '"a";r=9;t=10', 'RateLimit-Policy': '"a";q=10;w=10' },
    ],
  ])('holds nobody back for %s', async (_, status, fields) => {
    const budgets = budget()
    await sent(budgets.here, status, fields)
    expect(await budgets.elsewhere.peek('k')).toMatchObject({ allowed: true, remaining: 9 })
  })

  it('longer each time that no time is given, whoever else was refused together with it', async () => {
    const budgets = budget({ marginMs: 100 })
    // Answers come after all have asked.
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

  it('no longer than maxHoldMs', async () => {
    const budgets = budget()
    await sent(budgets.here, 429, { 'Retry-After': '999999999' }, { maxHoldMs: 5000 })
    expect(await holdOf(budgets)).toBe(5000)
  })

  it('a short hold does not end a long one', async () => {
    const budgets = budget()
    const { url } = await upstreamOf(async (request, response) => {
      await budgets.elsewhere.block('k', '1m')
      return answer(429, { 'Retry-After': '1' })(request, response)
    })
    await sender(budgets.here, options)(url)
    await keyGateOf(budgets.here, 'k').learning
    expect(await holdOf(budgets)).toBe(60_000)
  })

  it('what others have used there is charged, in all processes', async () => {
    const { here, elsewhere } = budget()
    await sent(here, 200, { RateLimit: '"a";r=4;t=10', 'RateLimit-Policy': '"a";q=10;w=10' })
    expect((await elsewhere.peek('k')).remaining).toBe(4)
  })

  it('what was used here meanwhile is not charged again', async () => {
    const { here, elsewhere } = budget()
    const { url } = await upstreamOf(async (request, response) => {
      await elsewhere.consume('k', { cost: 4 })
      return answer(200, { 'X-RateLimit-Limit': '10', 'X-RateLimit-Remaining': '5' })(request, response)
    })
    await sender(here, options)(url)
    await keyGateOf(here, 'k').learning
    expect((await elsewhere.peek('k')).remaining).toBe(5)
  })

  it('answers that tell what is known ask the store nothing, in whatever order they come', async () => {
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
  ])('a lower limit is in force from then on, in all processes: %s', async (_, fields) => {
    const { here, elsewhere } = budget()
    await sent(here, 200, fields)
    expect(await elsewhere.peek('k')).toMatchObject({
      remaining: 3,
      limits: [{ name: '10-per-10s', limit: 4, windowMs: 10_500 }],
    })
    expect((await elsewhere.peek('another')).remaining).toBe(10)
  })

  it('a limit that is raised again is, up to the one that was declared', async () => {
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

  it('what costs more than a limit that was lowered is held to what was declared: somebody has to hear of a higher one', async () => {
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

  it('what costs more than a limit that was set by hand is never sent', async () => {
    const { here } = budget()
    const { url, asked } = await upstreamOf(ok)
    await here.overrides.set('k', { limit: 2 })
    expect(await errorOf(() => sender(here, { ...options, cost: 5 })(url))).toMatchObject({
      reason: 'impossible',
    })
    expect(asked).toEqual([])
  })

  it('a limit of 0 holds back, and is not believed in for ever', async () => {
    const budgets = budget()
    await sent(budgets.here, 200, { 'RateLimit-Policy': '"a";q=0;w=10', RateLimit: '"a";r=0;t=30' })
    expect(await holdOf(budgets)).toBeGreaterThanOrEqual(30_000)
    budgets.clock.advance(60_000)
    expect((await budgets.elsewhere.peek('k')).remaining).toBe(10)
  })

  it('of several limits the one with that window', async () => {
    const limits = [
      { limit: 10, window: '10s' },
      { limit: 100, window: '1h', name: 'hourly' },
    ]
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

  it('learns nothing where it is told not to', async () => {
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

describe('what an answer teaches', () => {
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

  it('holds for longer each time that an upstream gives no time', () => {
    const holds = [1, 2, 3, 4, 30].map((refusals) => learned(429, {}, refusals).holdMs)
    expect(holds).toEqual([1100, 2100, 4100, 8100, 300_000])
  })

  it('keeps its own request back for as long as the upstream asks, whatever others are held for', () => {
    const holds = ({ askedMs, holdMs }: ReturnType<typeof learned>) => [askedMs, holdMs]
    expect(holds(learned(429, { retryAfterMs: 900_000 }))).toEqual([900_100, 300_000])
    expect(holds(learned(429, {}, 2000))).toEqual([300_100, 300_000])
  })

  it('holds by chance up to a margin longer', () => {
    expect(learned(429, { retryAfterMs: 5000 }, 0, 0.5).holdMs).toBe(5150)
    expect(learned(429, { retryAfterMs: 0 }, 0, 0.5).holdMs).toBe(0)
  })

  it('holds no longer for the margin of a long window', () => {
    const hourly = upstreamTerms(upstreamLimiter({ limits: [{ limit: 10, window: '1h' }] }))!
    const how = { refusals: 1, maxHoldMs: 300_000, random: () => 0.5 }
    expect(learnedFrom({ quotas: [], retryAfterMs: 1000 }, 429, hourly, how).holdMs).toBe(2500)
  })

  it.each<[string, Quota, object]>([
    ['by its window', { limit: 7, windowMs: 10_000, remaining: 3 }, { units: 7, remaining: 3 }],
    ['by a window of rounded seconds', { limit: 7, windowMs: 10_900 }, { units: 7 }],
    ['of another window', { limit: 7, windowMs: 11_000, remaining: 3 }, {}],
    ['without a window', { limit: 7, remaining: 3 }, { units: 7, remaining: 3 }],
    ['without a window, and larger', { limit: 11, remaining: 3 }, {}],
    ['only what remains', { remaining: 3 }, { remaining: 3 }],
  ])('is of our limit or not: %s', (_, quota, told) => {
    expect(learned(200, { quotas: [quota] }).limits).toEqual(
      [{ units: undefined, remaining: undefined, ...told }].map((each) =>
        Object.keys(told).length === 0 ? {} : each,
      ),
    )
  })
})
