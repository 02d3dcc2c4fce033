import type { Logger } from 'pino'
import { messageOf } from '../errors.ts'
import type { Service } from '../service/service.ts'
import type { Every } from './every.ts'
import { UnreachableError } from './redis-link.ts'
import type { Steering } from './steering.ts'

/** What was said on an instance that could not ask this one is in force here after so long, and a moment. */
export const STEER_EVERY_MS = 900

/**
 * Keeps a service to what operators have said, here or elsewhere. While that cannot be read, what is known stands. Since it asks
 * all the time, it is here that one is told whether Redis can be reached.
 */
export class Steered {
  readonly #service: Service
  readonly #steering: Steering
  readonly #log: Logger
  /** What is in force, or could not be put in force, as a text. */
  #known = '{}'
  #isReading = true
  #unreachableSinceMs: number | undefined
  #isClosed = false
  readonly #stop: () => void

  constructor(service: Service, steering: Steering, every: Every, log: Logger) {
    this.#service = service
    this.#steering = steering
    this.#log = log
    this.#stop = every(STEER_EVERY_MS, () => this.heed())
  }

  /** Reads what was said, and puts it in force. Never rejects. */
  async heed(): Promise<void> {
    try {
      const shadowings = await this.#steering.read()
      this.#tellReading()
      const text = JSON.stringify(shadowings)
      if (text === this.#known) return
      this.#known = text
      this.#service.shadow(shadowings)
      this.#log.info({ shadowings }, 'which limits are shadow limits has changed')
    } catch (error) {
      if (!this.#isClosed) this.#tellFailure(error)
    }
  }

  close(): void {
    this.#isClosed = true
    this.#stop()
  }

  /** Once for each time that it begins; so is its end, below. */
  #tellFailure(error: unknown): void {
    if (error instanceof UnreachableError) {
      if (this.#unreachableSinceMs !== undefined) return
      this.#unreachableSinceMs = performance.now()
      const { address: redis, reason } = error
      this.#log.warn(
        { redis, reason, onStoreError: Array.from(new Set(this.#service.policies())) },
        'Redis cannot be reached: the service runs without it, and requests are told what onStoreError says',
      )
    } else if (this.#isReading) {
      this.#isReading = false
      this.#log.warn(
        { reason: messageOf(error) },
        'which limits are shadow limits cannot be read: what is known stands',
      )
    }
  }

  #tellReading(): void {
    if (this.#unreachableSinceMs !== undefined) {
      const downMs = Math.round(performance.now() - this.#unreachableSinceMs)
      this.#unreachableSinceMs = undefined
      this.#log.info({ downMs }, 'Redis can be reached again')
    }
    if (!this.#isReading) {
      this.#isReading = true
      this.#log.info('which limits are shadow limits can be read again')
    }
  }
}
