import { createLimiter, type Limiter, type OnStoreError, type Store, slidingWindow } from 'slidegate'
import type { Service } from './service.ts'

/** Whether requests should be sent here, and if not, why. */
export interface Ready {
  readonly ready: boolean
  readonly reasons: readonly string[]
}

/** For how long an answer of the store stands. */
const FRESH_MS = 500

/** Finds out whether requests should be sent here. The store is asked, however often one asks, twice a second at most. */
export class Readiness {
  readonly #service: Service
  readonly #probe: Limiter
  #asked: { readonly atMs: number; readonly answers: Promise<boolean> } | undefined
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

  /** @param policies of those who are asked for decisions. Default: of all. */
  async state(policies: readonly OnStoreError[] = this.#service.policies()): Promise<Ready> {
    const reasons: string[] = []
    if (this.#service.isDraining) reasons.push('draining')
    if (!(await this.#storeAnswers()) && !policies.every((each) => each === 'allow' || each === 'local'))
      reasons.push('the store gives no answer')
    return { ready: reasons.length === 0, reasons }
  }

  close(): void {
    this.#probe.close()
  }

  #storeAnswers(): Promise<boolean> {
    const nowMs = performance.now()
    if (this.#asked === undefined || nowMs - this.#asked.atMs > FRESH_MS) {
      const answers = this.#probe.peek('ready').then(
        () => true,
        () => false,
      )
      this.#asked = { atMs: nowMs, answers }
    }
    return this.#asked.answers
  }
}
