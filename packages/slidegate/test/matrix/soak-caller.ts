import {
  createLimiter,
  type Limiter,
  type OnStoreError,
  type Store,
  slidingWindow,
  withDenyCache,
  withLeases,
} from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import type { Handed } from './clients.ts'
import { RecentCalls } from './recent-calls.ts'
import { TIMEOUT_MS } from './subject.ts'
import { Traffic } from './traffic.ts'

const LIMIT = 40
const WINDOW_MS = 1000

/** The same all the time, so that they reach their limits. */
const HOT_KEYS = ['hot', 'warm0', 'warm1']

/** A limiter under traffic for as long as it takes. */
export class SoakCaller {
  readonly policy: OnStoreError
  readonly calls: RecentCalls = new RecentCalls(LIMIT, WINDOW_MS)
  isDown = false
  /** Times that the store went down. */
  falls = 0
  /** Told that it is down, or up, when it was said to be so already. */
  repetitions = 0
  readonly #store: Store
  readonly #limiter: Limiter
  readonly #hot: Traffic
  #isStopped = false

  constructor(policy: OnStoreError, client: Handed) {
    this.policy = policy
    this.#store = redisStore(client)
    // One of them by way of leases and a deny cache.
    const store = policy === 'local' ? withDenyCache(withLeases(this.#store)) : this.#store
    const limits = [slidingWindow({ limit: LIMIT, window: WINDOW_MS })]
    const options = {
      name: policy,
      limits,
      store,
      onStoreError: policy,
      timeoutMs: TIMEOUT_MS,
      logger: false,
    }
    this.#limiter = createLimiter({ ...options, logger: false })
    this.#limiter.on('storeDown', () => this.#turn(true))
    this.#limiter.on('storeUp', () => this.#turn(false))
    this.#hot = new Traffic(this.#limiter, HOT_KEYS, this.calls)
    void this.#ofMany()
  }

  get strange(): readonly unknown[] {
    return this.#hot.strange
  }

  /** Whether the store decides again. */
  async isAnswered(): Promise<boolean> {
    const decision = await this.#limiter.peek('is it there?').catch(() => undefined)
    return decision?.source === 'store' || decision?.source === 'lease' || decision?.source === 'denyCache'
  }

  /** What is wrong with it now. */
  complaints(p99MaxMs: number): string[] {
    this.calls.check()
    const { calls, policy, repetitions, strange } = this
    const found: string[] = []
    const p99Ms = calls.percentileMs(99)
    if (calls.over > 0) found.push(`a window held ${calls.over} units too many`)
    if (p99Ms > p99MaxMs) found.push(`the 99th percentile of calls took ${p99Ms} ms`)
    if (repetitions > 0) found.push(`it was told ${repetitions} times what it knew`)
    if (strange.length > 0) found.push(`calls failed with ${[...new Set(strange.map(String))].join(', ')}`)
    return found.map((complaint) => `${policy}: ${complaint}`)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#hot.stop()
    this.#limiter.close()
    this.#store.close?.()
  }

  #turn(isDown: boolean): void {
    if (this.isDown === isDown) this.repetitions++
    if (isDown) this.falls++
    this.isDown = isDown
  }

  /** Keys that come and go. */
  async #ofMany(): Promise<void> {
    while (!this.#isStopped) {
      const key = `user${Math.floor(Math.random() * 100_000)}`
      await this.#limiter.consume(key).catch(() => undefined)
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  }
}
