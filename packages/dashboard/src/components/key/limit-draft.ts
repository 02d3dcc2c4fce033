import type { NumbersTold } from '../../told.ts'
import { declaredName, type Explained, type LimitExplained, type OneKey } from './explained.ts'
import { isSpan, spanText } from './span-text.ts'

export type Field = 'limit' | 'window' | 'capacity' | 'refill'

/** What is typed of one limit. An empty field keeps the declared number. */
export interface LimitDraft {
  readonly name: string
  /** Why it cannot be changed. */
  readonly problem: string | undefined
  readonly fields: readonly FieldDraft[]
}

interface FieldDraft {
  readonly field: Field
  readonly declared: string
  readonly text: string
}

const FIELDS: Readonly<Record<string, readonly Field[]>> = {
  slidingWindow: ['limit', 'window'],
  tokenBucket: ['capacity', 'refill'],
}

/** @param names that the configuration gives to limits: default names hold their numbers, so an override cannot use them */
export function draftsOf(
  of: OneKey,
  { limits, overrides }: Explained,
  names: ReadonlySet<string>,
): LimitDraft[] {
  const isOnly = limits.length === 1
  const set = overrides[0]?.limits ?? {}
  return limits.map((limit) => {
    const name = declaredName(of, limit)
    const problem =
      isOnly || names.has(name) ? undefined : 'To change it, give it a name in the configuration.'
    const numbers = set[name] ?? (isOnly ? set[''] : undefined)
    return { name, problem, fields: fieldsOf(limit, numbers) }
  })
}

function fieldsOf({ declared }: LimitExplained, numbers: NumbersTold = {}): FieldDraft[] {
  const texts = { ...numbers, window: numbers.windowMs && spanText(numbers.windowMs) }
  return (FIELDS[declared?.kind ?? ''] ?? ['limit']).map((field) => ({
    field,
    declared: field === 'window' ? spanText(declared?.window) : String(declared?.[field] ?? ''),
    text: String(texts[field] ?? ''),
  }))
}

export function isRight({ field, text }: FieldDraft): boolean {
  return text.trim() === '' || (field === 'window' ? isSpan(text) : /^[1-9][0-9]{0,14}$/.test(text.trim()))
}

/** What the API is told: numbers by name, or those of the only limit. Nothing if none is typed. */
export function limitsIn(drafts: readonly LimitDraft[]): object | undefined {
  const numbers = drafts.flatMap(({ name, fields }) => {
    const typed = fields.filter(({ text }) => text.trim() !== '')
    const entries = typed.map(({ field, text }) => [field, field === 'window' ? text.trim() : Number(text)])
    return entries.length === 0 ? [] : [[name, Object.fromEntries(entries)] as const]
  })
  if (numbers.length === 0) return undefined
  return drafts.length === 1 ? numbers[0]![1] : Object.fromEntries(numbers)
}
