import assert from 'node:assert/strict'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { Slab } from '../../src/runtime/slab.ts'
import { BLOCK_SLOTS, Expiry } from '../../src/stores/memory/expiry.ts'
import { KeyMap } from '../../src/stores/memory/key-map.ts'
import { UseOrder } from '../../src/stores/memory/use-order.ts'

// Compares the tables of a memory store with simple models.

const slots = fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 1000 }))
const times = fc.integer({ min: 1, max: 100 })

it('a block is due when its first slot is, and only due blocks are found', () => {
  const op = fc.record({ isLower: fc.boolean(), slot: slots, dueAtMs: times, byMs: times })
  fc.assert(
    fc.property(fc.array(op, { minLength: 1, maxLength: 200, size: 'max' }), (ops) => {
      const expiry = new Expiry()
      const dues = new Map<number, number>()
      for (const { isLower, slot, dueAtMs, byMs } of ops) {
        const block = Math.floor(slot / BLOCK_SLOTS) * BLOCK_SLOTS
        // Only an existing block can be set.
        if (isLower || !dues.has(block)) {
          expiry.lower(slot, dueAtMs)
          dues.set(block, Math.min(dueAtMs, dues.get(block) ?? Number.POSITIVE_INFINITY))
        } else {
          expiry.set(slot, dueAtMs)
          dues.set(block, dueAtMs)
        }
        const first = expiry.due(byMs)
        if (first === undefined) expect(Math.min(...dues.values())).toBeGreaterThan(byMs)
        else expect(dues.get(first)).toBeLessThanOrEqual(byMs)
      }
    }),
    { numRuns: 200 },
  )
})

/** A brute-force model of the use order. */
class OrderModel {
  readonly #usedAt = new Map<number, number>()
  readonly #opensAtMs = new Map<number, number>()
  #uses = 0

  get slots(): number[] {
    return [...this.#usedAt.keys()]
  }

  use(slot: number): void {
    this.#usedAt.set(slot, ++this.#uses)
    this.#opensAtMs.delete(slot)
  }

  forget(slot: number): void {
    this.#usedAt.delete(slot)
    this.#opensAtMs.delete(slot)
  }

  park(slot: number, opensAtMs: number): void {
    this.#opensAtMs.set(slot, opensAtMs)
  }

  oldest(nowMs: number): number {
    for (const [slot, opensAtMs] of this.#opensAtMs) if (opensAtMs <= nowMs) this.#opensAtMs.delete(slot)
    const open = [...this.#usedAt].filter(([slot]) => !this.#opensAtMs.has(slot))
    return open.reduce((a, b) => (b[1] < a[1] ? b : a), [0, Number.POSITIVE_INFINITY])[0]
  }

  get opensAtMs(): number {
    return this.#opensAtMs.size === 0 ? 0 : Math.min(...this.#opensAtMs.values())
  }
}

it('the least recently used slot that may not be at its limit is found', () => {
  const op = fc.record({
    what: fc.constantFrom('add', 'add', 'add', 'use', 'use', 'forget', 'park', 'park', 'wait', 'search'),
    which: fc.nat(),
    ms: times,
  })
  fc.assert(
    // Uses few keys, or so many that a search checks only a sample.
    fc.property(
      fc.constantFrom(0, 20, 300, 3000),
      fc.array(op, { maxLength: 300, size: 'max' }),
      (held, ops) => {
        // Uses chunks of 64 rows, so that some are freed.
        const slab = new Slab(2, 6)
        slab.create()
        const order = new UseOrder(slab)
        const model = new OrderModel()
        const add = () => {
          const slot = slab.create()
          order.use(slot)
          model.use(slot)
        }
        for (let i = 0; i < held; i++) add()
        let nowMs = 0
        for (const { what, which, ms } of ops) {
          const { slots } = model
          const slot = slots[which % slots.length]
          if (what === 'add') add()
          else if (what === 'wait') nowMs += ms
          else if (what === 'search') order.searchAhead(ms)
          else if (what === 'park') {
            const oldest = order.oldest(nowMs)
            assert.equal(oldest, model.oldest(nowMs))
            if (oldest === 0) continue
            order.park(oldest, nowMs + ms)
            model.park(oldest, nowMs + ms)
          } else if (slot !== undefined && what === 'use') {
            order.use(slot)
            model.use(slot)
          } else if (slot !== undefined) {
            order.forget(slot)
            slab.delete(slot)
            model.forget(slot)
          }
          assert.equal(order.oldest(nowMs), model.oldest(nowMs))
          assert.equal(order.opensAtMs, model.opensAtMs)
        }
      },
    ),
    { numRuns: 100 },
  )
})

it('many keys are found until they are deleted', () => {
  const map = new KeyMap()
  const keys = Array.from({ length: 40_000 }, (_, i) => `key${i}`)
  keys.forEach((key, i) => {
    map.add(key, i + 1)
  })
  const slotsOf = () => keys.map((key) => map.get(key) ?? 0)
  expect(slotsOf()).toEqual(keys.map((_, i) => i + 1))
  for (let i = 0; i < keys.length; i += 3) map.delete(keys[i]!)
  const left = keys.map((_, i) => (i % 3 === 0 ? 0 : i + 1))
  expect(slotsOf()).toEqual(left)
  expect(slotsOf()).toEqual(left)
  expect(map.get('another')).toBeUndefined()
  map.add(keys[0]!, 7)
  expect(map.get(keys[0]!)).toBe(7)
})
