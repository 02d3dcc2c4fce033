import { describe, expect, it } from 'vitest'
import { createLimiter, fixedWindow, type Limit, memoryStore, slidingCounter } from '../../src/index.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { SAMPLES } from '../support/kinds.ts'

// Tests that refunded units leave no trace.

/** The start of a ten-second window, and of a calendar day. */
const START_MS = Date.parse('2026-11-22T03:00Z')

function worldOf(limit: Limit) {
  const clock = new ManualClock(START_MS)
  const store = memoryStore({ clock: clock.now, maxKeys: 2 })
  return { clock, store, limiter: createLimiter({ limits: [limit], store }) }
}

const refundable = Object.entries(SAMPLES).filter(([, { isRefundable }]) => isRefundable)

it.each(refundable)('%s: refunds remove the time of a charge', async (_, { make, options }) => {
  const { clock, limiter } = worldOf(make({ limit: 3 }))
  const decision = await limiter.consume('k', options?.(0))
  expect(await limiter.refund('k', decision)).toBe(1)
  // If the clock is set back by this little, operations use the newest stamp, if there is one.
  clock.set(START_MS - 500)
  expect((await limiter.consume('k', options?.(1))).atMs).toBe(START_MS - 500)
})

it.each(refundable)('%s: refunds keep the time of other charges', async (_, { make, options }) => {
  const { clock, limiter } = worldOf(make({ limit: 3 }))
  await limiter.consume('k', options?.(0))
  await limiter.refund('k', await limiter.consume('k', options?.(1)))
  clock.set(START_MS - 500)
  expect((await limiter.consume('k', options?.(2))).atMs).toBe(START_MS)
})

describe('a fixed window', () => {
  it('refunds nothing after it has ended', async () => {
    const { clock, limiter } = worldOf(fixedWindow({ limit: 3, window: '10s' }))
    const decision = await limiter.consume('k')
    clock.advance(10_000)
    expect(await limiter.refund('k', decision)).toBe(0)
  })

  it('returns no charge from the next window', async () => {
    const { clock, limiter } = worldOf(fixedWindow({ limit: 3, window: '10s' }))
    const decision = await limiter.consume('k')
    clock.advance(10_000)
    const later = await limiter.consume('k')
    expect(await limiter.refund('k', decision)).toBe(0)
    expect((await limiter.peek('k')).remaining).toBe(2)
    expect(await limiter.refund('k', later)).toBe(1)
  })

  it('refunds a charge of its last instant, and nothing after the clock was set back', async () => {
    const { clock, limiter } = worldOf(fixedWindow({ limit: 3, window: '10s' }))
    clock.advance(9999)
    expect(await limiter.refund('k', await limiter.consume('k'))).toBe(1)
    clock.advance(1)
    const ahead = await limiter.consume('k')
    clock.set(START_MS)
    await limiter.consume('k')
    expect(await limiter.refund('k', ahead)).toBe(0)
    expect((await limiter.peek('k')).remaining).toBe(1)
  })
})

describe('a sliding counter', () => {
  const counter = slidingCounter({ limit: 10, window: '10s' })

  it('refunds charges of the current and the previous window only', async () => {
    const { clock, limiter } = worldOf(counter)
    const before = await limiter.consume('k')
    clock.advance(10_000)
    const previous = await limiter.consume('k', { cost: 2 })
    clock.advance(10_000)
    const present = await limiter.consume('k', { cost: 3 })
    expect(await limiter.refund('k', before)).toBe(0)
    expect((await limiter.peek('k')).remaining).toBe(5)
    expect(await limiter.refund('k', previous)).toBe(2)
    expect((await limiter.peek('k')).remaining).toBe(7)
    expect(await limiter.refund('k', present)).toBe(3)
    expect((await limiter.peek('k')).remaining).toBe(10)
  })

  it('expires with the previous window after the current one was refunded', async () => {
    const { clock, store, limiter } = worldOf(counter)
    await limiter.consume('k')
    clock.advance(10_000)
    await limiter.refund('k', await limiter.consume('k'))
    await limiter.consume('another')
    clock.advance(10_000)
    await limiter.consume('third')
    expect(store.stats()).toEqual({ keys: 2, evicted: 0 })
  })
})
