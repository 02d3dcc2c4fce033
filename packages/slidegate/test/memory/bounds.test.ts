// tier: system
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, it } from 'vitest'
import { createLimiter, memoryStore, slidingWindow } from '../../src/index.ts'
import { ManualClock } from '../../src/testing/index.ts'

setFlagsFromString('--expose-gc')
const gc: () => void = runInNewContext('gc')

function collectGarbage(): void {
  // Array buffers are freed in the background, and each collection waits for those of the previous one.
  for (let i = 0; i < 3; i++) gc()
}

function heldBytes(): number {
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

/** Returns the megabytes by which `work` grows the heap and the slabs. */
function growthOf(work: () => void): number {
  collectGarbage()
  const before = heldBytes()
  work()
  collectGarbage()
  return (heldBytes() - before) / 2 ** 20
}

it('expired keys are deleted while other keys are used', () => {
  const clock = new ManualClock()
  const store = memoryStore({ clock: clock.now })
  const limiter = createLimiter({ limits: [slidingWindow({ limit: 1, window: '1m' })], store })
  for (let i = 0; i < 10_000; i++) limiter.consumeSync(`first${i}`)
  clock.advance(86_400_000)
  for (let i = 0; i < 5000; i++) limiter.consumeSync(`second${i}`)
  expect(store.stats().keys).toBe(5000)
})

it('expired keys are deleted while only one other key is used', () => {
  const clock = new ManualClock()
  const store = memoryStore({ clock: clock.now })
  const limiter = createLimiter({ limits: [slidingWindow({ limit: 1, window: '1m' })], store })
  for (let i = 0; i < 10_000; i++) limiter.consumeSync(`first${i}`)
  clock.advance(86_400_000)
  for (let i = 0; i < 20_000; i++) limiter.consumeSync('second')
  expect(store.stats().keys).toBe(1)
})

it('the memory of expired keys is freed', () => {
  const clock = new ManualClock()
  const limiter = createLimiter({
    limits: [slidingWindow({ limit: 10, window: '1m' })],
    store: memoryStore({ clock: clock.now }),
  })
  const growth = growthOf(() => {
    // Each key gets three records, two of them in a ring.
    for (let round = 0; round < 3; round++) {
      for (let i = 0; i < 100_000; i++) limiter.consumeSync(`first${i}`)
      clock.advance(1)
    }
    clock.advance(86_400_000)
    for (let i = 0; i < 2000; i++) limiter.consumeSync(`second${i}`)
  })
  // Together, the first keys took more than 20 MB.
  expect(growth).toBeLessThan(8)
  expect(limiter.consumeSync('first0').remaining).toBe(9)
})

it("requests for keys at their limits and for new keys don't grow the memory", () => {
  const clock = new ManualClock()
  const store = memoryStore({ maxKeys: 2, onFull: 'deny', clock: clock.now })
  const limiter = createLimiter({ limits: [slidingWindow({ limit: 1, window: '1h' })], store })
  limiter.consumeSync('first to open')
  clock.advance(1)
  const hammer = (times: number) => {
    for (let i = 0; i < times; i++) {
      limiter.consumeSync('hammered')
      limiter.consumeSync('foreign')
    }
  }
  hammer(1000)
  expect(growthOf(() => hammer(100_000))).toBeLessThan(2)
  expect(store.stats().keys).toBe(2)
})

it("many keys that open at once don't stall the process", () => {
  const clock = new ManualClock()
  const keys = 40_000
  const store = memoryStore({ maxKeys: keys, onFull: 'deny', clock: clock.now })
  const limiter = createLimiter({ limits: [slidingWindow({ limit: 2, window: '1h' })], store })
  for (let round = 0; round < 2; round++) {
    for (let i = 0; i < keys; i++) {
      clock.advance(1)
      limiter.consumeSync(`${i}`)
    }
    clock.advance(1_800_000 - keys)
  }
  expect(limiter.consumeSync('foreign').allowed).toBe(false)
  // Every key has room for one request again.
  clock.advance(keys)
  // Measures CPU time, since the process may have to wait for the CPU.
  const before = process.cpuUsage()
  expect(limiter.consumeSync('foreign').allowed).toBe(true)
  const { user, system } = process.cpuUsage(before)
  expect((user + system) / 1000).toBeLessThan(1000)
})

it("a limiter's memory doesn't grow with the keys that it has seen", () => {
  const limiter = createLimiter({
    limits: [slidingWindow({ limit: 10, window: '1h' })],
    store: memoryStore({ maxKeys: 1000 }),
  })
  const flood = (from: number) => {
    for (let i = from; i < from + 50_000; i++) limiter.consumeSync(`key${i}`)
  }
  flood(0)
  expect(growthOf(() => flood(50_000))).toBeLessThan(2)
})
