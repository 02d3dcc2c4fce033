import fc from 'fast-check'
import { expect, it } from 'vitest'
import { Heap } from '../../src/limiter/waiting/waiter.ts'

const numbers = fc.array(fc.integer({ min: 0, max: 30 }), { maxLength: 60 })

it('a heap returns its items in order, whatever was removed', () => {
  fc.assert(
    fc.property(numbers, numbers, fc.integer({ min: 1, max: 5 }), (early, late, divisor) => {
      const heap = new Heap<number>((one, other) => one < other)
      for (const item of early) heap.push(item)
      heap.keep((item) => item % divisor === 0)
      for (const item of late) heap.push(item)
      const expected = [...early.filter((item) => item % divisor === 0), ...late].sort((a, b) => a - b)
      expect(heap.size).toBe(expected.length)
      expect(heap.peek()).toBe(expected[0])
      expect(expected.map(() => heap.pop())).toEqual(expected)
      expect(heap.pop()).toBeUndefined()
    }),
  )
})
