import { SlidegateError, show } from '../errors.ts'
import { declarationOf, limitOf } from '../limits/declaration.ts'
import type { Limit } from '../limits/limit.ts'

// An override as it is stored: JSON, in which every time is told from the instant at which it was written. Of that the
// store tells how long ago it is, so that no clock of any process has a say in it.

/** Limits as JSON: as they are compared, and stored. */
export type LimitsText = string

export interface OverrideNote {
  /** As the user gave it. */
  readonly key: string
  readonly dimension: string | undefined
  readonly limits: LimitsText
  /** For so long they are in force; 0 for ever. */
  readonly ttlMs: number
}

/** A table is read as a whole: none of its notes may be too long. */
const MAX_TEXT = 8192

export function limitsText(limits: readonly Limit[]): LimitsText {
  return JSON.stringify(limits.map(declarationOf))
}

/**
 * @throws what {@link limitOf} does
 */
export function limitsOf(text: LimitsText): readonly Limit[] {
  return Object.freeze((JSON.parse(text) as unknown[]).map(limitOf))
}

/**
 * @throws {SlidegateError} `invalid_limit` for more than a note may hold
 */
export function textOf({ key, dimension, limits, ttlMs }: OverrideNote): string {
  const text = JSON.stringify({ key, dimension, limits: JSON.parse(limits), ttlMs })
  if (text.length <= MAX_TEXT) return text
  throw new SlidegateError(
    'invalid_limit',
    `the override of ${show(key)} takes ${text.length} characters; with its key it may take ${MAX_TEXT}`,
    key,
  )
}

/** Nothing where it is none: whoever wrote it, perhaps a later version, the declared limits are in force then. */
export function noteOf(text: string): OverrideNote | undefined {
  let told: unknown
  try {
    told = JSON.parse(text)
  } catch {
    return undefined
  }
  if (typeof told !== 'object' || told === null) return undefined
  const { key, dimension, limits, ttlMs } = told as Record<string, unknown>
  if (typeof key !== 'string' || typeof ttlMs !== 'number' || !(ttlMs >= 0)) return undefined
  if (dimension !== undefined && typeof dimension !== 'string') return undefined
  if (!Array.isArray(limits) || limits.length === 0) return undefined
  return { key, dimension, limits: JSON.stringify(limits), ttlMs }
}
