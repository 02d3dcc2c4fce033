// The form for a key's override: other numbers, or an exemption.

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
import { durationProblem, numberProblem, Field as TextField } from '../components/field.tsx'
import { blockInWords } from '../format.ts'

const LABELS: Readonly<Record<Field, string>> = {
  limit: 'Limit',
  window: 'Window',
  capacity: 'Capacity',
  refill: 'Refill',
}

const listed = new Intl.ListFormat('en')

export function OverrideForm({
  whom,
  limits,
  blockedMs,
  isExempt: wasExempt,
  onSet,
  onClose,
}: {
  readonly whom: ComponentChildren
  readonly limits: readonly LimitDraft[]
  /** 0 if the key isn't blocked. */
  readonly blockedMs: number | null
  readonly isExempt: boolean
  readonly onSet: (change: object) => Promise<unknown>
  readonly onClose: () => void
}) {
  const [drafts, setDrafts] = useState(limits)
  const [isExempt, setExempt] = useState(wasExempt)
  const [ttl, setTtl] = useState('1h')
  const typed = limitsIn(drafts)
  const wrong = [
    ...(isExempt ? [] : drafts.flatMap(({ name, fields }) => wrongIn(name, fields))),
    ...(durationProblem(ttl) === undefined ? [] : ['the duration']),
  ]
  const missing =
    wrong.length > 0
      ? `Correct ${listed.format(wrong)} to set the override.`
      : isExempt || typed !== undefined
        ? undefined
        : 'Enter a number for at least one limit, or check Exempt.'
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
      action="Set override"
      missing={missing}
      onConfirm={(reason) =>
        onSet({
          ...reason,
          ...(isExempt ? { exempt: true } : { limits: typed }),
          ...(ttl.trim() !== '' && { ttl: ttl.trim() }),
        })
      }
      onClose={onClose}
    >
      <p>
        Changes the limits for {whom} on all instances, from now on. Its usage still counts. An earlier
        override is replaced.
      </p>
      {blockedMs !== 0 && (
        <p class="notice warn">
          The key is {blockInWords(blockedMs)}, even with an override. Unblock it to admit its requests.
        </p>
      )}
      <label class="choice">
        <input
          type="checkbox"
          checked={isExempt}
          onChange={(event) => setExempt(event.currentTarget.checked)}
        />
        Exempt: limits count but never deny
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
      <TextField
        label="Duration"
        value={ttl}
        onInput={setTtl}
        problem={durationProblem(ttl)}
        hint="Such as 30m, 12h or 7d. If empty, the override lasts until you delete it."
      />
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
      {fields.map((each) => (
        <TextField
          key={each.field}
          label={LABELS[each.field]}
          value={each.text}
          onInput={(text) => onChange(each.field, text)}
          problem={problemOf(each)}
          size={7}
          placeholder={each.declared}
          isNumber={each.field !== 'window'}
        />
      ))}
      {problem !== undefined && <span class="field-hint">{problem}</span>}
    </fieldset>
  )
}

type Field = 'limit' | 'window' | 'capacity' | 'refill'

/** The input for one limit. An empty field keeps the declared number. */
interface LimitDraft {
  readonly name: string
  /** Why the limit can't be changed. */
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

/**
 * @param names the limit names in the configuration. Overrides can't use default names, which
 * contain the limit's numbers
 */
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
      isOnly || names.has(name)
        ? undefined
        : 'To change this limit here, give it a name in the configuration.'
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

function problemOf({ field, text }: FieldDraft): string | undefined {
  return field === 'window' ? durationProblem(text) : numberProblem(text)
}

/** A limit's invalid fields, in words: `the window of hourly`. */
function wrongIn(name: string, fields: readonly FieldDraft[]): string[] {
  return fields
    .filter((each) => problemOf(each) !== undefined)
    .map(({ field }) => `the ${LABELS[field].toLowerCase()} of ${name}`)
}

/**
 * The numbers for the API, by limit name. The name is omitted if there is only one limit. Undefined if all
 * fields are empty.
 */
function limitsIn(drafts: readonly LimitDraft[]): object | undefined {
  const numbers = drafts.flatMap(({ name, fields }) => {
    const typed = fields.filter(({ text }) => text.trim() !== '')
    const entries = typed.map(({ field, text }) => [field, field === 'window' ? text.trim() : Number(text)])
    return entries.length === 0 ? [] : [[name, Object.fromEntries(entries)] as const]
  })
  if (numbers.length === 0) return undefined
  return drafts.length === 1 ? numbers[0]![1] : Object.fromEntries(numbers)
}

/** A duration, as written in a configuration: `10m`, `1500ms`. Empty if it isn't a duration. */
function spanText(span: unknown): string {
  if (typeof span !== 'number') return typeof span === 'string' ? span : ''
  const unit = UNITS.find(([, ms]) => span >= ms && span % ms === 0)
  return unit === undefined ? `${span}ms` : `${span / unit[1]}${unit[0]}`
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
] as const
