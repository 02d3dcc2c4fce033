import type { Redis } from 'ioredis'
import { type Floor, floorKeys, physicalFloor } from './floor.ts'

const SLUG = 'batch'

/** Maximum number of keys per call. */
const MAX_KEYS = 128

/** Maximum number of requests per call. */
const MAX_REQUESTS = 512

/** With fewer calls in flight than this, a call is sent before it is full. */
const EAGER_CALLS = 2
/** Maximum number of calls in flight. */
const MAX_CALLS = 8

type Resolve = (answer: number) => void

/**
 * The cheapest possible limiter with state per key, batched like ours.
 *
 * Waiting requests share a call, and requests for the same key are joined. Each key is a small string that is read and written
 * back, without a decision.
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
    name: 'batched read and write-back',
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
