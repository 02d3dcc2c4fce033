// The attributes of metrics and spans, and the bounds of the utilization histogram.
/** The limiter's name. */
export const POLICY = 'slidegate.rate_limiting.policy'

/** Whether a request was admitted: `acquired` or `denied`. */
export const RESULT = 'slidegate.rate_limiting.result'

export const LIMIT = 'slidegate.limit'

export const SOURCE = 'slidegate.source'

/** The reason for a failure, from a fixed set of words. */
export const ERROR_TYPE = 'error.type'

/** Histogram bounds for the share of a limit in use. */
export const UTILIZATION: readonly number[] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1]

export function resultOf(allowed: boolean): 'acquired' | 'denied' {
  return allowed ? 'acquired' : 'denied'
}
