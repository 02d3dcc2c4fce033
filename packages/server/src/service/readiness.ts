// Readiness: whether requests should be sent to this process.

import { createLimiter, type Limiter, type OnStoreError, type Store, slidingWindow } from 'slidegate'
import type { Service } from './service.ts'

/** Whether requests should be sent here, whether the store answers, and if not, why. */
interface Ready {
  readonly ready: boolean
  /** Whether the store is down: limiters decide by their `onStoreError`. */
  readonly degraded: boolean
  readonly reasons: readonly string[]
}

/** Policies that need no store to let requests pass. */
const ANSWERS_ALONE: ReadonlySet<OnStoreError> = new Set(['allow', 'local'])

/** For how long an answer of the store stands. */
const FRESH_MS = 500

/** Finds out whether requests should be sent here. The store is asked, however often one asks, twice a second at most. */
export class Readiness {
  readonly #service: Service
  readonly #probe: Limiter
  #probed: { readonly atMs: number; readonly answers: Promise<boolean> } | undefined
  /** Why the configuration as it stands in the file is not in force. Requests are answered by the one before. */
  configProblem: string | undefined

  constructor(service: Service, store: Store) {
    this.#service = service
    const limits = [slidingWindow({ limit: 1, window: '1s' })]
    this.#probe = createLimiter({
      name: 'slidegate.readiness',
      limits,
      store,
      timeoutMs: 1000,
      logger: false,
    })
  }

  /**
   * By default the service stays ready while the store is down. An outage reaches all instances at once, and no other instance
   * would answer better.
   *
   * @param policies of the limiters that are asked. Default: all.
   */
  async state(policies: readonly OnStoreError[] = this.#service.policies()): Promise<Ready> {
    const { isDraining, config } = this.#service
    const degraded = !(await this.#storeAnswers())
    const needsStore = config.readiness === 'store' && policies.some((each) => !ANSWERS_ALONE.has(each))
    const reasons = [...(isDraining ? ['draining'] : []), ...(degraded ? ['the store does not answer'] : [])]
    return { ready: !isDraining && !(degraded && needsStore), degraded, reasons }
  }

  close(): void {
    this.#probe.close()
  }

  #storeAnswers(): Promise<boolean> {
    const nowMs = performance.now()
    if (this.#probed === undefined || nowMs - this.#probed.atMs > FRESH_MS) {
      const answers = this.#probe.peek('ready').then(
        () => true,
        () => false,
      )
      this.#probed = { atMs: nowMs, answers }
    }
    return this.#probed.answers
  }
}
