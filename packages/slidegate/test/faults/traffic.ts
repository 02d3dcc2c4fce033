import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect } from 'vitest'
import type { Decision, Limiter } from '../../src/index.ts'
import { fullestWindow } from '../processes/fullest-window.ts'

/** Callers that make one request after another until they are stopped. */
export class Traffic {
  readonly decisions: Decision[] = []
  readonly errors: unknown[] = []
  #isStopped = false
  readonly #callers: readonly Promise<void>[]

  constructor(limiter: Limiter, keys: readonly string[], callers = 20) {
    this.#callers = Array.from({ length: callers }, (_, i) => this.#run(limiter, keys[i % keys.length]!))
  }

  async #run(limiter: Limiter, key: string): Promise<void> {
    while (!this.#isStopped) {
      try {
        this.decisions.push(await limiter.consume(key))
      } catch (error) {
        this.errors.push(error)
      }
      await nextTurn()
    }
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await Promise.all(this.#callers)
  }

  /** All distinct errors. */
  get complaints(): string[] {
    return [...new Set(this.errors.map(String))]
  }
}

/** Sends requests until one is answered. */
export async function untilAnswered(limiter: Limiter): Promise<void> {
  const startMs = performance.now()
  for (;;) {
    try {
      await limiter.peek('probe')
      return
    } catch (error) {
      if (performance.now() - startMs > 15_000) throw error
      await nextTurn()
    }
  }
}

/** Checks that a new key is admitted exactly up to its limit, in any window. */
export async function expectExact(limiter: Limiter, key: string): Promise<void> {
  const { limit, windowMs } = limiter.limits[0]!
  const decisions = await Promise.all(Array.from({ length: limit + 10 }, () => limiter.consume(key)))
  decisions.push(await limiter.consume(key))
  const admitted = decisions.filter(({ allowed }) => allowed)
  expect(fullestWindow(admitted, windowMs)).toBe(limit)
  expect(decisions.slice(0, limit).every(({ allowed }) => allowed)).toBe(true)
}
