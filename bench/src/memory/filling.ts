import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { callers, inTurn } from '../callers.ts'
import { serve } from '../workers.ts'
import { MEMORY_SIDES } from './sides.ts'

// Fills a limiter with keys. Each side has its own process, so that sides don't share a heap.

export interface Filling {
  readonly side: string
  readonly keys: number
}

export interface Filled {
  /** Memory on and off the heap, without the key. */
  readonly bytesPerKey: number
  /** The longest pause of other work: a batch plus a turn of the event loop. */
  readonly longestMs: number
}

const POLICY = { limit: 100, windowMs: 3_600_000 }

/** Requests between two turns of the event loop. */
const BATCH = 20

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

serve<Filling, Filled>(async ({ side, keys: count }) => {
  const keys = callers(count)
  const opened = MEMORY_SIDES.find(({ name }) => name === side)!.open(POLICY, keys)
  const pick = inTurn(count)
  const before = heldBytes()
  let longestMs = 0
  for (let left = count; left > 0; left -= BATCH) {
    const startMs = performance.now()
    await opened.decide(pick, Math.min(left, BATCH))
    await new Promise(setImmediate)
    longestMs = Math.max(longestMs, performance.now() - startMs)
  }
  const bytesPerKey = (heldBytes() - before) / count
  // Keeps the limiter reachable until the heap is measured.
  await opened.decide(pick, 1)
  opened.verify?.()
  opened.close?.()
  return { bytesPerKey, longestMs }
})

function heldBytes(): number {
  collectGarbage()
  collectGarbage()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}
