import { asUnavailable, plainError, StoreUnavailableError } from '../errors.ts'
import type { Announcer } from '../events.ts'
import type { Store } from '../stores/store.ts'
import type { OnStoreError } from './answers.ts'
import type { BreakerListener } from './breaker.ts'
import { type StoreLog, storeLogOf } from './store-log.ts'

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
  readonly #log: StoreLog
  /** Parts that are not asked. */
  #down = 0
  #downSinceMs = 0
  /** Not the error itself: its stack would keep the request that has failed, and its async context. */
  #message = ''
  #cause: Error | undefined
  /** Requests that were told something without the store since then. */
  #requests = 0

  constructor(announcer: Announcer, onStoreError: OnStoreError, store: Store) {
    this.#announcer = announcer
    this.#what = store.domainOf === undefined ? 'the store' : 'a part of the store'
    this.#onStoreError = onStoreError
    this.#log = storeLogOf(store, announcer.logger)
  }

  /** Why it is not asked, for those who are told so. */
  error(): StoreUnavailableError {
    const cause = this.#cause
    return new StoreUnavailableError(
      'down',
      `the store is not asked, since it has failed lately: ${this.#message}`,
      cause && { cause },
    )
  }

  opened(reason: unknown): void {
    const error = asUnavailable(reason)
    this.#message = error.message
    this.#cause = error.cause === undefined ? undefined : plainError(error.cause)
    this.#announcer.tally.opened++
    this.#announcer.tally.isDown = true
    this.#down++
    if (this.#down > 1) return
    this.#downSinceMs = performance.now()
    this.#requests = 0
    const { message } = error
    this.#log.wentDown(() =>
      this.#announcer.log(
        `${this.#what} is down (${message}); ${MEANWHILE[this.#onStoreError]} until it answers`,
      ),
    )
    this.#announcer.tell('storeDown', { error: this.#announcer.named(error) })
  }

  closed(): void {
    this.#down--
    if (this.#down > 0) return
    this.#announcer.tally.isDown = false
    const downMs = Math.round(performance.now() - this.#downSinceMs)
    this.#log.cameUp((downMs, requests) =>
      this.#announcer.log(
        `${this.#what} is up again after ${downMs} ms; ${requests} requests went without it`,
      ),
    )
    this.#announcer.tell('storeUp', { downMs, requests: this.#requests })
  }

  decided(): void {
    this.#requests++
    this.#log.decided()
  }
}
