// Large figures, and bars that show shares.

import type { ComponentChildren } from 'preact'

/** A row of large figures. */
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
  tone,
}: {
  readonly name: string
  readonly value: string
  readonly tone?: 'denied' | 'shadow-denied' | undefined
}) {
  return (
    <div>
      <dt>{name}</dt>
      <dd class={tone}>{value}</dd>
    </div>
  )
}

/** A bar that shows how much of a limit is used. The share may be above 1. */
export function UsageMeter({ share, label }: { readonly share: number; readonly label: string }) {
  return (
    <meter min={0} max={1} low={0.8} high={0.999} optimum={0} value={Math.min(1, share)} aria-label={label} />
  )
}
