import { SlidegateError, show } from '../errors.ts'
import { declarationOf, limitOf } from '../limits/declaration.ts'
import type { Limit } from '../limits/limit.ts'
import { limitSet } from '../limits/limit-set.ts'

// An override as it is stored: JSON, in which every time is told from the instant at which it was written. Of that the
// store tells how long ago it is, so that no clock of any process has a say in it.

/** Limits as JSON: as they are compared, and stored. */
export type LimitsText = string

/** Limits that were in force before: what was charged to them may still count for so long after the note was written. */
interface Former {
  readonly limits: LimitsText
  readonly leftMs: number
}

export interface OverrideNote {
  /** As the user gave it. */
  readonly key: string
  readonly dimension: string | undefined
  /** Nothing where the declared limits are in force again. */
  readonly limits: LimitsText | undefined
  /** For so long they are in force; 0 for ever. */
  readonly ttlMs: number
  /** For so long after that what was charged to them may still count. */
  readonly keptMs: number
  /** The last one first, each of other logs. */
  readonly before: readonly Former[]
}

/** What a note says at some time. */
export interface OverrideState {
  readonly limits: LimitsText | undefined
  readonly formerly: readonly LimitsText[]
  /** When that changes; `Infinity` for never. */
  readonly changesAtMs: number
}

/** Sets of former limits, each of other logs, that may still count when a key is given others. */
const MAX_FORMER = 8

/** Who holds on to what he has acquired renews it where it was charged, perhaps for ever: for so long it is looked for. */
const HELD_MS = 30 * 86_400_000

/** A table is read as a whole: none of its notes may be too long. */
const MAX_TEXT = 8192

export function stateOf(note: OverrideNote, writtenAtMs: number, nowMs: number): OverrideState {
  const times: number[] = []
  const isBefore = (ms: number): boolean => {
    const atMs = writtenAtMs + ms
    if (nowMs < atMs) times.push(atMs)
    return nowMs < atMs
  }
  const { limits, ttlMs, keptMs, before } = note
  const isInForce = limits !== undefined && (ttlMs === 0 || isBefore(ttlMs))
  const formerly = before.filter(({ leftMs }) => isBefore(leftMs)).map((former) => former.limits)
  if (limits !== undefined && !isInForce && isBefore(ttlMs + keptMs)) formerly.unshift(limits)
  return {
    limits: isInForce ? limits : undefined,
    formerly,
    changesAtMs: Math.min(...times, Number.POSITIVE_INFINITY),
  }
}

/** What follows a note, or none: the same key with other limits, or with the declared ones again. */
export interface Change {
  readonly key: string
  readonly dimension: string | undefined
  readonly limits: readonly Limit[] | undefined
  readonly ttlMs: number
  readonly declared: readonly Limit[]
  /** For so long processes may not have heard of it yet, and charge what was in force before. */
  readonly staleMs: number
}

/**
 * @throws {SlidegateError} `invalid_limit` where limits are to be set, and those of too many logs may still count
 */
export function noteAfter(
  last: { readonly note: OverrideNote; readonly writtenAtMs: number } | undefined,
  nowMs: number,
  { key, dimension, limits, ttlMs, declared, staleMs }: Change,
): OverrideNote {
  const declaredText = declared.length > 0 ? limitsText(declared) : undefined
  const text = limits && limitsText(limits)
  const before = new FormerLimits(text ?? declaredText, keptMs(limits ?? declared) + staleMs)
  const inForce = last && stateOf(last.note, last.writtenAtMs, nowMs).limits
  if (inForce !== undefined) before.remember(inForce, last!.note.keptMs)
  else if (declaredText !== undefined) before.remember(declaredText, keptMs(declared) + staleMs)
  if (last !== undefined) {
    const { note, writtenAtMs } = last
    const ageMs = nowMs - writtenAtMs
    if (note.limits !== undefined) before.remember(note.limits, note.ttlMs + note.keptMs - ageMs)
    for (const former of note.before) before.remember(former.limits, former.leftMs - ageMs)
  }
  if (text !== undefined) before.check(key)
  return {
    key,
    dimension,
    limits: text,
    ttlMs,
    keptMs: limits === undefined ? 0 : keptMs(limits) + staleMs,
    before: before.all(),
  }
}

/** Of all limits that charge the same logs the one set that counts longest: it tells what all of them would. */
class FormerLimits {
  readonly #byLogs = new Map<string, Former>()
  readonly #logs: string | undefined
  readonly #keptMs: number

  /** With what is in force from now on, and for how long that will still count when it is no more. */
  constructor(inForce: LimitsText | undefined, keptMs: number) {
    this.#logs = inForce && logsOf(inForce)
    this.#keptMs = keptMs
  }

  remember(limits: LimitsText, leftMs: number): void {
    const logs = logsOf(limits)
    // Shadow limits alone leave nothing behind, and those that are in force speak for others of their logs.
    if (leftMs <= 0 || logs === '' || (logs === this.#logs && leftMs <= this.#keptMs)) return
    const known = this.#byLogs.get(logs)
    if (known === undefined || known.leftMs < leftMs) {
      this.#byLogs.set(logs, { limits, leftMs: Math.ceil(leftMs) })
    }
  }

  all(): readonly Former[] {
    return Array.from(this.#byLogs.values())
  }

  /** One that was forgotten could let in what it has counted once more. */
  check(key: string): void {
    const others = Array.from(this.#byLogs).filter(([logs]) => logs !== this.#logs)
    if (others.length <= MAX_FORMER) return
    const nextMs = Math.min(...others.map(([, { leftMs }]) => leftMs))
    throw new SlidegateError(
      'invalid_limit',
      `${show(key)} was held to limits of ${others.length} other kinds, windows or precisions that may still count; ` +
        `it may be ${MAX_FORMER}: wait ${nextMs} ms, or set limits that differ from those in force only in their numbers`,
      key,
    )
  }
}

/** What tells the logs that limits charge from those of others: of these, all tell the same. */
function logsOf(text: LimitsText): string {
  try {
    const logs = limitSet('formerly', limitsOf(text)).logs.filter(({ shadow }) => !shadow)
    return logs
      .map(({ name }) => name)
      .toSorted()
      .join(' ')
  } catch {
    // Of a later version, perhaps: who knows them knows their logs.
    return text
  }
}

/** For how long a note is of use; 0 for ever, nothing where it is of none. */
export function lifetimeOf({ limits, ttlMs, keptMs, before }: OverrideNote): number | undefined {
  if (limits !== undefined && ttlMs === 0) return 0
  const times = before.map(({ leftMs }) => leftMs)
  if (limits !== undefined) times.push(ttlMs + keptMs)
  return times.length === 0 ? undefined : Math.max(...times)
}

/** For how long at most a charge to such limits counts. */
function keptMs(limits: readonly Limit[]): number {
  const times = limits.map(({ kind, windowMs, precisionMs }) => {
    if (kind.entries?.are === 'holder') return Math.max(HELD_MS, 2 * windowMs)
    // Two numbers tell of two windows, and what was charged without asking may leave a bucket in debt.
    return kind.keepsTimes ? windowMs + precisionMs : 2 * windowMs
  })
  return Math.max(0, ...times)
}

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
export function textOf(note: OverrideNote): string {
  const { key, dimension, limits, ttlMs, keptMs, before } = note
  const formers = before.map((former) => ({ limits: JSON.parse(former.limits), leftMs: former.leftMs }))
  const declarations = limits === undefined ? null : JSON.parse(limits)
  const text = JSON.stringify({ key, dimension, limits: declarations, ttlMs, keptMs, before: formers })
  // A deletion brings nothing that was not there, and is never refused.
  if (text.length <= MAX_TEXT || limits === undefined) return text
  const besides = before.length > 0 ? 'its key, and limits of before that may still count,' : 'its key'
  throw new SlidegateError(
    'invalid_limit',
    `the override of ${show(key)} takes ${text.length} characters; with ${besides} it may take ${MAX_TEXT}`,
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
  const { key, dimension, limits, ttlMs, keptMs, before } = told as Record<string, unknown>
  if (typeof key !== 'string' || !isMs(ttlMs) || !isMs(keptMs) || !Array.isArray(before)) return undefined
  if (dimension !== undefined && typeof dimension !== 'string') return undefined
  if (limits !== null && !isFilled(limits)) return undefined
  if (!before.every((former) => isFilled(former?.limits) && isMs(former.leftMs))) return undefined
  return {
    key,
    dimension,
    limits: limits === null ? undefined : JSON.stringify(limits),
    ttlMs,
    keptMs,
    before: before.map((former) => ({ limits: JSON.stringify(former.limits), leftMs: former.leftMs })),
  }
}

function isFilled(list: unknown): list is unknown[] {
  return Array.isArray(list) && list.length > 0
}

function isMs(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0
}
