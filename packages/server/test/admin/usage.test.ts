import type { Decision, Source } from 'slidegate'
import { ManualClock } from 'slidegate/testing'
import { describe, expect, it } from 'vitest'
import { mergeCallers, topKeys } from '../../src/admin/merge-keys.ts'
import { usageOf } from '../../src/admin/rates.ts'
import { Usage } from '../../src/admin/usage.ts'

function decision(allowed: boolean, more: Partial<Decision> = {}): Decision {
  const rest = { cost: 1, remaining: 0, retryAfterMs: 0, resetAfterMs: 0, atMs: 0 }
  return { allowed, ...rest, deniedBy: [], limits: [], source: 'store', ...more }
}

const shadowDenial = decision(true, {
  limits: [{ name: 'hourly', shadow: true, allowed: false } as Decision['limits'][number]],
})

/** Sets up a process that has run for ten minutes. */
function setUp(): { clock: ManualClock; usage: Usage; record: Usage['record']; now: () => number } {
  const clock = new ManualClock(1_000_000)
  const usage = new Usage(() => clock.now())
  clock.advance(600_000)
  return { clock, usage, record: usage.record.bind(usage), now: () => clock.now() }
}

describe('usage', () => {
  it('covers full seconds, so decisions appear a moment later', () => {
    const { clock, usage, record } = setUp()
    for (let i = 0; i < 5; i++) record('api', 'ann', decision(true))
    for (let i = 0; i < 3; i++) record('api', 'ann', decision(false))
    expect(usageOf([usage.spansOf('api')])[0]).toMatchObject({ allowed: 0, denied: 0 })
    clock.advance(1000)
    expect(usageOf([usage.spansOf('api')])[0]).toMatchObject({
      ...{ spanSeconds: 1, seconds: 1, allowed: 5, denied: 3, allowedPerSecond: 5, deniedPerSecond: 3 },
      perSecondBySource: { store: 8, failOpen: 0 },
    })
    clock.advance(1000)
    const [second, ten, minute] = usageOf([usage.spansOf('api')])
    expect(second).toMatchObject({ allowed: 0, denied: 0 })
    expect(ten).toMatchObject({ allowed: 5, denied: 3, allowedPerSecond: 0.5 })
    expect(minute).toMatchObject({ allowed: 5, denied: 3 })
  })

  it.each([
    [10, 0],
    [60, 1],
    [300, 2],
  ])('forgets decisions after %i seconds', (seconds, i) => {
    const { clock, usage, record } = setUp()
    record('api', 'ann', decision(true))
    clock.advance(seconds * 1000)
    expect(usageOf([usage.spansOf('api')])[i + 1]).toMatchObject({ spanSeconds: seconds, allowed: 1 })
    clock.advance(1000)
    expect(usageOf([usage.spansOf('api')])[i + 1]).toMatchObject({ allowed: 0 })
    // A forgotten decision doesn't reappear later either.
    for (let later = 0; later < 5; later++) {
      clock.advance(1000)
      expect(usageOf([usage.spansOf('api')])[i + 1]).toMatchObject({ allowed: 0 })
    }
  })

  it('sums the last full minute, or the time since the start', () => {
    const { clock, usage, record } = setUp()
    record('api', 'ann', decision(true))
    expect(usage.lastMinuteOf('api')).toEqual({ seconds: 60, allowed: 0, denied: 0, shadowDenied: 0 })
    clock.advance(1000)
    for (let i = 0; i < 2; i++) record('api', 'ann', decision(false))
    record('api', 'ann', shadowDenial)
    expect(usage.lastMinuteOf('api')).toEqual({ seconds: 60, allowed: 1, denied: 0, shadowDenied: 0 })
    clock.advance(1000)
    expect(usage.lastMinuteOf('api')).toEqual({ seconds: 60, allowed: 2, denied: 2, shadowDenied: 1 })
    clock.advance(59_000)
    expect(usage.lastMinuteOf('api')).toEqual({ seconds: 60, allowed: 1, denied: 2, shadowDenied: 1 })
    clock.advance(1000)
    expect(usage.lastMinuteOf('api')).toEqual({ seconds: 60, allowed: 0, denied: 0, shadowDenied: 0 })
    expect(usage.lastMinuteOf('unused')).toEqual({ seconds: 0, allowed: 0, denied: 0, shadowDenied: 0 })
    const started = new Usage(() => clock.now())
    started.record('api', 'ann', decision(true))
    clock.advance(5000)
    expect(started.lastMinuteOf('api')).toEqual({ seconds: 5, allowed: 1, denied: 0, shadowDenied: 0 })
  })

  it('counts decisions by source, and denials by shadow limits', () => {
    const { clock, usage, record } = setUp()
    const sources: Source[] = ['store', 'lease', 'denyCache', 'fallback', 'failOpen', 'failClosed']
    for (const source of sources) record('api', 'ann', decision(source !== 'failClosed', { source }))
    record('api', 'ann', shadowDenial)
    clock.advance(1000)
    const [span] = usageOf([usage.spansOf('api')])
    expect(span!.perSecondBySource).toEqual({
      store: 2,
      lease: 1,
      denyCache: 1,
      fallback: 1,
      failOpen: 1,
      failClosed: 1,
    })
    expect(span).toMatchObject({ allowed: 6, denied: 1, shadowDenied: 1 })
  })

  it('averages over the time since the start', () => {
    const clock = new ManualClock(1_000_000)
    const usage = new Usage(() => clock.now())
    for (let i = 0; i < 8; i++) usage.record('api', 'ann', decision(true))
    clock.advance(4000)
    const [, , minute] = usageOf([usage.spansOf('api')])
    expect(minute).toMatchObject({ seconds: 4, allowed: 8, allowedPerSecond: 2 })
  })

  it('sums all processes', () => {
    const { clock, usage, record } = setUp()
    record('api', 'ann', decision(true))
    clock.advance(1000)
    const spans = usage.spansOf('api')
    expect(usageOf([spans, spans, spans])[0]).toMatchObject({ allowed: 3, allowedPerSecond: 3 })
  })

  it('counts zero for a limiter without decisions', () => {
    const { usage } = setUp()
    expect(usageOf([usage.spansOf('api')])[0]).toMatchObject({ allowed: 0, denied: 0 })
    expect(topKeys([usage.topOf('api', 'requests')], 10)).toEqual([])
  })
})

describe('callers', () => {
  it('report the share of the busiest one by requests, however many keys a request has', async () => {
    const { usage, record } = setUp()
    for (let i = 0; i < 8; i++) record('api', { user: 'ann', address: `192.0.2.${i}` }, decision(true))
    for (let i = 0; i < 2; i++) record('api', { user: `u${i}`, address: '192.0.2.9' }, decision(true))
    const sketches = await usage.callers()
    expect((await mergeCallers([sketches, sketches])).get('api')).toEqual({ distinct: 12, topShare: 0.8 })
  })
})

describe('top keys', () => {
  it('rank by requests or by denials', () => {
    const { usage, record } = setUp()
    for (let i = 0; i < 9; i++) record('api', 'ann', decision(true))
    for (let i = 0; i < 4; i++) record('api', 'bob', decision(false))
    expect(topKeys([usage.topOf('api', 'requests')], 10)).toEqual([
      { key: 'ann', count: 9, error: 0 },
      { key: 'bob', count: 4, error: 0 },
    ])
    expect(topKeys([usage.topOf('api', 'denials')], 10)).toEqual([{ key: 'bob', count: 4, error: 0 }])
    expect(topKeys([usage.topOf('api', 'requests')], 1)).toHaveLength(1)
  })

  it('expire after two halves of the window', () => {
    const { clock, usage, record } = setUp()
    record('api', 'ann', decision(true))
    clock.advance(150_000)
    record('api', 'bob', decision(true))
    expect(usage.topOf('api', 'requests').spanMs).toBe(150_000)
    expect(topKeys([usage.topOf('api', 'requests')], 10)).toHaveLength(2)
    clock.advance(150_000)
    expect(topKeys([usage.topOf('api', 'requests')], 10)).toEqual([{ key: 'bob', count: 1, error: 0 }])
    clock.advance(10_000_000)
    expect(topKeys([usage.topOf('api', 'requests')], 10)).toEqual([])
  })

  it('include their dimension, and count denials only for the one that denied', () => {
    const { usage, record } = setUp()
    const key = { user: 'ann', address: '192.0.2.7', session: null }
    record('api', key, decision(false, { deniedBy: ['address.10-per-1s'] }))
    expect(topKeys([usage.topOf('api', 'requests')], 10)).toEqual([
      { dimension: 'address', key: '192.0.2.7', count: 1, error: 0 },
      { dimension: 'user', key: 'ann', count: 1, error: 0 },
    ])
    expect(topKeys([usage.topOf('api', 'denials')], 10)).toEqual([
      { dimension: 'address', key: '192.0.2.7', count: 1, error: 0 },
    ])
  })

  it('shorten long keys to a prefix and a hash', () => {
    const { usage, record } = setUp()
    const long = (end: string) => `${'k'.repeat(60_000)}${end}`
    record('api', long('a'), decision(true))
    record('api', long('b'), decision(true))
    record('api', long('b'), decision(true))
    const keys = topKeys([usage.topOf('api', 'requests')], 10)
    expect(keys.map(({ count }) => count)).toEqual([2, 1])
    for (const { key } of keys) expect(key).toMatch(/^k{200}\.\.\.~[\w-]{22}$/)
  })

  it.each(['', '=', 'a=b', '12345', '__proto__', 'constructor', '\u001b[31m', '\ud83d\ude00'])(
    'show the key %j unchanged',
    (key) => {
      const { usage, record } = setUp()
      record('api', key, decision(true))
      expect(topKeys([usage.topOf('api', 'requests')], 10)).toEqual([{ key, count: 1, error: 0 }])
    },
  )

  it('exist for 1,024 limiters at most: another one replaces one that has long been idle', () => {
    const { clock, usage, record } = setUp()
    const many = Array.from({ length: 1024 }, (_, i) => `limiter-${i}`)
    for (const name of [...many, 'more']) record(name, 'ann', decision(true))
    expect(new Set(usage.names())).toEqual(new Set(many))
    clock.advance(200_000)
    for (const name of many.slice(1)) record(name, 'ann', decision(true))
    clock.advance(100_000)
    // Each decision checks one of the others.
    for (const name of ['more', 'and more'])
      for (let i = 0; i < 1024; i++) record(name, 'ann', decision(true))
    expect(new Set(usage.names())).toEqual(new Set([...many.slice(1), 'more']))
    expect(topKeys([usage.topOf('more', 'requests')], 10)).toHaveLength(1)
  })
})
