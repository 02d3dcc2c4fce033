// Parses --limit and --compare.

import { type Duration, fixedWindow, type Limit, SlidegateError, slidingWindow, tokenBucket } from 'slidegate'
import { messageOf, UsageError } from './errors.ts'
import { printable } from './text.ts'

const LIMIT = /^(?:([^=]+)=)?(\d{1,16})\/(\w+)$/

/** Parses a limit: `100/1m`, or with a name `login=100/1m`. */
export function parseLimit(text: string): Limit {
  const match = LIMIT.exec(text)
  if (match === null)
    throw new UsageError(`invalid --limit "${printable(text)}"; write it like 100/1m or name=100/1m`)
  const [, name, limit, window] = match
  try {
    return slidingWindow({ limit: Number(limit), window: window as Duration, name })
  } catch (error) {
    if (error instanceof SlidegateError)
      throw new UsageError(`--limit ${printable(text)}: ${messageOf(error)}`)
    throw error
  }
}

/** Names of the kinds of limits to compare with. */
export const COMPARED_WORDS = { fixed: 'fixed windows', bucket: 'token buckets' } as const
export type Compared = keyof typeof COMPARED_WORDS

/** Converts the limit to another kind. */
export function countedAs(kind: Compared, { name, limit, windowMs }: Limit): Limit {
  if (kind === 'fixed') return fixedWindow({ name, limit, window: windowMs })
  // Refills completely within a window.
  return tokenBucket({ name, capacity: limit, refill: limit, interval: windowMs })
}
