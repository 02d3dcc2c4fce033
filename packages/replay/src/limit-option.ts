// Parses --limit and --compare.

import { fixedWindow, type Limit, limitOf, SlidegateError, tokenBucket } from 'slidegate'
import { messageOf, UsageError } from './errors.ts'
import { printable } from './text.ts'

/** Parses a limit such as `100/1m`, or `login=100/1m` with a name. */
export function parseLimit(text: string): Limit {
  try {
    return limitOf(text)
  } catch (error) {
    if (!(error instanceof SlidegateError)) throw error
    throw new UsageError(`invalid --limit ${printable(text)}: ${printable(messageOf(error), 300)}`)
  }
}

/** The kinds of limits that --compare accepts, and their names in the report. */
export const COMPARED_WORDS = { fixed: 'fixed windows', bucket: 'token buckets' } as const
export type Compared = keyof typeof COMPARED_WORDS

/** Converts the limit to another kind. */
export function countedAs(kind: Compared, { name, limit, windowMs }: Limit): Limit {
  if (kind === 'fixed') return fixedWindow({ name, limit, window: windowMs })
  // An empty bucket is full again after one window.
  return tokenBucket({ name, capacity: limit, refill: limit, interval: windowMs })
}
