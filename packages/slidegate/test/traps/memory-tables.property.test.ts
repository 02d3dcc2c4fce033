import fc from 'fast-check'
import { expect, it } from 'vitest'
import { BLOCK_SLOTS, Expiry } from '../../src/stores/expiry.ts'
import { KeyMap } from '../../src/stores/key-map.ts'
import { Parking } from '../../src/stores/parking.ts'

// What a memory store knows its keys by, against what is too simple to be wrong.

const slots = fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 1000 }))
const times = fc.integer({ min: 1, max: 100 })

it('a block of slots is due as soon as the first of them, and none that is not is found', () => {
  const op = fc.record({ isLower: fc.boolean(), slot: slots, dueAtMs: times, byMs: times })
  fc.assert(
    fc.property(fc.array(op, { minLength: 1, maxLength: 200, size: 'max' }), (ops) => {
      const expiry = new Expiry()
      const dues = new Map<number, number>()
      for (const { isLower, slot, dueAtMs, byMs } of ops) {
        const block = Math.floor(slot / BLOCK_SLOTS) * BLOCK_SLOTS
        // Only what there is can be set.
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

it('of those who are parked and may be open the least recently used is found first', () => {
  const op = fc.record({ what: fc.constantFrom('park', 'park', 'leave', 'open'), slot: slots, ms: times })
  fc.assert(
    fc.property(fc.array(op, { minLength: 1, maxLength: 300, size: 'max' }), (ops) => {
      const parking = new Parking()
      const closed = new Map<number, number>()
      // In the order in which they were parked first.
      let parked: number[] = []
      let nowMs = 0
      for (const { what, slot, ms } of ops) {
        if (what === 'park' && !closed.has(slot)) {
          parking.park(slot, nowMs + ms)
          closed.set(slot, nowMs + ms)
          if (!parked.includes(slot)) parked.push(slot)
        } else if (what === 'leave') {
          parking.leave(slot)
          closed.delete(slot)
          parked = parked.filter((other) => other !== slot)
        } else {
          nowMs += Math.floor(ms / 10)
          for (const [other, opensAtMs] of closed) if (opensAtMs <= nowMs) closed.delete(other)
          expect(parking.open(nowMs)).toBe(parked.find((other) => !closed.has(other)) ?? 0)
        }
        if (what === 'open')
          expect(parking.opensAtMs).toBe(closed.size === 0 ? 0 : Math.min(...closed.values()))
      }
    }),
    { numRuns: 200 },
  )
})

it('keys are found, however many there are, until they are deleted', () => {
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
