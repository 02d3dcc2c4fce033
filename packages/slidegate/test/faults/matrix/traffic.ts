import { setTimeout as delay } from 'node:timers/promises'
import { type Limiter, StoreUnavailableError } from '../../../src/index.ts'
import type { Calls } from './calls.ts'

/** Callers that alternate between requests and pauses. There is one per key, and three for the first key. */
export class Traffic {
  /** Errors that no call should ever throw. */
  readonly strange: unknown[] = []
  #isStopped = false
  readonly #limiter: Limiter
  readonly #calls: Calls
  readonly #callers: readonly Promise<void>[]

  constructor(limiter: Limiter, keys: readonly string[], calls: Calls) {
    this.#limiter = limiter
    this.#calls = calls
    this.#callers = [keys[0]!, keys[0]!, ...keys].map((key) => this.#run(key))
  }

  async #run(key: string): Promise<void> {
    while (!this.#isStopped) {
      const startMs = performance.now()
      try {
        const { source, allowed, atMs } = await this.#limiter.consume(key)
        this.#calls.add(key, startMs, performance.now(), source, allowed, atMs)
      } catch (error) {
        const endMs = performance.now()
        if (error instanceof StoreUnavailableError)
          this.#calls.add(key, startMs, endMs, error.reason, false, 0)
        else this.strange.push(error)
      }
      await delay(10 + 20 * Math.random())
    }
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await Promise.all(this.#callers)
  }
}
