import {
  createLimiter,
  type Limit,
  type Limiter,
  type OnStoreError,
  type Store,
  slidingWindow,
} from '../../../src/index.ts'
import { redisStore } from '../../../src/stores/redis/index.ts'
import { type Admission, fullestWindow } from '../../processes/fullest-window.ts'
import { Calls } from './calls.ts'
import type { RedisArgument } from './clients.ts'
import { keysWith } from './keys.ts'
import { Traffic } from './traffic.ts'

export const TIMEOUT_MS = 50
const WINDOW_MS = 1000

/** A limit that every key keeps reaching. */
const TIGHT: Limit = slidingWindow({ limit: 20, window: WINDOW_MS })

/** A limit that is never reached. No charge expires during a test, so all charges can be counted afterwards. */
const WIDE: Limit = slidingWindow({ limit: 1_000_000, window: '1h' })

const WIDE_KEYS = keysWith('wide')

/** Two limiters on one store, with traffic. They measure one policy. */
export class Subject {
  readonly policy: OnStoreError
  readonly calls: Calls = new Calls()
  /** The `storeDown` and `storeUp` events of each limiter, in order. */
  readonly changes: readonly string[][] = [[], []]
  /** Requests of the wide limit that were sent and not answered. */
  unanswered = 0
  readonly #store: Store
  readonly #limiters: readonly Limiter[]
  readonly #traffics: readonly Traffic[]

  constructor(policy: OnStoreError, client: RedisArgument) {
    this.policy = policy
    this.#store = redisStore(client)
    this.#limiters = [TIGHT, WIDE].map((limit, i) => {
      const limiter = createLimiter({ ...this.#options(limit), onStoreError: policy, timeoutMs: TIMEOUT_MS })
      limiter.on('storeDown', () => this.changes[i]!.push('down'))
      limiter.on('storeUp', () => this.changes[i]!.push('up'))
      return limiter
    })
    this.#limiters[1]!.on('storeError', () => {
      this.unanswered++
    })
    this.#traffics = [keysWith('tight'), WIDE_KEYS].map(
      (keys, i) => new Traffic(this.#limiters[i]!, keys, this.calls),
    )
  }

  #options(limit: Limit) {
    const name = `${this.policy}-${limit === TIGHT ? 'tight' : 'wide'}`
    return { name, limits: [limit], store: this.#store, logger: false } as const
  }

  get strange(): readonly unknown[] {
    return this.#traffics.flatMap(({ strange }) => strange)
  }

  async stop(): Promise<void> {
    await Promise.all(this.#traffics.map((traffic) => traffic.stop()))
  }

  close(): void {
    for (const limiter of this.#limiters) limiter.close()
    this.#store.close?.()
  }

  /** Returns how far above its limit any window was, counting these admissions. */
  over(isMeant: (admission: Admission) => boolean): number {
    const fullest = [...this.calls.admissions()]
      .filter(([key]) => key.startsWith('tight'))
      .map(([, admissions]) => fullestWindow(admissions.filter(isMeant), WINDOW_MS))
    return Math.max(0, Math.max(...fullest) - TIGHT.limit)
  }

  /** Returns reported admissions and charged units, for each key. */
  async charges(): Promise<{ admitted: number; charged: number }[]> {
    const admissions = this.calls.admissions()
    return this.#patiently(WIDE, (limiter) =>
      Promise.all(
        WIDE_KEYS.map(async (key) => {
          const { remaining } = await limiter.peek(key)
          return { admitted: admissions.get(key)?.length ?? 0, charged: WIDE.limit - remaining }
        }),
      ),
    )
  }

  /** Counts how many requests of a new key are admitted. */
  async admittedAfresh(): Promise<{ admitted: number; limit: number }> {
    const { limit } = TIGHT
    const [key] = keysWith('fresh')
    return this.#patiently(TIGHT, async (limiter) => {
      const decisions = await Promise.all(Array.from({ length: limit + 10 }, () => limiter.consume(key!)))
      const admitted = decisions.filter(({ allowed }) => allowed)
      return { admitted: fullestWindow(admitted, WINDOW_MS), limit }
    })
  }

  async #patiently<T>(limit: Limit, ask: (limiter: Limiter) => Promise<T>): Promise<T> {
    const limiter = createLimiter({ ...this.#options(limit), timeoutMs: 30_000 })
    try {
      return await ask(limiter)
    } finally {
      limiter.close()
    }
  }
}
