import assert from 'node:assert/strict'
import fc from 'fast-check'
import { it } from 'vitest'
import { createLimiter, memoryStore, slidingWindow } from '../../src/index.ts'
import { ManualClock } from '../../src/testing/index.ts'

const LIMIT = 2
const WINDOW_MS = 60_000

/** A brute-force model of a full table: its keys, their last uses and their charges. */
class Model {
  readonly #maxKeys: number
  readonly #held = new Map<string, { usedAt: number; charges: number[] }>()
  #uses = 0
  evicted = 0

  constructor(maxKeys: number) {
    this.#maxKeys = maxKeys
  }

  /** Returns the remaining units or -1 for a denial. Returns `undefined` if there is no room for a new key. */
  consume(key: string, cost: number, nowMs: number): number | undefined {
    const used = this.#used(key, nowMs)
    const isAdmitted = used + cost <= LIMIT
    if (isAdmitted && !this.#held.has(key)) {
      if (!this.#makeRoom(nowMs)) return undefined
      this.#held.set(key, { usedAt: 0, charges: [] })
    }
    this.use(key)
    if (!isAdmitted) return -1
    for (let i = 0; i < cost; i++) this.#held.get(key)!.charges.push(nowMs)
    return LIMIT - used - cost
  }

  use(key: string): void {
    const held = this.#held.get(key)
    if (held !== undefined) held.usedAt = ++this.#uses
  }

  reset(key: string): void {
    this.#held.delete(key)
  }

  #used(key: string, nowMs: number): number {
    return (this.#held.get(key)?.charges ?? []).filter((atMs) => atMs > nowMs - WINDOW_MS).length
  }

  #makeRoom(nowMs: number): boolean {
    if (this.#held.size < this.#maxKeys) return true
    const expired = [...this.#held.keys()].filter((key) => this.#used(key, nowMs) === 0)
    for (const key of expired) this.#held.delete(key)
    if (expired.length > 0) return true
    const open = [...this.#held].filter(([key]) => this.#used(key, nowMs) < LIMIT)
    if (open.length === 0) return false
    const [leastRecent] = open.reduce((a, b) => (b[1].usedAt < a[1].usedAt ? b : a))
    this.#held.delete(leastRecent)
    this.evicted++
    return true
  }
}

const key = fc.integer({ min: 0, max: 11 }).map((number) => `key${number}`)
const event = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({ type: fc.constant('consume' as const), key, cost: fc.constantFrom(1, 1, 2, 3) }),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('peek' as const), key }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('reset' as const), key }) },
  {
    weight: 3,
    arbitrary: fc.record({
      type: fc.constant('wait' as const),
      ms: fc.constantFrom(0, 1, 5000, 59_999, 60_000),
    }),
  },
)

it("a full table evicts exactly the expired keys, then the least recently used key that isn't at its limit", async () => {
  const events = fc.array(event, { minLength: 20, maxLength: 150, size: 'max' })
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 8 }), events, async (maxKeys, history) => {
      const clock = new ManualClock()
      const store = memoryStore({ maxKeys, onFull: 'deny', clock: clock.now })
      const limiter = createLimiter({ limits: [slidingWindow({ limit: LIMIT, window: WINDOW_MS })], store })
      const model = new Model(maxKeys)
      for (const each of history) {
        if (each.type === 'wait') clock.advance(each.ms)
        else if (each.type === 'consume') {
          const { allowed, source, remaining } = limiter.consumeSync(each.key, { cost: each.cost })
          const answer = source === 'failClosed' ? undefined : allowed ? remaining : -1
          assert.equal(answer, model.consume(each.key, each.cost, clock.now()))
        } else if (each.type === 'peek') {
          await limiter.peek(each.key)
          model.use(each.key)
        } else {
          await limiter.reset(each.key)
          model.reset(each.key)
        }
        assert.equal(store.stats().evicted, model.evicted)
      }
    }),
    { numRuns: 400 },
  )
})
