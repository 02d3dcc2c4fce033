import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { LimitTold } from '../../told.ts'
import { Confirm } from '../dialog.tsx'
import { Badge } from '../status.tsx'
import { draftOf, isCalendar, KINDS, kindsFor, type LimitDraft, limitIn, NEW_DRAFT } from './limit-draft.ts'
import { isSpan } from './span-text.ts'

/** Limits in place of the usual ones, all of them; for a time, or until they are deleted. */
export function OverrideForm({
  who,
  limits,
  onSet,
  onClose,
}: {
  /** Whom it is for. */
  readonly who: ComponentChildren
  /** Those that are in force. */
  readonly limits: readonly LimitTold[]
  readonly onSet: (limits: readonly LimitTold[], ttl: string | undefined) => Promise<unknown>
  readonly onClose: () => void
}) {
  const [drafts, setDrafts] = useState<readonly LimitDraft[]>(() => limits.map(draftOf))
  const [ttl, setTtl] = useState('1h')
  const typed = drafts.map(limitIn)
  const isReady = typed.length > 0 && !typed.includes(undefined) && (ttl.trim() === '' || isSpan(ttl))
  const change = (place: number, changed: Partial<LimitDraft>): void => {
    setDrafts(drafts.map((draft, i) => (i === place ? { ...draft, ...changed } : draft)))
  }
  return (
    <Confirm
      title="Limits of its own"
      action="Set the override"
      isReady={isReady}
      onConfirm={() => onSet(typed as readonly LimitTold[], ttl.trim() === '' ? undefined : ttl.trim())}
      onClose={onClose}
    >
      <p>
        {who} is held to these limits <strong>in place of all its usual ones</strong>, on all instances. What
        it has used still counts if only numbers change.
      </p>
      <ul class="drafts">
        {drafts.map((draft, i) => (
          <li key={i}>
            <LimitFields draft={draft} number={i + 1} onChange={(changed) => change(i, changed)} />
            {draft.from?.shadow === true && <Badge tone="warn">shadow</Badge>}
            {drafts.length > 1 && (
              <button
                type="button"
                class="small"
                aria-label={`Leave out limit ${i + 1}`}
                onClick={() => setDrafts(drafts.filter((_, other) => other !== i))}
              >
                Leave out
              </button>
            )}
          </li>
        ))}
      </ul>
      <div>
        <button type="button" class="small" onClick={() => setDrafts([...drafts, NEW_DRAFT])}>
          Add a limit
        </button>
      </div>
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
  draft,
  number,
  onChange,
}: {
  readonly draft: LimitDraft
  readonly number: number
  readonly onChange: (changed: Partial<LimitDraft>) => void
}) {
  const words = KINDS[draft.kind] ?? KINDS.slidingWindow!
  return (
    <fieldset class="draft">
      <legend class="hidden">Limit {number}</legend>
      <label>
        Kind
        <select value={draft.kind} onChange={(event) => onChange({ kind: event.currentTarget.value })}>
          {kindsFor(draft).map(([kind, label]) => (
            <option key={kind} value={kind}>
              {label}
            </option>
          ))}
        </select>
      </label>
      <label>
        {words.units}
        <input
          type="text"
          inputMode="numeric"
          size={7}
          value={draft.units}
          onInput={(event) => onChange({ units: event.currentTarget.value })}
        />
      </label>
      {words.refill !== undefined && (
        <label>
          {words.refill}
          <input
            type="text"
            inputMode="numeric"
            size={7}
            value={draft.refill}
            onInput={(event) => onChange({ refill: event.currentTarget.value })}
          />
        </label>
      )}
      {!isCalendar(draft) && (
        <label>
          {words.span}
          <input
            type="text"
            size={7}
            value={draft.span}
            onInput={(event) => onChange({ span: event.currentTarget.value })}
          />
        </label>
      )}
    </fieldset>
  )
}
