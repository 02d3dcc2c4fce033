// Removes secrets from keys and errors before they are logged.

import { createHmac } from 'node:crypto'
import type { Logger } from 'pino'
import { SlidegateError, StoreUnavailableError } from 'slidegate'
import type { Config } from './config/schema.ts'
import { INSTANCE_SECRET } from './service/instance.ts'

const HASH_LENGTH = 16
const MOST_PLAIN = 256

/** Returns a key as it appears in the log. By default, that's a hash: equal keys look equal, but stay secret. */
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

/** Store errors with these values of `reason` have a message that contains the key. */
const NAMING: readonly string[] = ['invalid_state', 'full']

/**
 * An error for the log, with standard properties only.
 *
 * Other properties may contain callers' data, such as the commands that Redis clients attach. The message of a
 * `SlidegateError` is omitted, because it quotes the invalid value. The stack of a `StoreUnavailableError` is omitted,
 * because the error isn't a bug in the program.
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

/** A child logger that redacts errors. */
export function redacting(log: Logger): Logger {
  return log.child({}, { serializers: { err: (error) => redactError(error) } })
}
