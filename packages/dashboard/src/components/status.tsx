// Badges, notices, errors and loading states.

import type { ComponentChildren } from 'preact'
import { ApiError } from '../api.ts'
import type { AuditEntry } from '../api-types.ts'
import type { Query } from '../use-query.ts'

export type Tone = 'plain' | 'good' | 'warn' | 'bad'

/** A word or two with a colour. The words say all of it. */
export function Badge({
  tone = 'plain',
  children,
}: {
  readonly tone?: Tone
  readonly children: ComponentChildren
}) {
  return <span class={`badge ${tone}`}>{children}</span>
}

/** A sentence or more that should be seen. `bad` is told to screen readers at once. */
export function Notice({
  tone = 'plain',
  children,
}: {
  readonly tone?: Tone
  readonly children: ComponentChildren
}) {
  return (
    <div class={`notice ${tone}`} role={tone === 'bad' ? 'alert' : undefined}>
      {children}
    </div>
  )
}

/** That something was not to be had, and why; perhaps with a button to ask again. */
export function Problem({ error, reload }: { readonly error: Error; readonly reload?: () => void }) {
  return (
    <Notice tone="bad">
      <p>{sentenceOf(error)}</p>
      {reload !== undefined && (
        <button type="button" onClick={reload}>
          Ask again
        </button>
      )}
    </Notice>
  )
}

/** What was asked, once it is there: `children` is given the answer. Until then that it is on its way, or why it is not. */
export function Loaded<Answer>({
  query,
  children,
}: {
  readonly query: Query<Answer>
  readonly children: (answer: Answer) => ComponentChildren
}) {
  const { data, error, reload } = query
  if (data === undefined) {
    return error === undefined ? <p class="muted">Loading…</p> : <Problem error={error} reload={reload} />
  }
  return (
    <>
      {error !== undefined && <p class="muted">This is what was known last: {sentenceOf(error)}</p>}
      {children(data)}
    </>
  )
}

/** An error in words for people. */
export function sentenceOf(error: Error): string {
  if (error instanceof ApiError) return `The service says: ${error.message}.`
  return 'The service cannot be reached.'
}

const TONES = { done: 'good', failed: 'bad', unknown: 'warn' } as const

/** How a change has ended. */
export function AuditResult({ result, error }: Pick<AuditEntry, 'result' | 'error'>) {
  return (
    <>
      <Badge tone={TONES[result]}>{result === 'unknown' ? 'not known' : result}</Badge>
      {error !== undefined && ` ${error}`}
    </>
  )
}
