import { fixedWindow, type Limit, SlidegateError, slidingWindow } from 'slidegate'
import { messageOf, UsageError } from '../errors.ts'
import { printable } from '../text.ts'

const LIMIT = /^(?:([^=]+)=)?(\d{1,16})\/(\w+)$/

/** A limit as it is written on the command line: `100/1m`, or with a name `login=100/1m`. */
export function parseLimit(text: string): Limit {
  const match = LIMIT.exec(text)
  if (match === null)
    throw new UsageError(`--limit is "${printable(text)}"; write it like 100/1m or name=100/1m`)
  const [, name, limit, window] = match
  try {
    return slidingWindow({ limit: Number(limit), window: window!, name })
  } catch (error) {
    if (error instanceof SlidegateError)
      throw new UsageError(`--limit ${printable(text)}: ${messageOf(error)}`)
    throw error
  }
}

/** The same limit, counted in fixed windows. */
export function asFixedWindow({ name, limit, windowMs }: Limit): Limit {
  return fixedWindow({ name, limit, window: windowMs })
}
