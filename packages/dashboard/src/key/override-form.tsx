// The form that overrides the limits of a key: other numbers, or an exemption.

import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import {
  declaredName,
  type ExplainedLimit,
  type Explanation,
  type LimitNumbers,
  type OneKey,
} from '../api-types.ts'
import { Confirm } from '../components/dialog.tsx'

const LABELS: Readonly<Record<Field, string>> = {
  limit: 'Limit',
  window: 'Window',
  capacity: 'Capacity',
  refill: 'Refill',
}

export function OverrideForm({
  whom,
  limits,
  isExempt: wasExempt,
  onSet,
  onClose,
}: {
  readonly whom: ComponentChildren
  readonly limits: readonly LimitDraft[]
  readonly isExempt: boolean
  readonly onSet: (change: object) => Promise<unknown>
  readonly onClose: () => void
}) {
  const [drafts, setDrafts] = useState(limits)
  const [isExempt, setExempt] = useState(wasExempt)
  const [ttl, setTtl] = useState('1h')
  const typed = limitsIn(drafts)
  const areRight = drafts.every(({ fields }) => fields.every(isRight))
  const isReady = (isExempt || (typed !== undefined && areRight)) && (ttl.trim() === '' || isSpan(ttl))
  const change = (place: number, field: Field, text: string): void => {
    setDrafts(
      drafts.map((draft, i) =>
        i === place
          ? {
              ...draft,
              fields: draft.fields.map((each) => (each.field === field ? { ...each, text } : each)),
            }
          : draft,
      ),
    )
  }
  return (
    <Confirm
      title="Override"
      action="Set the override"
      isReady={isReady}
      onConfirm={() =>
        onSet({
          ...(isExempt ? { exempt: true } : { limits: typed }),
          ...(ttl.trim() !== '' && { ttl: ttl.trim() }),
        })
      }
      onClose={onClose}
    >
      <p>
        Changes the limits of {whom} on all instances, from the next request. Its usage still counts. It
        replaces an earlier override.
      </p>
      <label class="choice">
        <input
          type="checkbox"
          checked={isExempt}
          onChange={(event) => setExempt(event.currentTarget.checked)}
        />
        Exempt: the limits only count
      </label>
      {!isExempt && (
        <ul class="drafts">
          {drafts.map((draft, i) => (
            <li key={draft.name}>
              <LimitFields draft={draft} onChange={(field, text) => change(i, field, text)} />
            </li>
          ))}
        </ul>
      )}
      <label>
        For
        <input
          type="text"
          value={ttl}
          onInput={(event) => setTtl(event.currentTarget.value)}
          aria-describedby="ttl-hint"
        />
        <span class="field-hint" id="ttl-hint">
          Such as 30m, 12h or 7d; empty: until it is deleted.
        </span>
      </label>
    </Confirm>
  )
}

function LimitFields({
  draft: { name, problem, fields },
  onChange,
}: {
  readonly draft: LimitDraft
  readonly onChange: (field: Field, text: string) => void
}) {
  return (
    <fieldset class="draft" disabled={problem !== undefined}>
      <legend class="mono">{name}</legend>
      {fields.map(({ field, declared, text }) => (
        <label key={field}>
          {LABELS[field]}
          <input
            type="text"
            inputMode={field === 'window' ? 'text' : 'numeric'}
            size={7}
            value={text}
            placeholder={declared}
            onInput={(event) => onChange(field, event.currentTarget.value)}
          />
        </label>
      ))}
      {problem !== undefined && <span class="field-hint">{problem}</span>}
    </fieldset>
  )
}

type Field = 'limit' | 'window' | 'capacity' | 'refill'

/** What is typed of one limit. An empty field keeps the declared number. */
interface LimitDraft {
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
  { limits, overrides }: Explanation,
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

function fieldsOf({ declared }: ExplainedLimit, numbers: LimitNumbers = {}): FieldDraft[] {
  const texts = { ...numbers, window: numbers.windowMs && spanText(numbers.windowMs) }
  return (FIELDS[declared?.kind ?? ''] ?? ['limit']).map((field) => ({
    field,
    declared: field === 'window' ? spanText(declared?.window) : String(declared?.[field] ?? ''),
    text: String(texts[field] ?? ''),
  }))
}

function isRight({ field, text }: FieldDraft): boolean {
  return text.trim() === '' || (field === 'window' ? isSpan(text) : /^[1-9][0-9]{0,14}$/.test(text.trim()))
}

/** What the API is told: numbers by name, or those of the only limit. Nothing if none is typed. */
function limitsIn(drafts: readonly LimitDraft[]): object | undefined {
  const numbers = drafts.flatMap(({ name, fields }) => {
    const typed = fields.filter(({ text }) => text.trim() !== '')
    const entries = typed.map(({ field, text }) => [field, field === 'window' ? text.trim() : Number(text)])
    return entries.length === 0 ? [] : [[name, Object.fromEntries(entries)] as const]
  })
  if (numbers.length === 0) return undefined
  return drafts.length === 1 ? numbers[0]![1] : Object.fromEntries(numbers)
}

/** A span as a configuration has it: `10m`, `1500ms`. Nothing where it is none. */
function spanText(span: unknown): string {
  if (typeof span !== 'number') return typeof span === 'string' ? span : ''
  const unit = UNITS.find(([, ms]) => span >= ms && span % ms === 0)
  return unit === undefined ? `${span}ms` : `${span / unit[1]}${unit[0]}`
}

export function isSpan(text: string): boolean {
  return /^[0-9]{1,15}(ms|s|m|h|d)$/.test(text.trim())
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
] as const
