import type { ComponentChildren } from 'preact'

/** Big numbers beside each other. */
export function Stats({ label, children }: { readonly label: string; readonly children: ComponentChildren }) {
  return (
    <dl class="stats" aria-label={label}>
      {children}
    </dl>
  )
}

export function Stat({
  name,
  value,
  note,
  tone,
}: {
  readonly name: string
  readonly value: string
  /** Something small behind it. */
  readonly note?: string | undefined
  readonly tone?: 'denied' | 'shadow-denied' | 'allowed' | undefined
}) {
  return (
    <div>
      <dt>{name}</dt>
      <dd class={tone}>
        {value}
        {note !== undefined && <small> {note}</small>}
      </dd>
    </div>
  )
}
