// Keys and errors as they may be logged: without secrets.

import { createHmac } from 'node:crypto'
import type { Logger } from 'pino'
import { SlidegateError, StoreUnavailableError } from 'slidegate'
import type { Config } from './config/schema.ts'
import { INSTANCE_SECRET } from './service/instance.ts'

const HASH_LENGTH = 16
const MOST_PLAIN = 256

/** A key as it stands in a log: whoever reads one can tell which lines are about one key, but not whose it is. */
export function redactKey(key: unknown, { logging }: Config): string {
  const text = typeof key === 'string' ? key : (JSON.stringify(key) ?? '')
  if (logging?.keys === 'plain') return text.slice(0, MOST_PLAIN)
  return createHmac('sha256', INSTANCE_SECRET).update(text).digest('base64url').slice(0, HASH_LENGTH)
}

interface RedactedError {
  readonly type: string
  readonly code?: string | undefined
  readonly message?: string
  readonly stack?: string | undefined
  readonly cause?: RedactedError
}

const MOST_CAUSES = 4

/** Why a store gave no answer for a key: the message says which. */
const NAMING: readonly string[] = ['invalid_state', 'full']

/**
 * An error as it stands in a log: nothing but what all errors have, since others may bear what a caller has sent, as the
 * commands of Redis clients do. The message of a `SlidegateError` shows what was wrong with it, so it is left out. So is
 * the stack of a `StoreUnavailableError`: the program isn't at fault.
 */
export function redactError(error: unknown, causes = MOST_CAUSES, hasStack = true): RedactedError {
  if (!(error instanceof Error)) return { type: typeof error }
  const { code } = error as { code?: unknown }
  const named = { type: error.name, ...(typeof code === 'string' && { code }) }
  if (error instanceof SlidegateError) return named
  const { message, stack, cause } = error
  const isOutage = error instanceof StoreUnavailableError
  if (isOutage && NAMING.includes(error.reason)) return { ...named, code: `store_${error.reason}` }
  const withStack = hasStack && !isOutage
  return {
    ...named,
    message,
    ...(withStack && { stack }),
    ...(cause !== undefined && causes > 0 && { cause: redactError(cause, causes - 1, withStack) }),
  }
}

/** The same log, in which no error tells more than it should. */
export function redacting(log: Logger): Logger {
  return log.child({}, { serializers: { err: (error) => redactError(error) } })
}
