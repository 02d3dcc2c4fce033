import type { Decision } from '../../decision.ts'
import { isBranded, type WaitErrorReason } from '../../errors.ts'

// Registered, so that two copies of the package in one process recognise each other's errors.
const waitError = Symbol.for('slidegate.WaitError')

/** A request was not admitted in the end, and nothing was charged for it. */
export class WaitError extends Error {
  override readonly name = 'WaitError'
  readonly code = 'wait_rejected'
  readonly reason: WaitErrorReason
  /**
   * The last denial of a request of the same key that waited in this process, where there was one. Its times are from
   * its `atMs` on.
   */
  readonly decision: Decision | undefined

  constructor(reason: WaitErrorReason, message: string, decision?: Decision, options?: ErrorOptions) {
    super(message, options)
    this.reason = reason
    this.decision = decision
    Object.defineProperty(this, waitError, { value: true })
  }

  static override [Symbol.hasInstance](candidate: unknown): boolean {
    return isBranded(candidate, waitError)
  }
}
