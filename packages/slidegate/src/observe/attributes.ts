/** The limiter's name. */
export const POLICY = 'slidegate.rate_limiting.policy'

/** Whether a request was admitted: `acquired` or `denied`. */
export const RESULT = 'slidegate.rate_limiting.result'

/** A limit's name. */
export const LIMIT = 'slidegate.limit'

/** Who has decided. */
export const SOURCE = 'slidegate.source'

/** Why something has failed: of few possible words. */
export const ERROR_TYPE = 'error.type'

export function resultOf(allowed: boolean): 'acquired' | 'denied' {
  return allowed ? 'acquired' : 'denied'
}
