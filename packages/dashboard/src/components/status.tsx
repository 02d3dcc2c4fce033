// Badges, notices, errors and loading states.

import type { ComponentChildren } from 'preact'
import { ApiError } from '../api.ts'
import type { AuditEntry } from '../api-types.ts'
import type { Query } from '../use-query.ts'

export type Tone = 'plain' | 'good' | 'warn' | 'bad'

/** A short label that can be understood without its color. */
export function Badge({
  tone = 'plain',
  children,
}: {
  readonly tone?: Tone
  readonly children: ComponentChildren
}) {
  return <span class={`badge ${tone}`}>{children}</span>
}

/** A message. Screen readers immediately announce a `bad` message. */
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

/** Shows why a request failed. If `reload` is given, shows a button to retry. */
export function Problem({ error, reload }: { readonly error: Error; readonly reload?: () => void }) {
  return (
    <Notice tone="bad">
      <p>{sentenceOf(error)}</p>
      {reload !== undefined && (
        <button type="button" onClick={reload}>
          Retry
        </button>
      )}
    </Notice>
  )
}

/** Renders a query's data, or its loading or error state. */
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
      {error !== undefined && <p class="muted">This may be out of date. {sentenceOf(error)}</p>}
      {children(data)}
    </>
  )
}

export function sentenceOf(error: Error): string {
  if (error instanceof ApiError) return `The service responded: ${error.message}.`
  return 'The service is unreachable.'
}

const TONES = { done: 'good', failed: 'bad', unknown: 'warn' } as const

/** The result of a change. */
export function AuditResult({ result, error }: Pick<AuditEntry, 'result' | 'error'>) {
  return (
    <>
      <Badge tone={TONES[result]}>{result}</Badge>
      {error !== undefined && ` ${error}`}
    </>
  )
}
