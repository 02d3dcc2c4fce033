import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { Confirm } from '../dialog.tsx'
import { type Field, isRight, type LimitDraft, limitsIn } from './limit-draft.ts'
import { isSpan } from './span-text.ts'

const LABELS: Readonly<Record<Field, string>> = {
  limit: 'Limit',
  window: 'Window',
  capacity: 'Capacity',
  refill: 'Refill',
}

/** Other numbers for the limits of a key, or an exemption from them. */
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
