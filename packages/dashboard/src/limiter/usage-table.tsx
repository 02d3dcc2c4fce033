// A table of the decisions in the last second and in longer spans.

import type { SpanUsage } from '../api-types.ts'
import { Loaded } from '../components/status.tsx'
import { type Column, Table } from '../components/table.tsx'
import { count, duration, rate, ratio, share } from '../format.ts'
import { useQuery } from '../use-query.ts'

const EVERY_MS = 1000

export function UsageTable({ path }: { readonly path: string }) {
  const query = useQuery<{ usage: SpanUsage[] }>(path, { everyMs: EVERY_MS })
  return (
    <Loaded query={query}>
      {({ usage }) => (
        <Table
          label="Decisions by span"
          columns={COLUMNS}
          rows={usage}
          keyOf={(row) => `${row.spanSeconds}`}
        />
      )}
    </Loaded>
  )
}

const SOURCES: readonly (readonly [source: keyof SpanUsage['perSecondBySource'], words: string])[] = [
  ['lease', 'by leases'],
  ['denyCache', 'by the deny cache'],
  ['fallback', 'by the local fallback'],
  ['failOpen', 'failed open'],
  ['failClosed', 'failed closed'],
]

const COLUMNS: readonly Column<SpanUsage>[] = [
  { id: 'span', label: 'In the last', cell: ({ spanSeconds }) => duration(1000 * spanSeconds) },
  { id: 'allowed', label: 'Allowed', cell: ({ allowed }) => count(allowed), isNumber: true },
  { id: 'denied', label: 'Denied', cell: ({ denied }) => count(denied), isNumber: true },
  {
    id: 'share',
    label: 'Share denied',
    cell: ({ allowed, denied }) => share(ratio(denied, allowed + denied)),
    isNumber: true,
  },
  {
    id: 'shadow',
    label: 'Shadow denials',
    cell: ({ shadowDenied, allowed, denied }) =>
      shadowDenied === 0 ? '0' : `${count(shadowDenied)} (${share(ratio(shadowDenied, allowed + denied))})`,
    isNumber: true,
  },
  {
    id: 'rate',
    label: 'Per second',
    cell: ({ allowedPerSecond, deniedPerSecond }) => rate(allowedPerSecond + deniedPerSecond),
    isNumber: true,
  },
  {
    id: 'source',
    label: 'Not decided by the store',
    cell: ({ perSecondBySource }) =>
      SOURCES.filter(([source]) => perSecondBySource[source] > 0)
        .map(([source, words]) => `${rate(perSecondBySource[source])} ${words}`)
        .join(', ') || 'none',
    isMinor: true,
  },
]
