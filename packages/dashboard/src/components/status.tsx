import type { ComponentChildren } from 'preact'
import { ApiError } from '../api.ts'
import type { Asked } from '../use-ask.ts'

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
export function Problem({ error, again }: { readonly error: Error; readonly again?: () => void }) {
  return (
    <Notice tone="bad">
      <p>{sentenceOf(error)}</p>
      {again !== undefined && (
        <button type="button" onClick={again}>
          Ask again
        </button>
      )}
    </Notice>
  )
}

/** What was asked, once it is there: `children` is given the answer. Until then that it is on its way, or why it is not. */
export function Answered<Answer>({
  asked,
  children,
}: {
  readonly asked: Asked<Answer>
  readonly children: (answer: Answer) => ComponentChildren
}) {
  const { data, error, again } = asked
  if (data === undefined) {
    return error === undefined ? <p class="muted">Loading…</p> : <Problem error={error} again={again} />
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
