import type { Redis } from 'ioredis'
import { type Floor, floorKeys, physicalFloor } from './floor.ts'

const SLUG = 'batch'

/** Keys in a call at most. */
const MAX_KEYS = 128

/** Requests in a call at most. */
const MAX_REQUESTS = 512

/** Calls in flight that need not be full, and at most. */
const EAGER_CALLS = 2
const MAX_CALLS = 8

type Resolve = (answer: number) => void

/**
 * What any limiter with a state for each key can reach at best: requests that wait at the same time travel in one
 * call, those for one key as one, and for each key a small string is read and written back. Nothing is decided.
 */
export async function batchedFloor(redis: Redis, keys: readonly string[]): Promise<Floor> {
  const writeBack = await physicalFloor(redis, floorKeys(keys, SLUG))
  let waiting = new Map<string, Resolve[]>()
  let requests = 0
  let calls = 0
  let isScheduled = false

  function schedule(): void {
    if (isScheduled || !isDue()) return
    isScheduled = true
    queueMicrotask(() => {
      isScheduled = false
      while (isDue()) void send()
    })
  }

  function isDue(): boolean {
    if (requests === 0 || calls >= MAX_CALLS) return false
    return calls < EAGER_CALLS || waiting.size >= MAX_KEYS || requests >= MAX_REQUESTS
  }

  async function send(): Promise<void> {
    const batch = waiting
    waiting = new Map()
    requests = 0
    calls++
    await writeBack([...batch.keys()])
    calls--
    for (const resolves of batch.values()) for (const resolve of resolves) resolve(1)
    schedule()
  }

  return {
    name: 'read and write back, in batches',
    slug: SLUG,
    ask: (key) =>
      new Promise<number>((resolve) => {
        const same = waiting.get(key)
        if (same === undefined) waiting.set(key, [resolve])
        else same.push(resolve)
        requests++
        if (waiting.size >= MAX_KEYS || requests >= MAX_REQUESTS) {
          if (calls < MAX_CALLS) void send()
        } else schedule()
      }),
    isAnswer: (answer) => answer === 1,
  }
}
