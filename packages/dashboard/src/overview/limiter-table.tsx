// The table of all limiters, sorted by denials.

import type { LimiterRates } from '../../../server/src/admin/api-types.ts'
import { Badge } from '../components/status.tsx'
import { type Column, Table } from '../components/table.tsx'
import { compact, count, NONE, rate, ratio, share } from '../format.ts'
import { useLive } from '../live.tsx'
import { limiterHref } from '../routes.ts'

const TRACE = 60

export function LimiterTable({ limiters }: { readonly limiters: readonly LimiterRates[] }) {
  return (
    <Table
      label="Limiters"
      columns={COLUMNS}
      rows={limiters}
      keyOf={nameOf}
      sortedBy="denied"
      filterBy={nameOf}
      filterLabel="Filter by name"
      empty="There are no limiters that this token may read."
    />
  )
}

function nameOf({ name }: LimiterRates): string {
  return name
}

const COLUMNS: readonly Column<LimiterRates>[] = [
  {
    id: 'name',
    label: 'Limiter',
    cell: ({ name, outage }) => (
      <>
        <a href={limiterHref(name)}>{name}</a> {outage !== undefined && <Badge tone="bad">store down</Badge>}
      </>
    ),
    sort: nameOf,
  },
  {
    id: 'requests',
    label: 'Requests',
    cell: (row) => rate(requestsOf(row)),
    sort: requestsOf,
    isNumber: true,
  },
  {
    id: 'trace',
    label: 'Last minute',
    cell: ({ name }) => <Trace name={name} />,
    isMinor: true,
  },
  {
    id: 'denied',
    label: 'Denied',
    cell: ({ lastMinute: { deniedPerSecond } }) => (
      <span class={deniedPerSecond > 0 ? 'denied' : undefined}>{rate(deniedPerSecond)}</span>
    ),
    sort: ({ lastMinute }) => lastMinute.deniedPerSecond,
    isNumber: true,
  },
  {
    id: 'share',
    label: 'Share denied',
    cell: (row) => share(shareOf(row)),
    sort: (row) => shareOf(row) ?? -1,
    isNumber: true,
  },
  {
    id: 'shadow',
    label: 'Shadow denials',
    cell: ({ lastMinute: { shadowDeniedPerSecond } }) => (
      <span class={shadowDeniedPerSecond > 0 ? 'shadow-denied' : undefined}>
        {rate(shadowDeniedPerSecond)}
      </span>
    ),
    sort: ({ lastMinute }) => lastMinute.shadowDeniedPerSecond,
    isNumber: true,
    isMinor: true,
  },
  {
    id: 'callers',
    label: 'Callers',
    cell: ({ callers }) => (callers > 0 ? `≈ ${compact(callers)}` : NONE),
    sort: ({ callers }) => callers,
    isNumber: true,
    isMinor: true,
  },
  {
    id: 'waiting',
    label: 'Waiting',
    cell: ({ waiting }) => count(waiting),
    sort: ({ waiting }) => waiting,
    isNumber: true,
    isMinor: true,
  },
]

/** A sparkline of requests in the last minute. */
function Trace({ name }: { readonly name: string }) {
  const { traces } = useLive()
  const values = traces.get(name) ?? []
  const most = Math.max(1, ...values)
  const from = TRACE - values.length
  const points = values.map((value, i) => `${from + i},${(20 - (18 * value) / most).toFixed(1)}`)
  return (
    <svg class="sparkline" viewBox={`0 0 ${TRACE} 21`} preserveAspectRatio="none" aria-hidden="true">
      <polyline points={points.join(' ')} vector-effect="non-scaling-stroke" />
    </svg>
  )
}

// The columns are averages over a minute. In a shorter time, a limit per minute may deny nothing or everything,
// because its denials often fall into the last seconds of the minute.

function requestsOf({ lastMinute }: LimiterRates): number {
  return lastMinute.allowedPerSecond + lastMinute.deniedPerSecond
}

function shareOf(row: LimiterRates): number | null {
  return ratio(row.lastMinute.deniedPerSecond, requestsOf(row))
}
