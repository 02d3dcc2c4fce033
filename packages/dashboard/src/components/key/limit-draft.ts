import type { LimitTold } from '../../told.ts'
import { isSpan, spanText } from './span-text.ts'

/** What can be typed of each kind of limit, as fields of a form. */
export interface LimitDraft {
  /** What it was made from: options that the form does not show stay as they were. */
  readonly from: LimitTold | undefined
  readonly kind: string
  readonly units: string
  readonly span: string
  /** Only of buckets. */
  readonly refill: string
}

interface Words {
  readonly label: string
  readonly units: string
  readonly span: string
  readonly refill?: string
}

/** Of each kind the option that has its units, and the one that has its time. */
const OPTIONS: Readonly<Record<string, { readonly units: string; readonly span: string }>> = {
  slidingWindow: { units: 'limit', span: 'window' },
  fixedWindow: { units: 'limit', span: 'window' },
  calendarWindow: { units: 'limit', span: 'window' },
  slidingCounter: { units: 'limit', span: 'window' },
  tokenBucket: { units: 'capacity', span: 'interval' },
  concurrency: { units: 'limit', span: 'ttl' },
  distinct: { units: 'limit', span: 'window' },
}

export const KINDS: Readonly<Record<string, Words>> = {
  slidingWindow: { label: 'Sliding window', units: 'Limit', span: 'In any' },
  fixedWindow: { label: 'Fixed window', units: 'Limit', span: 'Per' },
  calendarWindow: { label: 'Calendar window', units: 'Limit', span: 'Per' },
  slidingCounter: { label: 'Sliding counter', units: 'Limit', span: 'In about' },
  tokenBucket: { label: 'Token bucket', units: 'Capacity', span: 'Each', refill: 'Back' },
  concurrency: { label: 'At the same time', units: 'Limit', span: 'Held at most' },
  distinct: { label: 'Different values', units: 'Limit', span: 'In any' },
}

export const NEW_DRAFT: LimitDraft = {
  from: undefined,
  kind: 'slidingWindow',
  units: '100',
  span: '1m',
  refill: '1',
}

/** Windows of a calendar have no length: their span is not shown. */
export function isCalendar({ kind }: LimitDraft): boolean {
  return kind === 'calendarWindow'
}

/** The kinds to choose from. The form has no field for the unit of a calendar, so it only keeps one. */
export function kindsFor({ from }: LimitDraft): readonly (readonly [kind: string, label: string])[] {
  return Object.entries(KINDS)
    .filter(([kind]) => kind !== 'calendarWindow' || from?.kind === kind)
    .map(([kind, { label }]) => [kind, label])
}

export function draftOf(limit: LimitTold): LimitDraft {
  const { units = 'limit', span = 'window' } = OPTIONS[limit.kind] ?? {}
  return {
    from: limit,
    kind: limit.kind,
    units: String(limit[units] ?? ''),
    span: spanText(limit[span]),
    refill: String(limit.refill ?? '1'),
  }
}

/** The limit that was typed; nothing while it is none. What is wrong with its numbers the service says better. */
export function limitIn(draft: LimitDraft): LimitTold | undefined {
  const { from, kind, units, span, refill } = draft
  const options = OPTIONS[kind]
  const isWhole = (text: string) => /^[1-9][0-9]{0,14}$/.test(text.trim())
  const hasSpan = isCalendar(draft) || isSpan(span)
  if (options === undefined || !isWhole(units) || !hasSpan || (kind === 'tokenBucket' && !isWhole(refill))) {
    return undefined
  }
  const same = from !== undefined && from.kind === kind
  const typed = {
    [options.units]: Number(units),
    ...(!isCalendar(draft) && { [options.span]: span.trim() }),
    ...(kind === 'tokenBucket' && { refill: Number(refill) }),
  }
  if (!same) return { kind, ...typed }
  const { dimension, ...kept } = from
  const { name, ...nameless } = kept
  const isAsBefore = JSON.stringify(draftOf(from)) === JSON.stringify(draft)
  if (isAsBefore) return kept
  // A name that tells the numbers would tell the old ones; so would a precision that was chosen for the old window.
  const { precision, ...rest } = nameless
  const isSameSpan = spanText(from[options.span]) === span.trim()
  const isOwnName = name !== undefined && !/^[0-9]+-per-/.test(name)
  return {
    ...rest,
    ...(isSameSpan && precision !== undefined && { precision }),
    ...(isOwnName && { name }),
    ...typed,
  }
}
