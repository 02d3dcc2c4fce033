import type { Logger } from '../events.ts'
import { backgroundTimer } from '../runtime/platform.ts'
import type { Store } from '../stores/store.ts'

/** Lines in a stretch, at most. Later changes are logged at its end. */
const MOST_LINES = 10
const STRETCH_MS = 10_000

/** Logs that a store is down: once, however many limiters notice. */
export class StoreLog {
  #downSinceMs: number | undefined
  /** Requests that were answered without the store since then. */
  #requests = 0
  #lines = 0
  #sinceMs = Number.NEGATIVE_INFINITY
  #next: (() => void) | undefined

  /** @param log called if no other limiter has found out before */
  wentDown(log: () => void): void {
    if (this.#downSinceMs !== undefined) return
    this.#downSinceMs = performance.now()
    this.#requests = 0
    this.#write(log)
  }

  cameUp(log: (downMs: number, requests: number) => void): void {
    const sinceMs = this.#downSinceMs
    if (sinceMs === undefined) return
    this.#downSinceMs = undefined
    const downMs = Math.round(performance.now() - sinceMs)
    const requests = this.#requests
    this.#write(() => log(downMs, requests))
  }

  decided(): void {
    this.#requests++
  }

  #write(log: () => void): void {
    const nowMs = performance.now()
    if (nowMs - this.#sinceMs >= STRETCH_MS) {
      this.#sinceMs = nowMs
      this.#lines = 0
    }
    if (++this.#lines <= MOST_LINES) {
      log()
      return
    }
    if (this.#next === undefined) {
      const end = () => {
        const next = this.#next!
        this.#next = undefined
        this.#write(next)
      }
      backgroundTimer(end, this.#sinceMs + STRETCH_MS - nowMs)
    }
    this.#next = log
  }
}

const logs = new WeakMap<Store, WeakMap<Logger, StoreLog>>()

/** That of all limiters with this store and logger. */
export function storeLogOf(store: Store, logger: Logger | undefined): StoreLog {
  if (logger === undefined) return new StoreLog()
  let ofStore = logs.get(store)
  if (ofStore === undefined) {
    ofStore = new WeakMap()
    logs.set(store, ofStore)
  }
  let log = ofStore.get(logger)
  if (log === undefined) {
    log = new StoreLog()
    ofStore.set(logger, log)
  }
  return log
}
