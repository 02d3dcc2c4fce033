import { asUnavailable } from '../errors.ts'
import type { Announcer } from '../events.ts'
import type { OnStoreError } from './answers.ts'
import type { BreakerListener } from './breaker.ts'

const MEANWHILE: Readonly<Record<OnStoreError, string>> = {
  throw: 'requests fail',
  deny: 'requests are denied',
  allow: 'requests are allowed, uncounted',
  local: 'requests are decided in this process',
}

/** Whether the store is asked, all of it: says so when that changes, once. */
export class StoreHealth implements BreakerListener {
  readonly #announcer: Announcer
  readonly #onStoreError: OnStoreError
  readonly #what: string
  /** Parts that are not asked. */
  #down = 0
  #downSinceMs = 0
  /** Not the error itself: its stack would keep the request that has failed, and its async context. */
  #message = ''
  /** Requests that were told something without the store since then. */
  #requests = 0

  constructor(announcer: Announcer, onStoreError: OnStoreError, hasParts: boolean) {
    this.#announcer = announcer
    this.#what = hasParts ? 'a part of the store' : 'the store'
    this.#onStoreError = onStoreError
  }

  /** Why it is not asked, for those who are told so. */
  get reason(): string {
    return `the store is not asked, since it has failed lately: ${this.#message}`
  }

  opened(reason: unknown): void {
    const error = asUnavailable(reason)
    this.#message = error.message
    this.#announcer.tally.opened++
    this.#announcer.tally.isDown = true
    this.#down++
    if (this.#down > 1) return
    this.#downSinceMs = performance.now()
    this.#requests = 0
    this.#announcer.log(
      `${this.#what} is down (${error.message}); ${MEANWHILE[this.#onStoreError]} until it answers`,
    )
    this.#announcer.tell('storeDown', { error })
  }

  closed(): void {
    this.#down--
    if (this.#down > 0) return
    this.#announcer.tally.isDown = false
    const downMs = Math.round(performance.now() - this.#downSinceMs)
    this.#announcer.log(
      `${this.#what} is up again after ${downMs} ms; ${this.#requests} requests went without it`,
    )
    this.#announcer.tell('storeUp', { downMs, requests: this.#requests })
  }

  decided(): void {
    this.#requests++
  }
}
