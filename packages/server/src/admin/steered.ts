import type { Logger } from 'pino'
import { messageOf } from '../errors.ts'
import type { Service } from '../service/service.ts'
import type { Every } from './every.ts'
import type { Steering } from './steering.ts'

/** What was said on an instance that could not ask this one is in force here after so long, and a moment. */
export const STEER_EVERY_MS = 900

/** Keeps a service to what operators have said, here or elsewhere. While that cannot be read, what is known stands. */
export class Steered {
  readonly #service: Service
  readonly #steering: Steering
  readonly #log: Logger
  /** What is in force, or could not be put in force, as a text. */
  #known = '{}'
  #isReading = true
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
      this.#tell(true)
      const text = JSON.stringify(shadowings)
      if (text === this.#known) return
      this.#known = text
      this.#service.shadow(shadowings)
      this.#log.info({ shadowings }, 'which limits are shadow limits has changed')
    } catch (error) {
      this.#tell(false, error)
    }
  }

  close(): void {
    this.#stop()
  }

  /** Once for each time that it begins or ends. */
  #tell(isReading: boolean, error?: unknown): void {
    if (isReading === this.#isReading) return
    this.#isReading = isReading
    if (isReading) this.#log.info('which limits are shadow limits can be read again')
    else
      this.#log.warn(
        { reason: messageOf(error) },
        'which limits are shadow limits cannot be read: what is known stands',
      )
  }
}
