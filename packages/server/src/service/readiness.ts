// Readiness: whether this process should receive requests.

import { createLimiter, type Limiter, type OnStoreError, type Store, slidingWindow } from 'slidegate'
import type { Service } from './service.ts'

/** Readiness and store health, with the reasons. */
interface Ready {
  readonly ready: boolean
  /** Whether the store is down, in which case limiters apply their `onStoreError`. */
  readonly degraded: boolean
  readonly reasons: readonly string[]
}

/** The state of the configuration file. `restart`: some parts take effect at the next start. */
export type FileState = 'applied' | 'invalid' | 'restart'

/** Policies under which requests may be allowed without a store. */
const ANSWERS_ALONE: ReadonlySet<OnStoreError> = new Set(['allow', 'local'])

/** Lifetime of a probe's result. */
const FRESH_MS = 500

/** Reports readiness. Probes the store at most twice a second. */
export class Readiness {
  readonly #service: Service
  readonly #probe: Limiter
  #probed: { readonly atMs: number; readonly answers: Promise<boolean> } | undefined
  /** The error in the configuration file, if the previous configuration stays active. */
  configProblem: string | undefined
  /** Whether parts of the file take effect at the next start. */
  needsRestart = false

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
   * Returns whether this process is ready and whether the store is down.
   *
   * By default, it stays ready while the store is down: an outage affects all instances, so no other instance could
   * respond better.
   *
   * @param policies the failure policies to consider. Default: the policies of all limiters.
   */
  async state(policies: readonly OnStoreError[] = this.#service.policies()): Promise<Ready> {
    const { isDraining, config } = this.#service
    const degraded = !(await this.#storeAnswers())
    const needsStore = config.readiness === 'store' && policies.some((each) => !ANSWERS_ALONE.has(each))
    const reasons = [...(isDraining ? ['draining'] : []), ...(degraded ? ["the store doesn't respond"] : [])]
    return { ready: !isDraining && !(degraded && needsStore), degraded, reasons }
  }

  get fileState(): FileState {
    if (this.configProblem !== undefined) return 'invalid'
    return this.needsRestart ? 'restart' : 'applied'
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
