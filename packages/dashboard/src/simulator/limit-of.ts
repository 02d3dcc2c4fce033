import { fixedWindow, type Limit, slidingCounter, slidingWindow, tokenBucket } from 'slidegate'
import type { KindName } from './kinds.ts'

/** @throws {SlidegateError} where the kind cannot hold these numbers */
export function limitOf(kind: KindName, limit: number, windowMs: number): Limit {
  switch (kind) {
    case 'sliding':
      return slidingWindow({ limit, window: windowMs })
    case 'fixed':
      return fixedWindow({ limit, window: windowMs })
    case 'bucket':
      return tokenBucket({ capacity: limit, refill: limit, interval: windowMs })
    case 'counter':
      return slidingCounter({ limit, window: windowMs })
  }
}
